//! Ending a client's connection in order: a client that is still sending must see the answer before the connection is
//! torn down.

use bytes::BytesMut;
use tracing::debug;

use super::ClientStream;
use crate::limits;
use crate::pipeline::refuse::{About, NotServed};
use crate::session::Flight;
use crate::wire::Wire;

/// Which shape an answer of ours takes.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerForm {
    /// To a CONNECT: the status phrase says the reason too.
    pub connect: bool,
    /// To a HEAD: no body.
    pub head_only: bool,
}

/// Writes an answer of ours and closes.
pub async fn answer_and_close<S: ClientStream>(
    client: &mut Wire<S>,
    answer: &NotServed,
    about: &About<'_>,
    form: AnswerForm,
) {
    answer.write(client.output().front(), about, form.connect, form.head_only);
    close(client, None).await;
}

/// Writes what is still to be written, ends our side, and waits a little for the client's. `flight` is what a stop
/// waits for; it is dropped as soon as the client can have its answer.
pub async fn close<S: ClientStream>(client: &mut Wire<S>, flight: Option<Flight<'_>>) {
    // What the client has sent is of no use any more, and may be 32 MiB that were read for the decider.
    client.input = BytesMut::new();
    let finished = finish(client).await;
    drop(flight);
    if finished {
        linger(client).await;
    }
}

/// Writes what is still to be written and ends our side; whether that worked.
async fn finish<S: ClientStream>(client: &mut Wire<S>) -> bool {
    let finishing = async {
        client.drain().await?;
        client.shutdown().await
    };
    match tokio::time::timeout(limits::IDLE, finishing).await {
        Ok(Ok(())) => true,
        Ok(Err(e)) => {
            debug!("client: {e}");
            false
        }
        Err(_) => false,
    }
}

/// Reads, for a short while, what the client is still sending: closing earlier would make the kernel send a reset,
/// which can overtake the answer (RFC 9112 section 9.6).
async fn linger<S: ClientStream>(client: &mut Wire<S>) {
    let reading = async {
        let mut thrown_away = 0;
        while thrown_away < limits::LINGER_BYTES {
            client.input.clear();
            match client.fill(limits::READ_SMALL).await {
                Ok(n) if n > 0 => thrown_away += n,
                _ => return,
            }
        }
    };
    // A client that goes on sending has had its answer; the close may now cut it off.
    let _ = tokio::time::timeout(limits::LINGER, reading).await;
}
