//! A tunnel nobody looks into: host and address were checked, then bytes pass as they are.

use tokio::io::copy_bidirectional_with_sizes;

use super::ClientSocket;
use crate::dial::Upstream;
use crate::limits;
use crate::pipeline::record::Record;
use crate::prefixed::Prefixed;
use crate::wire::Wire;

/// Passes bytes both ways until both sides have ended. The end of one side is passed on as such, so that a client may
/// end its sending and go on reading. There is no idle limit: an SSH session may be quiet for a day.
pub async fn pass(mut client: Wire<ClientSocket>, upstream: Wire<Upstream>, mut record: Record<'_>) {
    if client.drain().await.is_err() {
        return record.cut_short("the client left");
    }
    record.allowed(200);
    let (client, sent) = client.into_parts();
    let (upstream, received) = upstream.into_parts();
    let mut client = Prefixed::new(sent, client);
    let mut upstream = Prefixed::new(received, upstream);
    let size = limits::TUNNEL_BUFFER;
    match copy_bidirectional_with_sizes(&mut client, &mut upstream, size, size).await {
        Ok((sent, received)) => {
            (record.bytes_in, record.bytes_out) = (sent, received);
            record.cut_short("the tunnel ended");
        }
        Err(_) => record.cut_short("the tunnel was cut"),
    }
}
