//! The launcher's end of the attach protocol: the sandbox's listener goes to a running `srt-proxy`, which answers, and
//! then tells of every refusal, on a session socket that lives as long as the sandbox.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, socketpair,
};
use srt_shared::attach::{Answer, Attach, AttachError};
use srt_shared::event::Event;
use srt_shared::limits::MAX_ATTACH_PACKET;

/// How long a proxy may take to answer. It may still be starting: loading roots and making a CA take milliseconds.
const ANSWER: Duration = Duration::from_secs(30);

/// Why a sandbox has no proxy.
#[derive(Debug, thiserror::Error)]
pub enum AttachFailure {
    /// The system.
    #[error("cannot attach to the proxy: {0}")]
    Io(#[from] io::Error),
    /// The proxy has ended, or closed the session.
    #[error("the proxy ended before it answered")]
    Gone,
    /// No answer in time.
    #[error("the proxy did not answer within {} s", ANSWER.as_secs())]
    Timeout,
    /// It does not want this sandbox.
    #[error("the proxy refused the sandbox: {0}")]
    Refused(String),
    /// It does not speak the protocol.
    #[error("the proxy's answer is malformed: {0}")]
    Protocol(#[from] AttachError),
}

impl From<Errno> for AttachFailure {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// Both ends of a session: ours is kept for the life of the sandbox, theirs goes to the proxy.
#[derive(Debug)]
pub struct Session {
    ours: OwnedFd,
    theirs: Option<OwnedFd>,
}

impl Session {
    /// A session nobody serves yet. Made before the namespaces, so that the process outside can keep its end.
    pub fn pair() -> io::Result<Self> {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        Ok(Self { ours, theirs: Some(theirs) })
    }

    /// Forgets the proxy's end. The process outside must, or it would never see that the proxy has gone.
    pub fn keep_ours(&mut self) {
        self.theirs = None;
    }

    /// Hands the listener to the proxy behind `socket` and waits for its answer: the certificate of its CA, where it
    /// terminates TLS.
    pub fn attach(
        &mut self,
        socket: impl AsFd,
        request: &Attach,
        listener: OwnedFd,
    ) -> Result<Option<String>, AttachFailure> {
        let packet = request.encode()?;
        let theirs = self.theirs.take().ok_or(AttachFailure::Gone)?;
        let fds = [theirs.as_raw_fd(), listener.as_raw_fd()];
        send_whole(socket.as_fd(), &packet, &fds)?;
        // From here on only the proxy holds them: when it ends, we see it, and the sandbox's port is closed.
        drop((theirs, listener));
        wait_readable(self.ours.as_fd())?;
        match Answer::parse(&self.receive(MsgFlags::empty())?.ok_or(AttachFailure::Gone)?)? {
            Answer::Attached { ca_pem } => Ok(ca_pem),
            Answer::Refused { reason } => Err(AttachFailure::Refused(reason)),
            Answer::Event(_) => Err(AttachFailure::Refused("an event came before the answer".to_owned())),
        }
    }

    /// What has happened since the last call, and whether the proxy is still there.
    pub fn events(&self) -> (Vec<Event>, Liveness) {
        let mut events = Vec::new();
        loop {
            match self.receive(MsgFlags::MSG_DONTWAIT) {
                Ok(Some(packet)) => {
                    if let Ok(Answer::Event(event)) = Answer::parse(&packet) {
                        events.push(*event);
                    }
                }
                Err(AttachFailure::Io(e)) if e.kind() == io::ErrorKind::WouldBlock => {
                    return (events, Liveness::Alive);
                }
                Ok(None) | Err(_) => return (events, Liveness::Gone),
            }
        }
    }

    /// One packet; `None` when the proxy has closed the session.
    fn receive(&self, flags: MsgFlags) -> Result<Option<Vec<u8>>, AttachFailure> {
        let mut packet = vec![0; MAX_ATTACH_PACKET];
        let length = loop {
            match recv(self.ours.as_raw_fd(), &mut packet, flags) {
                Err(Errno::EINTR) => {}
                result => break result?,
            }
        };
        packet.truncate(length);
        Ok((length > 0).then_some(packet))
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }
}

/// Whether the proxy is still there. Without it the sandbox has no network, and nothing replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It serves the session.
    Alive,
    /// It has closed it, or has ended.
    Gone,
}

fn send_whole(socket: BorrowedFd<'_>, packet: &[u8], fds: &[i32]) -> Result<(), AttachFailure> {
    loop {
        let control = [ControlMessage::ScmRights(fds)];
        let slices = [IoSlice::new(packet)];
        match sendmsg::<()>(socket.as_raw_fd(), &slices, &control, MsgFlags::MSG_NOSIGNAL, None) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            // The proxy, or another launcher that shares the socket, has made it non-blocking.
            Err(Errno::EAGAIN) => wait(socket, PollFlags::POLLOUT)?,
            Err(Errno::EPIPE | Errno::ECONNRESET | Errno::ECONNREFUSED) => return Err(AttachFailure::Gone),
            Err(e) => return Err(e.into()),
        }
    }
}

fn wait_readable(socket: BorrowedFd<'_>) -> Result<(), AttachFailure> {
    wait(socket, PollFlags::POLLIN)
}

fn wait(socket: BorrowedFd<'_>, flags: PollFlags) -> Result<(), AttachFailure> {
    let timeout = PollTimeout::try_from(ANSWER).map_err(|_| AttachFailure::Timeout)?;
    loop {
        match poll(&mut [PollFd::new(socket, flags)], timeout) {
            Ok(0) => return Err(AttachFailure::Timeout),
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSliceMut;

    use nix::cmsg_space;
    use nix::sys::socket::{recvmsg, send};
    use srt_shared::attach::ListenerKind;

    use super::*;

    fn request() -> Attach {
        Attach::new("test".to_owned(), vec![ListenerKind::Proxy], Vec::new()).unwrap()
    }

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
    }

    /// A proxy that answers the first launcher with `answers`, and then goes.
    fn proxy(socket: OwnedFd, answers: Vec<Vec<u8>>) -> std::thread::JoinHandle<usize> {
        std::thread::spawn(move || {
            let mut buffer = vec![0; 4096];
            let mut space = cmsg_space!([i32; 4]);
            let mut slices = [IoSliceMut::new(&mut buffer)];
            let message =
                recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::empty()).unwrap();
            let fds: Vec<i32> = message
                .cmsgs()
                .unwrap()
                .flat_map(|control| match control {
                    nix::sys::socket::ControlMessageOwned::ScmRights(fds) => fds,
                    _ => Vec::new(),
                })
                .collect();
            for answer in answers {
                send(fds[0], &answer, MsgFlags::empty()).unwrap();
            }
            for fd in &fds {
                nix::unistd::close(*fd).unwrap();
            }
            fds.len()
        })
    }

    fn attach(answers: Vec<Vec<u8>>) -> (Result<Option<String>, AttachFailure>, Session) {
        let (launcher, proxy_end) = pair();
        let served = proxy(proxy_end, answers);
        let mut session = Session::pair().unwrap();
        // Any descriptor will do for one that only travels.
        let (listener, _other) = pair();
        let result = session.attach(&launcher, &request(), listener);
        assert_eq!(served.join().unwrap(), 2, "the session and one listener travel");
        (result, session)
    }

    #[test]
    fn an_answer_is_taken_and_a_refusal_told() {
        let attached = Answer::Attached { ca_pem: Some("pem".to_owned()) }.encode().unwrap();
        assert_eq!(attach(vec![attached]).0.unwrap().as_deref(), Some("pem"));
        let refused = Answer::Refused { reason: "full".to_owned() }.encode().unwrap();
        assert!(matches!(attach(vec![refused]).0, Err(AttachFailure::Refused(reason)) if reason == "full"));
    }

    #[test]
    fn a_proxy_that_goes_or_babbles_is_a_failure() {
        assert!(matches!(attach(vec![]).0, Err(AttachFailure::Gone)));
        assert!(matches!(attach(vec![b"nonsense".to_vec()]).0, Err(AttachFailure::Protocol(_))));
        let (launcher, proxy_end) = pair();
        drop(proxy_end);
        let (listener, _other) = pair();
        let result = Session::pair().unwrap().attach(&launcher, &request(), listener);
        assert!(matches!(result, Err(AttachFailure::Gone)));
    }

    #[test]
    fn the_end_of_the_proxy_is_seen() {
        let attached = Answer::Attached { ca_pem: None }.encode().unwrap();
        let (result, session) = attach(vec![attached]);
        result.unwrap();
        assert_eq!(session.events().1, Liveness::Gone);
    }
}
