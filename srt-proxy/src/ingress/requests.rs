//! The requests of one connection or tunnel, one after another.

use std::task::Poll;

use srt_shared::event::IngressKind;
use tracing::debug;

use super::ClientStream;
use super::closing::{AnswerForm, answer_and_close, close};
use crate::http::{HeadReader, RequestHead};
use crate::limits;
use crate::pipeline::record::Record;
use crate::pipeline::refuse::Refusal;
use crate::pipeline::target::Target;
use crate::pipeline::{Next, Pipeline};
use crate::timer::Timer;
use crate::wire::Wire;

/// What a connection's requests have in common.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A client that speaks to us as to a proxy: each request names its target.
    Plain,
    /// A terminated tunnel: every request is for its target.
    Tunnel {
        /// How the tunnel was asked for.
        ingress: IngressKind,
        /// The CONNECT's target.
        target: Target,
        /// The server name, in lower case, if the client sent one.
        sni: Option<String>,
        /// Whether that names the target; if not, no request is served, but each is told so.
        names_target: bool,
    },
}

impl Origin {
    /// How the client came in.
    pub fn ingress(&self) -> IngressKind {
        match self {
            Self::Plain => IngressKind::Http,
            Self::Tunnel { ingress, .. } => *ingress,
        }
    }

    /// What all requests are for, where that is known beforehand.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::Plain => None,
            Self::Tunnel { target, .. } => Some(target),
        }
    }
}

/// What came instead of the next request.
#[derive(Debug)]
pub enum NoRequest {
    /// The client is done, gone, or silent for too long; there is nobody to answer.
    Ended,
    /// Something that is no request.
    Refused(Refusal),
}

/// Reads the next head. An idle wait may be long; a head that has begun must come to its end soon.
pub async fn next_head<S: ClientStream>(
    client: &mut Wire<S>,
    timer: &mut Timer,
) -> Result<RequestHead, NoRequest> {
    let mut reader = HeadReader::new();
    let mut begun = false;
    let mut resting = false;
    timer.set(limits::KEEP_BUFFERS);
    loop {
        match reader.read_request(&mut client.input) {
            Ok(Some(head)) => return Ok(head),
            Ok(None) => {}
            Err(e) => return Err(NoRequest::Refused(Refusal::bad_request(e.to_string()))),
        }
        if !begun && !client.input.is_empty() {
            begun = true;
            timer.set(limits::REQUEST_HEAD);
        }
        let room = if client.input.is_empty() { limits::READ_IDLE } else { limits::READ_SMALL };
        let read = std::future::poll_fn(|cx| match client.poll_fill(cx, room) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending => timer.poll_expired(cx).map(|()| None),
        });
        match read.await {
            None if !begun && !resting => {
                resting = true;
                client.rest();
                timer.set(limits::IDLE);
            }
            Some(Ok(0)) | None => return Err(NoRequest::Ended),
            Some(Ok(_)) => {}
            Some(Err(e)) => {
                debug!("client: {e}");
                return Err(NoRequest::Ended);
            }
        }
    }
}

/// Serves the requests of a terminated tunnel, to its end.
pub async fn serve_requests<S: ClientStream>(
    mut client: Wire<S>,
    mut pipeline: Pipeline<'_>,
    timer: &mut Timer,
) {
    loop {
        let head = match next_head(&mut client, timer).await {
            Ok(head) => head,
            Err(NoRequest::Ended) => return,
            Err(NoRequest::Refused(refusal)) => {
                return refuse(&mut client, &pipeline, refusal).await;
            }
        };
        if !serve_one(&mut client, &mut pipeline, &head, timer).await {
            return;
        }
    }
}

/// Serves one request; `false` when the connection is over.
pub async fn serve_one<S: ClientStream>(
    client: &mut Wire<S>,
    pipeline: &mut Pipeline<'_>,
    head: &RequestHead,
    timer: &mut Timer,
) -> bool {
    // A stop waits until the answer is out, not for the client's end of the connection.
    let flight = pipeline.session().in_flight.begin();
    match pipeline.serve(client, head, timer).await {
        Next::Request => return true,
        Next::Close => close(client, Some(flight)).await,
        Next::Drop => {}
        Next::Abort => client.io().abort(),
    }
    false
}

/// Refuses what was no request at all, and ends the connection.
pub async fn refuse<S: ClientStream>(client: &mut Wire<S>, pipeline: &Pipeline<'_>, refusal: Refusal) {
    let origin = pipeline.origin();
    let record = Record::new(pipeline.session(), origin.ingress(), origin.target());
    record.refused(&refusal);
    answer_and_close(client, &refusal.into(), &record.about(), AnswerForm::default()).await;
}
