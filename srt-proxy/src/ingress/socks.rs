//! SOCKS5 (RFC 1928): a request for a tunnel, judged like a CONNECT.
//!
//! A user and a password (RFC 1929) are taken and mean nothing: who may connect is settled by the listener.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::BytesMut;
use fast_socks5::server::{
    NoAuthentication, PasswordAuthentication, Socks5ServerProtocol, SocksServerError, StandardAuthentication,
    StandardAuthenticationStarted, states,
};
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{ReplyError, Socks5Command};
use srt_shared::domain::Host;
use tokio::io::AsyncWriteExt;

use super::{ClientSocket, ssh};
use crate::http::Scheme;
use crate::pipeline::refuse::{NotServed, Refusal};
use crate::pipeline::target::Target;
use crate::prefixed::Prefixed;
use crate::wire::Wire;

const SSH_PORT: u16 = 22;

/// A client that has said where it wants to go, and waits for the reply.
pub struct SocksRequest {
    protocol: Socks5ServerProtocol<Prefixed<ClientSocket>, states::CommandRead>,
    port: u16,
}

/// No preference for a password: asking for one would make some clients prompt for it.
const METHODS: &[StandardAuthentication] = &[
    StandardAuthentication::NoAuthentication(NoAuthentication),
    StandardAuthentication::PasswordAuthentication(PasswordAuthentication),
];

/// Reads the request. `None` when the client spoke no proper SOCKS5, and has been told so where SOCKS has words for
/// it.
pub async fn read(client: Wire<ClientSocket>) -> Option<(SocksRequest, Result<Target, Refusal>)> {
    let (socket, early) = client.into_parts();
    let (protocol, command, address) = read_request(Prefixed::new(early, socket)).await.ok()?;
    if command != Socks5Command::TCPConnect {
        let _ = protocol.reply_error(&ReplyError::CommandNotSupported).await;
        return None;
    }
    let (host, port) = match address {
        TargetAddr::Ip(address) => (Ok(Host::Addr(address.ip())), address.port()),
        TargetAddr::Domain(name, port) => (Host::from_bare(&name), port),
    };
    let target = match host {
        _ if port == 0 => Err(Refusal::bad_request("port 0")),
        Ok(host) => Ok(Target::from_host(host, port, Scheme::Https)),
        Err(e) => Err(Refusal::bad_request(e.to_string())),
    };
    Some((SocksRequest { protocol, port }, target))
}

type Read<S> = (Socks5ServerProtocol<S, states::CommandRead>, Socks5Command, TargetAddr);

async fn read_request(
    stream: Prefixed<ClientSocket>,
) -> Result<Read<Prefixed<ClientSocket>>, SocksServerError> {
    let protocol = match Socks5ServerProtocol::start(stream).negotiate_auth(METHODS).await? {
        StandardAuthenticationStarted::NoAuthentication(auth) => Socks5ServerProtocol::finish_auth(auth),
        StandardAuthenticationStarted::PasswordAuthentication(auth) => {
            let (_user, _password, auth) = auth.read_username_password().await?;
            Socks5ServerProtocol::finish_auth(auth.accept().await?)
        }
    };
    protocol.read_command().await
}

impl SocksRequest {
    /// Says yes; what follows is the tunnel. `None` when the client is gone.
    pub async fn grant(self) -> Option<Wire<ClientSocket>> {
        // Where we are bound is nobody's business, and no client uses it.
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let (early, socket) = self.protocol.reply_success(nowhere).await.ok()?.into_parts();
        Some(Wire::new(socket, BytesMut::from(&early[..])))
    }

    /// Says no. An SSH client is told why in its own words, where there is a configured reason.
    pub async fn refuse(self, why: &NotServed) {
        if let NotServed::Refused(Refusal::HostNotAllowed { reason: Some(reason), .. }) = why
            && self.port == SSH_PORT
        {
            let message = ssh::disconnect(reason);
            if let Some(client) = self.grant().await {
                let (mut socket, _) = client.into_parts();
                // Nothing is left to do for a client that has gone.
                let _ = socket.write_all(&message).await;
                let _ = socket.shutdown().await;
            }
            return;
        }
        let reply = match why {
            NotServed::Refused(_) => ReplyError::ConnectionNotAllowed,
            NotServed::Failed(failure) if failure.status == 504 => ReplyError::ConnectionTimeout,
            NotServed::Failed(_) => ReplyError::HostUnreachable,
        };
        let _ = self.protocol.reply_error(&reply).await;
    }
}
