use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, setsockopt, socketpair,
    sockopt,
};
use nix::sys::time::TimeVal;
use srt_shared::attach::{Answer, Attach, ListenerKind};
use srt_shared::domain::{DomainPattern, ListKind};

use super::Conn;
use super::conn::PATIENCE;

/// The launchers' end of an attach socket.
#[derive(Debug)]
pub struct Launchers {
    socket: OwnedFd,
}

/// The launcher of one sandbox, and the listener in it. Dropping it ends the session.
#[derive(Debug)]
pub struct Sandbox {
    session: OwnedFd,
    address: SocketAddr,
}

impl Launchers {
    /// Both ends: ours, and the one for `--attach-fd`.
    pub fn new() -> (Self, OwnedFd) {
        let (socket, theirs) = packet_pair();
        (Self { socket }, theirs)
    }

    /// Attaches a sandbox that may reach `allowed` besides.
    ///
    /// # Panics
    /// When it is refused.
    pub fn attach(&self, name: &str, allowed: &[&str]) -> Sandbox {
        let allowed = allowed.iter().map(|e| DomainPattern::parse_settings(e, ListKind::Allowed).unwrap());
        let attach = Attach::new(name.to_owned(), vec![ListenerKind::Proxy], allowed.collect()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, session) = self.attach_with(&attach.encode().unwrap(), &[listener.as_raw_fd()]);
        assert!(matches!(answer, Answer::Attached { .. }), "{answer:?}");
        Sandbox { session, address }
    }

    /// Sends any packet, with descriptors behind that of a session, and gives back the answer to it.
    pub fn attach_with(&self, packet: &[u8], fds: &[RawFd]) -> (Answer, OwnedFd) {
        let (session, theirs) = packet_pair();
        let mut all = vec![theirs.as_raw_fd()];
        all.extend_from_slice(fds);
        self.send(packet, &all).unwrap();
        drop(theirs);
        (receive(&session).unwrap(), session)
    }

    /// Sends any packet with any descriptors.
    pub fn send(&self, packet: &[u8], fds: &[RawFd]) -> io::Result<()> {
        let rights = [ControlMessage::ScmRights(fds)];
        let rights = if fds.is_empty() { &[] } else { &rights[..] };
        let parts = [io::IoSlice::new(packet)];
        sendmsg::<()>(self.socket.as_raw_fd(), &parts, rights, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }
}

impl Sandbox {
    /// A connection to the listener in the sandbox.
    pub fn connect(&self) -> Conn {
        Conn::plain(TcpStream::connect(self.address).unwrap()).unwrap()
    }

    /// What the proxy says next about the session.
    pub fn next_answer(&self) -> io::Result<Answer> {
        receive(&self.session)
    }
}

fn packet_pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
}

fn receive(socket: &OwnedFd) -> io::Result<Answer> {
    setsockopt(socket, sockopt::ReceiveTimeout, &TimeVal::new(PATIENCE.as_secs() as i64, 0))?;
    let mut buffer = vec![0; 65536];
    let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
    Answer::parse(&buffer[..length]).map_err(io::Error::other)
}
