//! A client that speaks to us as to a proxy: absolute-form requests, and CONNECT.

use std::sync::Arc;

use super::ClientSocket;
use super::requests::{NoRequest, Origin, next_head, refuse, serve_one};
use super::tunnel::{self, Asked};
use crate::http::{RequestHead, RequestTarget, Scheme};
use crate::limits;
use crate::pipeline::Pipeline;
use crate::pipeline::refuse::Refusal;
use crate::pipeline::target::Target;
use crate::session::Session;
use crate::timer::Timer;
use crate::wire::Wire;

/// Serves the connection to its end.
pub async fn serve(mut client: Wire<ClientSocket>, session: &Arc<Session>) {
    let mut timer = Timer::new(limits::IDLE);
    let mut pipeline = Pipeline::new(session, session.policy(), Origin::Plain);
    loop {
        let head = match next_head(&mut client, &mut timer).await {
            Ok(head) => head,
            Err(NoRequest::Ended) => return,
            Err(NoRequest::Refused(refusal)) => return refuse(&mut client, &pipeline, refusal).await,
        };
        if head.method() == "CONNECT" {
            let target = connect_target(&head);
            // The tunnel has a pipeline of its own; boxed, because most plain connections never become one.
            drop((head, pipeline, timer));
            return Box::pin(tunnel::serve(Asked::Connect, client, session, target)).await;
        }
        if !serve_one(&mut client, &mut pipeline, &head, &mut timer).await {
            return;
        }
    }
}

fn connect_target(head: &RequestHead) -> Result<Target, Refusal> {
    // Content of a CONNECT has no meaning (RFC 9110 section 9.3.6); its bytes could be taken for the tunnel's.
    crate::http::request_framing(head).map_err(|e| Refusal::bad_request(e.to_string()))?;
    match head.request_target() {
        Ok(RequestTarget::Connect { host, port }) => Ok(Target::new(host, port, Scheme::Https)),
        Ok(_) => Err(Refusal::bad_request("a CONNECT target must be HOST:PORT")),
        Err(e) => Err(Refusal::bad_request(e.to_string())),
    }
}
