//! The proxy's end of the attach protocol: what is malformed is refused and leaves nothing behind, and a session lives
//! as long as its socket.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{PipeReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Instant;

use serde_json::json;
use srt_shared::attach::Answer;
use srt_shared::limits::MAX_ATTACH_PACKET;
use srt_tests::proxy::{PATIENCE, TestUpstream};
use srt_tests::sandbox_run::{AttachProxy, hello_once, next_answer, packet_pair, settings};

const PACKET: &str = r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy"]}"#;

fn listener() -> (OwnedFd, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener.into(), address)
}

/// Whether nobody listens there any more. A program that another test starts has a copy of every descriptor for the
/// moment between its fork and its exec.
fn is_gone(address: SocketAddr) -> bool {
    let begun = Instant::now();
    while TcpStream::connect(address).is_ok() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        thread::yield_now();
    }
    true
}

/// A descriptor whose last copy's closing is seen at the other end.
fn witness() -> (OwnedFd, PipeReader) {
    let (read, write) = std::io::pipe().unwrap();
    (write.into(), read)
}

fn is_closed(mut witness: PipeReader) -> bool {
    witness.read(&mut [0]).unwrap() == 0
}

fn attach_only() -> AttachProxy {
    AttachProxy::start(&settings(json!({})))
}

/// Sends a packet with a session socket before `fds`, and gives back why it is refused.
fn refused(proxy: &AttachProxy, packet: &[u8], fds: Vec<OwnedFd>) -> String {
    let (session, theirs) = packet_pair();
    let mut all = vec![theirs];
    all.extend(fds);
    proxy.send(packet, &all);
    drop(all);
    let reason = match next_answer(&session) {
        Some(Answer::Refused { reason }) => reason,
        other => panic!("{}: {other:?}", String::from_utf8_lossy(&packet[..packet.len().min(100)])),
    };
    assert_eq!(next_answer(&session), None, "the session socket stays open: {reason}");
    reason
}

#[test]
fn a_malformed_packet_is_refused_and_its_descriptors_closed() {
    let proxy = attach_only();
    // Everything that is made once has been made.
    drop(proxy.session("first", &[]));
    let two = r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy","transparent"]}"#;
    let padded = format!("{PACKET}{}", " ".repeat(MAX_ATTACH_PACKET - PACKET.len() + 1));
    let cases: [(&[u8], &str); 9] = [
        (b"", "malformed"),
        (b"\0", "malformed"),
        (b"{}", "malformed"),
        (&PACKET.as_bytes()[..PACKET.len() - 1], "malformed"),
        (br#"{"t":"attach","proto":2,"name":"x","listeners":["proxy"]}"#, "version 2"),
        (
            br#"{"t":"attach","proto":1,"name":"x","listeners":["proxy"],"allowedDomains":["*"]}"#,
            "allowedDomains[0]",
        ),
        (br#"{"t":"attach","proto":1,"name":"x","listeners":["dns-tcp"]}"#, "not supported"),
        (padded.as_bytes(), "longer than"),
        (&[b' '; 2 * MAX_ATTACH_PACKET], "cut off"),
    ];
    for (packet, says) in cases {
        let (fd, address) = listener();
        let reason = refused(&proxy, packet, vec![fd]);
        assert!(reason.contains(says), "{reason}");
        assert!(is_gone(address), "the listener stays open: {reason}");
    }
    // Too few and too many: of what the packet names, of what the protocol knows, of what one packet can carry.
    for (packet, count) in [(PACKET, 0), (PACKET, 2), (two, 1), (PACKET, 15), (PACKET, 40), (PACKET, 250)] {
        let (witnesses, fds): (Vec<_>, Vec<_>) =
            (0..count).map(|_| witness()).map(|(fd, end)| (end, fd)).unzip();
        refused(&proxy, packet.as_bytes(), fds);
        assert!(witnesses.into_iter().all(is_closed), "{count} descriptors");
    }
    // The wrong kind.
    let connected = {
        let (_fd, address) = listener();
        TcpStream::connect(address).unwrap().into()
    };
    let kinds: [OwnedFd; 4] = [
        File::open("/dev/null").unwrap().into(),
        UdpSocket::bind("127.0.0.1:0").unwrap().into(),
        packet_pair().0,
        connected,
    ];
    for fd in kinds {
        let reason = refused(&proxy, PACKET.as_bytes(), vec![fd]);
        assert!(reason.contains("no listening"), "{reason}");
    }
    assert_eq!(proxy.session("last", &[]).get("a.localhost:1").0, 403);
}

#[test]
fn without_a_session_socket_there_is_nobody_to_tell() {
    let proxy = attach_only();
    // A first descriptor that is none: nothing at all, a pipe, a stream.
    proxy.send(PACKET.as_bytes(), &[]);
    let (fd, end) = witness();
    let (second, address) = listener();
    proxy.send(PACKET.as_bytes(), &[fd, second]);
    assert!(is_closed(end));
    let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    proxy.send(PACKET.as_bytes(), &[stream.into(), listener().0]);
    // An empty packet looks like the end of the stream, and is none.
    proxy.send(b"", &[]);
    assert_eq!(proxy.session("after", &[]).get("a.localhost:1").0, 403);
    assert!(is_gone(address));
    let lines: Vec<_> = (0..4).map(|_| proxy.proxy.next_line()).collect();
    assert!(lines.iter().all(|line| line.contains("SEQPACKET")), "{lines:?}");
}

#[test]
fn a_session_dies_with_its_socket_and_no_other_does() {
    let upstream = TestUpstream::plain(|mut conn, _| {
        let _ = conn.read_to_close();
    });
    let hello = TestUpstream::plain(hello_once);
    let (stuck, host) = (format!("a.localhost:{}", upstream.port()), format!("a.localhost:{}", hello.port()));
    let proxy = AttachProxy::start(&settings(json!({"allowedDomains": ["a.localhost"]})));
    let (ends, stays) = (proxy.session("ends", &[]), proxy.session("stays", &[]));
    let tunnel = |session: &srt_tests::sandbox_run::TestSession| {
        let mut conn = session.connect();
        conn.send(format!("CONNECT {stuck} HTTP/1.1\r\nHost: {stuck}\r\n\r\n")).unwrap();
        assert_eq!(conn.read_head().unwrap().unwrap().status(), 200);
        conn
    };
    let (mut of_ends, mut of_stays) = (tunnel(&ends), tunnel(&stays));
    let mut waiting = ends.connect();
    waiting.send(format!("GET http://{stuck}/ HTTP/1.1\r\nHost: {stuck}\r\n\r\n")).unwrap();
    let mut idle = ends.connect();
    let address = ends.address();
    drop(ends);
    for conn in [&mut of_ends, &mut waiting, &mut idle] {
        assert_eq!(conn.read_to_close().unwrap(), 0);
    }
    // Connections end after the listener has closed.
    assert!(is_gone(address));
    assert_eq!(stays.get(&host), (200, "hello".to_owned()));
    of_stays.send("still here").unwrap();
    of_stays.end_sending().unwrap();
    assert_eq!(of_stays.read_to_close().unwrap(), 0);
}

#[test]
fn sessions_outlive_the_attach_socket_and_the_proxy_ends_with_the_last() {
    let proxy = attach_only();
    let session = proxy.session("last", &[]);
    let mut process = proxy.close_attach();
    assert_eq!(session.get("a.localhost:1").0, 403);
    assert!(process.is_running());
    drop(session);
    assert!(process.wait().status.success());
}
