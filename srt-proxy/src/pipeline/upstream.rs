//! The upstream connection of one client connection: dialled once, kept while it is good, never shared.

use std::task::{Context, Poll, Waker};

use bytes::BytesMut;

use crate::dial::{DialError, Upstream};
use crate::limits;
use crate::pipeline::refuse::{Failure, NotServed, Refusal};
use crate::pipeline::target::Target;
use crate::policy::Policy;
use crate::session::Session;
use crate::wire::Wire;

/// An upstream connection and whom it leads to.
#[derive(Debug)]
pub struct Connection {
    target: Target,
    /// The connection.
    pub wire: Wire<Upstream>,
    /// Whether it has served a request before. Then a failure may only mean that the upstream closed it in the
    /// meantime.
    pub is_reused: bool,
}

/// Holds the connection between two requests.
#[derive(Debug, Default)]
pub struct Keeper(Option<Connection>);

impl Keeper {
    /// The kept connection, if it leads to `target` and the upstream has not closed it or sent something
    /// unasked, which would be taken for the answer to the next request.
    pub fn take(&mut self, target: &Target) -> Option<Connection> {
        let mut connection = self.0.take().filter(|kept| kept.target == *target)?;
        let mut cx = Context::from_waker(Waker::noop());
        match connection.wire.poll_fill(&mut cx, limits::READ_IDLE) {
            Poll::Pending => Some(connection),
            Poll::Ready(_) => None,
        }
    }

    /// Keeps a connection whose last answer ended properly.
    pub fn keep(&mut self, mut connection: Connection) {
        if connection.wire.input.is_empty() && connection.wire.is_drained() {
            connection.wire.rest();
            connection.is_reused = true;
            self.0 = Some(connection);
        }
    }
}

/// Resolves, checks and dials: question three, where does it really lead?
pub async fn dial(session: &Session, policy: &Policy, target: &Target) -> Result<Connection, NotServed> {
    let stream = dial_stream(session, policy, target, target.is_tls()).await?;
    Ok(Connection { target: target.clone(), wire: Wire::new(stream, BytesMut::new()), is_reused: false })
}

/// The same for a tunnel nobody looks into: what is spoken in it is the client's affair.
pub async fn dial_opaque(session: &Session, policy: &Policy, target: &Target) -> Result<Upstream, NotServed> {
    dial_stream(session, policy, target, false).await
}

async fn dial_stream(
    session: &Session,
    policy: &Policy,
    target: &Target,
    tls: bool,
) -> Result<Upstream, NotServed> {
    match session.common.dialler.dial(target.host(), target.port(), tls, &policy.guard).await {
        Ok(stream) => Ok(stream),
        Err(DialError::Refused(refused)) => Err(Refusal::AddressNotAllowed(refused.to_string()).into()),
        Err(DialError::Failed(failed)) if failed.is_timeout() => {
            Err(Failure::timeout(failed.to_string()).into())
        }
        Err(DialError::Failed(failed)) => Err(Failure::bad_gateway(failed.to_string()).into()),
    }
}
