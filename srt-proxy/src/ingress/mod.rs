//! How requests come in. Each way in makes the same thing, a target and a head, and hands it to the one pipeline.

mod closing;
mod first_bytes;
mod opaque;
mod proxy;
mod requests;
mod socket;
mod socks;
mod ssh;
#[cfg(test)]
pub(crate) mod testing;
mod tunnel;

use std::sync::Arc;

use bytes::BytesMut;
use srt_shared::event::IngressKind;
use tracing::debug;

use crate::limits;
use crate::pipeline::record::Record;
use crate::pipeline::refuse::{About, Refusal};
use crate::session::Session;
use crate::wire::Wire;

use closing::{AnswerForm, answer_and_close, close};
use tunnel::Asked;

pub use requests::Origin;
pub use socket::{ClientSocket, ClientStream, Side};

/// Serves one client connection to its end. Where SOCKS is served, the first byte tells it from HTTP.
pub async fn serve(socket: ClientSocket, session: Arc<Session>) {
    let mut client = Wire::new(socket, BytesMut::new());
    if session.policy().has_settings() {
        match tokio::time::timeout(limits::IDLE, client.fill(limits::READ_IDLE)).await {
            Ok(Ok(1..)) => {}
            _ => return,
        }
        if client.input.first() == Some(&socks::VERSION) {
            return serve_socks(client, &session).await;
        }
    }
    proxy::serve(client, &session).await;
}

async fn serve_socks(client: Wire<ClientSocket>, session: &Arc<Session>) {
    match tokio::time::timeout(limits::SOCKS_HANDSHAKE, socks::read(client)).await {
        Ok((client, socks::Request::Tunnel(target))) => {
            Box::pin(tunnel::serve(Asked::Socks, client, session, target)).await;
        }
        Ok((mut client, socks::Request::Unserved(refusal))) => {
            Record::new(session, IngressKind::Socks, None).refused(&refusal);
            close(&mut client, None).await;
        }
        Err(_) => debug!("client: no SOCKS request in time"),
    }
}

/// Answers a client of a proxy that did not start.
pub async fn refuse_unserved(socket: ClientSocket) {
    let refusal = Refusal::DeciderUnavailable("the proxy did not start");
    let mut client = Wire::new(socket, BytesMut::new());
    let form = AnswerForm { connect: true, head_only: false };
    answer_and_close(&mut client, &refusal.into(), &About::default(), form).await;
}
