//! SOCKS5 (RFC 1928): a request for a tunnel, judged like a CONNECT.
//!
//! A user and a password (RFC 1929) are taken and mean nothing: who may connect is settled by the listener.

use std::num::NonZeroU16;

use bytes::BytesMut;
use fast_socks5::server::{
    NoAuthentication, PasswordAuthentication, Socks5ServerProtocol, SocksServerError, StandardAuthentication,
    StandardAuthenticationStarted,
};
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{ReplyError, Socks5Command};
use srt_shared::domain::Host;
use srt_shared::event::status_phrase;

use super::closing::close;
use super::{ClientSocket, ssh};
use crate::http::Scheme;
use crate::pipeline::refuse::{NotServed, Refusal};
use crate::pipeline::target::Target;
use crate::prefixed::Prefixed;
use crate::wire::Wire;

/// The first byte of SOCKS5. No HTTP request begins with it.
pub const VERSION: u8 = 5;

const SSH_PORT: u16 = 22;

/// No preference for a password: asking for one would make some clients prompt for it.
const METHODS: &[StandardAuthentication] = &[
    StandardAuthentication::NoAuthentication(NoAuthentication),
    StandardAuthentication::PasswordAuthentication(PasswordAuthentication),
];

/// What a client asks for.
#[derive(Debug)]
pub enum Request {
    /// A tunnel, to a target or to what is none. It waits for the reply.
    Tunnel(Result<Target, Refusal>),
    /// Something that is not served, and it has been told so where SOCKS has words for it.
    Unserved(Refusal),
}

/// Reads the request.
pub async fn read(client: Wire<ClientSocket>) -> (Wire<ClientSocket>, Request) {
    let (socket, early) = client.into_parts();
    let mut stream = Prefixed::new(early, socket);
    let request = match read_request(&mut stream).await {
        Ok(address) => Request::Tunnel(target(address)),
        Err(e) => Request::Unserved(Refusal::bad_request(format!("no SOCKS5 request that is served: {e}"))),
    };
    let (early, socket) = stream.into_parts();
    (Wire::new(socket, BytesMut::from(early)), request)
}

async fn read_request(stream: &mut Prefixed<ClientSocket>) -> Result<TargetAddr, SocksServerError> {
    let protocol = match Socks5ServerProtocol::start(stream).negotiate_auth(METHODS).await? {
        StandardAuthenticationStarted::NoAuthentication(auth) => Socks5ServerProtocol::finish_auth(auth),
        StandardAuthenticationStarted::PasswordAuthentication(auth) => {
            let (_user, _password, auth) = auth.read_username_password().await?;
            Socks5ServerProtocol::finish_auth(auth.accept().await?)
        }
    };
    let (protocol, command, address) = protocol.read_command().await?;
    let code = match command {
        Socks5Command::TCPConnect => return Ok(address),
        Socks5Command::TCPBind => 2,
        Socks5Command::UDPAssociate => 3,
    };
    protocol.reply_error(&ReplyError::CommandNotSupported).await?;
    Err(SocksServerError::UnknownCommand(code))
}

fn target(address: TargetAddr) -> Result<Target, Refusal> {
    let (host, port) = match address {
        TargetAddr::Ip(address) => (Ok(Host::Addr(address.ip())), address.port()),
        TargetAddr::Domain(name, port) => (Host::from_bare(&name), port),
    };
    let host = host.map_err(|e| Refusal::bad_request(e.to_string()))?;
    let port = NonZeroU16::new(port).ok_or(Refusal::bad_request("port 0"))?;
    Ok(Target::new(host, port, Scheme::Https))
}

/// Says yes; what follows is the tunnel.
pub fn grant(client: &mut Wire<ClientSocket>) {
    reply(client, ReplyError::Succeeded);
}

/// Says no to a request for `port`, and closes. An SSH client is told why in its own words, where there is a
/// configured reason.
pub async fn refuse(mut client: Wire<ClientSocket>, port: Option<u16>, why: &NotServed) {
    match why {
        NotServed::Refused(refusal @ Refusal::HostNotAllowed { reason: Some(_), .. })
            if port == Some(SSH_PORT) =>
        {
            grant(&mut client);
            let message = ssh::disconnect(&status_phrase(&refusal.reason()));
            client.output().front().extend_from_slice(&message);
        }
        NotServed::Refused(_) => reply(&mut client, ReplyError::ConnectionNotAllowed),
        NotServed::Failed(failure) if failure.status == 504 => {
            reply(&mut client, ReplyError::ConnectionTimeout);
        }
        NotServed::Failed(_) => reply(&mut client, ReplyError::HostUnreachable),
    }
    close(&mut client, None).await;
}

/// RFC 1928 section 6. Where we are bound is nobody's business, and no client uses it: 0.0.0.0, port 0.
fn reply(client: &mut Wire<ClientSocket>, code: ReplyError) {
    client.output().front().extend_from_slice(&[VERSION, code.as_u8(), 0, 1, 0, 0, 0, 0, 0, 0]);
}
