//! The attach protocol's server side: launchers hand over the listeners of their sandboxes, each sandbox becomes a
//! session that lives as long as its session socket.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use srt_shared::attach::{Answer, Attach, AttachError, ListenerKind};
use srt_shared::limits::MAX_ATTACH_PACKET;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::events::Events;
use crate::fds::{Listener, PacketSocket};
use crate::limits;
use crate::policy::SettingsError;
use crate::serve::serve;
use crate::session::{Common, Session};

/// Why an attach packet is refused.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the packet or its descriptors were cut off")]
    Truncated,
    #[error("the first descriptor is no SOCK_SEQPACKET socket")]
    NoSession,
    #[error(transparent)]
    Packet(#[from] AttachError),
    #[error("{given} descriptors for {named} listeners and the session")]
    Count { given: usize, named: usize },
    #[error("the descriptor for {0:?} is no listening TCP or unix socket")]
    NotListening(ListenerKind),
    #[error("listeners of kind {0:?} are not supported by this release")]
    Unsupported(ListenerKind),
    #[error("too many sandboxes are attached")]
    TooMany,
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Serves launchers until the attach socket ends, and then the sessions that are left.
pub async fn serve_attach(socket: PacketSocket, common: Arc<Common>, events: Events) {
    let mut sessions = JoinSet::new();
    let mut buffer = vec![0; MAX_ATTACH_PACKET + 1];
    loop {
        tokio::select! {
            Some(_) = sessions.join_next(), if !sessions.is_empty() => {}
            packet = socket.receive(&mut buffer) => match packet {
                Ok(None) => break,
                Ok(Some(packet)) => {
                    let room = sessions.len() < limits::SESSIONS;
                    let bytes = &buffer[..packet.len];
                    let accept = |listeners, socket: &PacketSocket| match (packet.truncated, room) {
                        (true, _) => Err(Refused::Truncated),
                        (_, false) => Err(Refused::TooMany),
                        _ => accept(bytes, listeners, &common, &events, socket),
                    };
                    if let Some((socket, listener, session)) = attach(packet.fds, &common, accept) {
                        sessions.spawn(run(socket, listener, session));
                    }
                }
                Err(e) => {
                    warn!("--attach-fd: {e}");
                    break;
                }
            }
        }
    }
    // New sandboxes cannot come any more; those that run are left alone.
    while sessions.join_next().await.is_some() {}
}

/// Answers one launcher; the session, if it gets one.
fn attach(
    mut fds: Vec<OwnedFd>,
    common: &Common,
    accept: impl FnOnce(Vec<OwnedFd>, &PacketSocket) -> Result<(Listener, Arc<Session>), Refused>,
) -> Option<(PacketSocket, Listener, Arc<Session>)> {
    let listeners = fds.split_off(fds.len().min(1));
    let Some(Ok(Some(socket))) = fds.pop().map(PacketSocket::from_owned) else {
        // There is nobody to tell.
        warn!("--attach-fd: {}", Refused::NoSession);
        return None;
    };
    let (answer, accepted) = match accept(listeners, &socket) {
        Ok(accepted) => (Answer::Attached { ca_pem: common.governor.ca_pem() }, Some(accepted)),
        Err(why) => {
            warn!("--attach-fd: {why}");
            (Answer::Refused { reason: why.to_string() }, None)
        }
    };
    if let Err(e) = answer.encode().map_err(io::Error::other).and_then(|packet| socket.send(&packet)) {
        debug!("the launcher is gone: {e}");
        return None;
    }
    accepted.map(|(listener, session)| (socket, listener, session))
}

fn accept(
    packet: &[u8],
    fds: Vec<OwnedFd>,
    common: &Arc<Common>,
    events: &Events,
    session_socket: &PacketSocket,
) -> Result<(Listener, Arc<Session>), Refused> {
    let attach = Attach::parse(packet)?;
    if fds.len() != attach.listeners().len() {
        return Err(Refused::Count { given: fds.len() + 1, named: attach.listeners().len() });
    }
    let mut proxy = None;
    for (&kind, fd) in attach.listeners().iter().zip(fds) {
        let listener = Listener::from_owned(fd)?.ok_or(Refused::NotListening(kind))?;
        match kind {
            ListenerKind::Proxy => proxy = Some(listener),
            other => return Err(Refused::Unsupported(other)),
        }
    }
    let listener = proxy.ok_or(AttachError::NoListener)?;
    let events = events.with_session(session_socket.clone(), attach.name());
    let session = Session::new(Arc::clone(common), attach.allowed_domains().to_vec(), events)?;
    Ok((listener, Arc::new(session)))
}

/// A session dies with its socket, and everything of it at once: what is left of the sandbox must not use what was
/// opened for it.
async fn run(socket: PacketSocket, listener: Listener, session: Arc<Session>) {
    let closed = async {
        let mut scratch = [0; 64];
        // A launcher has nothing more to say; what it says is not read as anything.
        while let Ok(Some(_)) = socket.receive(&mut scratch).await {}
    };
    if let Err(e) = serve(listener, session, closed, Duration::ZERO).await {
        warn!("an attached listener: {e}");
    }
}
