//! How requests come in. Each way in makes the same thing, a target and a head, and hands it to the one pipeline.

mod first_bytes;
mod opaque;
mod proxy;
mod requests;
mod socket;
mod socks;
mod ssh;
mod tunnel;

use std::sync::Arc;

use bytes::BytesMut;

use crate::limits;
use crate::pipeline::refuse::{About, Refusal};
use crate::session::Session;
use crate::wire::Wire;

pub use requests::Origin;
pub use socket::{ClientSocket, ClientStream};

/// The first byte of SOCKS5. No HTTP request begins with it.
const SOCKS5: u8 = 5;

/// Serves one client connection to its end. Where SOCKS is served, the first byte tells it from HTTP.
pub async fn serve(socket: ClientSocket, session: Arc<Session>) {
    let mut client = Wire::new(socket, BytesMut::new());
    if session.policy().has_settings() {
        match tokio::time::timeout(limits::IDLE, client.fill(limits::READ_IDLE)).await {
            Ok(Ok(1..)) => {}
            _ => return,
        }
        if client.input.first() == Some(&SOCKS5) {
            let asked = tokio::time::timeout(limits::SOCKS_HANDSHAKE, socks::read(client)).await;
            if let Ok(Some((request, target))) = asked {
                Box::pin(tunnel::serve(tunnel::Asked::Socks(request), &session, target)).await;
            }
            return;
        }
    }
    proxy::serve(client, &session).await;
}

/// Answers a client of a proxy that did not start.
pub async fn refuse_unserved(socket: ClientSocket) {
    let refusal = Refusal::DeciderUnavailable("the proxy did not start");
    let mut client = Wire::new(socket, BytesMut::new());
    let form = requests::AnswerForm { connect: true, head_only: false };
    requests::answer_and_close(&mut client, &refusal.into(), &About::default(), form).await;
}
