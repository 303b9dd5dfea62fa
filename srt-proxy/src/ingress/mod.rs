//! How requests come in. Each way in makes the same thing, a target and a head, and hands it to the one pipeline.

mod proxy;
mod requests;
mod socket;
mod tunnel;

use std::sync::Arc;

use bytes::BytesMut;

use crate::session::Session;
use crate::wire::Wire;

pub use requests::Origin;
pub use socket::{ClientSocket, ClientStream};

/// Serves one client connection to its end.
pub async fn serve(socket: ClientSocket, session: Arc<Session>) {
    proxy::serve(Wire::new(socket, BytesMut::new()), &session).await;
}
