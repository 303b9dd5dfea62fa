//! Everything around a sandbox with a network: settings, a proxy that launchers attach to, sessions with and without a
//! sandbox, and a program inside that tries what it is told.
//!
//! Names below `localhost` lead to loopback, so nothing here needs a network.

mod probe;

use std::fs;
use std::io::{IoSlice, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, setsockopt, socketpair,
};
use nix::sys::time::{TimeVal, TimeValLike};
use serde_json::{Value, json};
use srt_shared::attach::{Answer, Attach, ListenerKind};
use srt_shared::domain::{DomainPattern, ListKind};
use srt_shared::event::Event;
use srt_shared::limits::MAX_ATTACH_PACKET;
use tempfile::TempDir;

use crate::binary::binary;
use crate::program::Program;
use crate::proxy::{Conn, PATIENCE, Seen, Starter, TestProxy};

pub use probe::Probe;

/// Complete settings with this `network`; both lists are empty where it does not name them. Only the working folder is
/// writable.
pub fn settings(mut network: Value) -> Value {
    for list in ["allowedDomains", "deniedDomains"] {
        if network.get(list).is_none() {
            network[list] = json!([]);
        }
    }
    json!({"network": network, "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}})
}

/// Both ends of a socket that keeps the bounds of packets.
pub fn packet_pair() -> (OwnedFd, OwnedFd) {
    let pair = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
    let patience = TimeVal::seconds(PATIENCE.as_secs() as i64);
    setsockopt(&pair.0, ReceiveTimeout, &patience).unwrap();
    pair
}

/// A proxy that launchers attach to.
#[derive(Debug)]
pub struct AttachProxy {
    /// The process.
    pub proxy: TestProxy,
    attach: OwnedFd,
}

impl AttachProxy {
    /// Starts one under `settings`.
    pub fn start(settings: &Value) -> Self {
        Self::start_with(settings, |starter| starter)
    }

    /// The same with more options.
    pub fn start_with(settings: &Value, complete: impl FnOnce(Starter) -> Starter) -> Self {
        let (attach, theirs) = packet_pair();
        let (read, mut write) = std::io::pipe().unwrap();
        // Less than what a pipe holds.
        write.write_all(settings.to_string().as_bytes()).unwrap();
        drop(write);
        let starter = Starter::bare().fd("--attach-fd", theirs).fd("--settings-fd", read.into());
        Self { proxy: complete(starter).start(), attach }
    }

    /// The launchers' end of the attach socket.
    pub fn attach_socket(&self) -> OwnedFd {
        self.attach.try_clone().unwrap()
    }

    /// Closes the launchers' end of the attach socket.
    pub fn close_attach(self) -> TestProxy {
        self.proxy
    }

    /// Sends one packet, with descriptors, as a launcher would.
    pub fn send(&self, packet: &[u8], fds: &[OwnedFd]) {
        let fds: Vec<_> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&fds)];
        let control = if fds.is_empty() { &[][..] } else { &rights[..] };
        let slices = [IoSlice::new(packet)];
        sendmsg::<()>(self.attach.as_raw_fd(), &slices, control, MsgFlags::empty(), None).unwrap();
    }

    /// A session that may reach `allow` besides.
    ///
    /// # Panics
    /// When it is refused.
    pub fn session(&self, name: &str, allow: &[&str]) -> TestSession {
        let allow = allow.iter().map(|e| DomainPattern::parse_settings(e, ListKind::Allowed).unwrap());
        let request = Attach::new(name.to_owned(), vec![ListenerKind::Proxy], allow.collect()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (socket, theirs) = packet_pair();
        self.send(&request.encode().unwrap(), &[theirs, listener.into()]);
        let session = TestSession { address, socket };
        match session.next() {
            Some(Answer::Attached { .. }) => session,
            other => panic!("{name} was not attached: {other:?}"),
        }
    }
}

/// A session without a sandbox: its listener is on this host's loopback.
#[derive(Debug)]
pub struct TestSession {
    address: SocketAddr,
    socket: OwnedFd,
}

impl TestSession {
    /// The next thing that the proxy says; `None` once it has closed the session.
    pub fn next(&self) -> Option<Answer> {
        next_answer(&self.socket)
    }

    /// The next event.
    pub fn next_event(&self) -> Event {
        match self.next() {
            Some(Answer::Event(event)) => *event,
            other => panic!("no event: {other:?}"),
        }
    }

    /// Where its listener is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection to the proxy.
    pub fn connect(&self) -> Conn {
        Conn::plain(TcpStream::connect(self.address).unwrap()).unwrap()
    }

    /// The status and the body that the proxy answers to a GET of `http://AUTHORITY/hello`.
    pub fn get(&self, authority: &str) -> (u16, String) {
        let (answer, body) =
            self.connect().get(&format!("http://{authority}/hello"), authority).expect("an answer");
        (answer.status(), String::from_utf8_lossy(&body).into_owned())
    }
}

/// The next packet on a session socket; `None` at its end.
pub fn next_answer(socket: &OwnedFd) -> Option<Answer> {
    let mut packet = vec![0; MAX_ATTACH_PACKET];
    let length = recv(socket.as_raw_fd(), &mut packet, MsgFlags::empty()).expect("a packet, or the end");
    (length > 0).then(|| Answer::parse(&packet[..length]).unwrap())
}

/// A home and, in it, a working folder of one test.
#[derive(Debug)]
pub struct Folder {
    home: TempDir,
}

impl Folder {
    /// Makes it, with these settings in the home.
    pub fn new(settings: &Value) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        fs::write(home.path().join(".srt-settings.json"), settings.to_string()).unwrap();
        Self { home }
    }

    /// The home folder.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The folder where programs run.
    pub fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// Every path in it, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![self.home.path().to_path_buf()];
        let mut at = 0;
        while let Some(path) = paths.get(at) {
            if path.is_dir() {
                paths.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            }
            at += 1;
        }
        paths.sort();
        paths
    }

    /// `srt`, to be run there.
    pub fn srt(&self) -> Program {
        self.program("srt")
    }

    /// `srt-launch`, to be run there.
    pub fn srt_launch(&self) -> Program {
        self.program("srt-launch")
    }

    fn program(&self, name: &str) -> Program {
        Program::new(binary(name)).env("HOME", self.home.path()).current_dir(&self.work())
    }
}

/// Serves one request of a connection with `hello`, and ends it.
pub fn hello_once(mut conn: Conn, seen: &Seen) {
    if let Ok(Some(head)) = conn.read_head() {
        seen.add(&head);
        // A client may be gone by now.
        let _ = conn.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    }
}

/// A GET of `/hello` in absolute form, after which the connection ends.
pub fn http_get(authority: &str) -> String {
    format!("GET http://{authority}/hello HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n")
}

/// A CONNECT, and a GET of `/hello` inside.
pub fn tunnel_get(authority: &str) -> String {
    format!(
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n\
         GET /hello HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n"
    )
}

/// A SOCKS5 request for a tunnel to a name, or to an IPv4 literal where the name is one.
pub fn socks_connect(host: &str, port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, 5, 1, 0];
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(v4)) => bytes.extend([&[1][..], &v4.octets()].concat()),
        Ok(std::net::IpAddr::V6(v6)) => bytes.extend([&[4][..], &v6.octets()].concat()),
        Err(_) => bytes.extend([&[3, host.len() as u8][..], host.as_bytes()].concat()),
    }
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes
}

/// The same, and a GET of `/hello` inside.
pub fn socks_get(host: &str, port: u16) -> Vec<u8> {
    let get = format!("GET /hello HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    [socks_connect(host, port), get.into_bytes()].concat()
}
