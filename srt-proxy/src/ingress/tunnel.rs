//! A CONNECT: checked, answered, and its TLS terminated on the tunnel's own socket.

use std::sync::Arc;
use std::task::Poll;

use tokio::time::Instant;

use super::requests::{AnswerForm, Origin, answer_and_close, serve_requests};
use super::{ClientSocket, ClientStream};
use crate::limits;
use crate::pipeline::Pipeline;
use crate::pipeline::record::Record;
use crate::pipeline::refuse::{About, Refusal};
use crate::pipeline::target::Target;
use crate::policy::Policy;
use crate::prefixed::Prefixed;
use crate::session::{Session, Slot};
use crate::timer::Timer;
use crate::tls::{self, HelloState, LeafCache, client_hello};
use crate::wire::Wire;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";

/// A terminated tunnel's own end of the conversation.
type Terminated = tls::ClientStream<ClientSocket>;

impl ClientStream for Terminated {
    /// Inside TLS an end of stream is a close_notify or a cut connection; nobody half-closes TLS and waits.
    fn is_gone(&self) -> bool {
        true
    }

    fn abort(&self) {
        self.get_ref().0.inner().abort();
    }
}

/// Serves a CONNECT whose target was read, or could not be.
pub async fn serve(mut client: Wire<ClientSocket>, session: &Arc<Session>, target: Result<Target, Refusal>) {
    let policy = session.policy();
    let admitted = match &target {
        Ok(target) => admit(session, &policy, target),
        Err(refusal) => Err(refusal.clone()),
    };
    let about = About { target: target.as_ref().ok() };
    let (slot, leaves) = match admitted {
        Ok(admitted) => admitted,
        Err(refusal) => {
            Record::connect(session, about.target).refused(&refusal);
            let form = AnswerForm { connect: true, head_only: false };
            return answer_and_close(&mut client, &refusal.into(), &about, form).await;
        }
    };
    let Ok(target) = target else { return };
    let deadline = Instant::now() + limits::CLIENT_HANDSHAKE;
    let terminated = tokio::time::timeout_at(deadline, terminate(client, session, &target, &leaves)).await;
    match terminated {
        Ok(Ok((client, origin))) => {
            let mut timer = Timer::new(limits::IDLE);
            let pipeline = Pipeline::new(session, policy, origin);
            serve_requests(client, pipeline, &mut timer).await;
        }
        Ok(Err(refusal)) => Record::connect(session, Some(&target)).refused(&refusal),
        Err(_) => Record::connect(session, Some(&target))
            .refused(&Refusal::OpaqueTunnel("no TLS handshake in time")),
    }
    drop(slot);
}

/// Everything that can be refused before the client is told that its tunnel stands.
fn admit(session: &Session, policy: &Policy, target: &Target) -> Result<(Slot, Arc<LeafCache>), Refusal> {
    policy.check_host(target.host(), target.port())?;
    let leaves =
        policy.leaves.as_ref().ok_or(Refusal::OpaqueTunnel("TLS cannot be terminated: no CA was given"))?;
    let slot = session.tunnels.take().ok_or(Refusal::TooManyTunnels)?;
    Ok((slot, Arc::clone(leaves)))
}

/// Answers the CONNECT and does the handshake. After the 200 a refusal can only close the tunnel.
async fn terminate(
    mut client: Wire<ClientSocket>,
    session: &Session,
    target: &Target,
    leaves: &LeafCache,
) -> Result<(Wire<Terminated>, Origin), Refusal> {
    client.output().front().extend_from_slice(ESTABLISHED);
    let hello = std::future::poll_fn(|cx| {
        loop {
            match client_hello(&client.input) {
                HelloState::ClientHello(hello) => return Poll::Ready(Ok(hello)),
                HelloState::NotTls => return Poll::Ready(Err("the tunnel carries no TLS")),
                HelloState::Malformed => return Poll::Ready(Err("the ClientHello is malformed")),
                HelloState::NeedMore => {}
            }
            if let Poll::Ready(Err(_)) = client.poll_drain(cx) {
                return Poll::Ready(Err("the client is gone"));
            }
            match client.poll_fill(cx, limits::READ_IDLE) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(Err("the client is gone")),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
    .map_err(Refusal::OpaqueTunnel)?;
    client.drain().await.map_err(|_| Refusal::OpaqueTunnel("the client is gone"))?;

    let leaf = leaves
        .leaf(target.host())
        .map_err(|_| Refusal::OpaqueTunnel("no certificate could be made for this host"))?;
    let (socket, early) = client.into_parts();
    let stream = session
        .server_tls
        .accept(Prefixed::new(early, socket), leaf)
        .await
        .map_err(|_| Refusal::OpaqueTunnel("the TLS handshake failed"))?;
    let origin = Origin::Tunnel {
        target: target.clone(),
        names_target: hello.names(target.host()),
        sni: hello.sni().map(str::to_ascii_lowercase),
    };
    Ok((Wire::new(stream, bytes::BytesMut::new()), origin))
}
