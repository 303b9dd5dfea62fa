//! What a tunnel carries, told by its first bytes and never by its port.

use std::task::Poll;

use tokio::time::{Instant, sleep_until};

use super::ClientSocket;
use crate::dial::Upstream;
use crate::limits;
use crate::tls::{ClientHello, HelloState, client_hello};
use crate::wire::Wire;

/// What the client's first bytes are.
#[derive(Debug)]
pub enum FirstBytes {
    /// TLS.
    Tls(ClientHello),
    /// TLS that no server should answer.
    MalformedTls,
    /// Something else.
    Other,
    /// Nothing within [`limits::SERVER_FIRST`].
    Silence,
    /// The client left.
    Gone,
}

/// Waits for the client's first bytes; for silence only where `notices_silence`. Writes what is still to be written
/// meanwhile.
pub async fn of_client(client: &mut Wire<ClientSocket>, notices_silence: bool) -> FirstBytes {
    let silence = sleep_until(Instant::now() + limits::SERVER_FIRST);
    tokio::pin!(silence);
    std::future::poll_fn(|cx| {
        loop {
            match client_hello(&client.input) {
                HelloState::ClientHello(hello) => return Poll::Ready(FirstBytes::Tls(hello)),
                HelloState::NotTls => return Poll::Ready(FirstBytes::Other),
                HelloState::Malformed => return Poll::Ready(FirstBytes::MalformedTls),
                HelloState::NeedMore => {}
            }
            if let Poll::Ready(Err(_)) = client.poll_drain(cx) {
                return Poll::Ready(FirstBytes::Gone);
            }
            match client.poll_fill(cx, limits::READ_IDLE) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(FirstBytes::Gone),
                Poll::Pending if notices_silence && client.input.is_empty() => {
                    return silence.as_mut().poll(cx).map(|()| FirstBytes::Silence);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

/// Who speaks first in a tunnel whose client was silent.
#[derive(Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The client after all; it decides what the tunnel carries.
    Client,
    /// The server, so this cannot be TLS.
    Server,
}

/// Waits for either side's first bytes.
pub async fn of_either(client: &mut Wire<ClientSocket>, server: &mut Wire<Upstream>) -> Speaker {
    std::future::poll_fn(|cx| {
        // The client first: where both have spoken it may be TLS, which must be looked into.
        if client.poll_fill(cx, limits::READ_IDLE).is_ready() {
            return Poll::Ready(Speaker::Client);
        }
        server.poll_fill(cx, limits::READ_IDLE).map(|_| Speaker::Server)
    })
    .await
}
