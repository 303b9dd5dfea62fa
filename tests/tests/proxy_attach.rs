//! Sandboxes that attach to a running proxy, and packets that are no sandbox.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, pipe};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use serde_json::json;
use srt_shared::attach::Answer;
use srt_shared::event::{EventKind, IngressKind};
use srt_tests::proxy::{APP, Launchers, PATIENCE, Starter, TestProxy, TestUpstream, site};

const ATTACH: &[u8] = br#"{"t":"attach","proto":1,"name":"a","listeners":["proxy"]}"#;

fn start(allowed: &[&str]) -> (TestProxy, Launchers) {
    let settings = json!({
        "network": {"allowedDomains": allowed, "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []},
    });
    let (launchers, theirs) = Launchers::new();
    let starter = Starter::bare().settings(&settings).fd("--attach-fd", theirs).resolve(&[APP, "other.test"]);
    (starter.start(), launchers)
}

fn refusal(answer: Answer) -> String {
    match answer {
        Answer::Refused { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_sandbox_is_refused_and_costs_nobody_anything() {
    let (mut proxy, launchers) = start(&[APP]);
    let sandbox = launchers.attach("first", &[]);
    let descriptors = proxy.descriptors();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (pipe_end, _other) = pipe().unwrap();
    let (stream, _other) = UnixStream::pair().unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    // It listens, but what it accepts comes in packets.
    // The path of a socket has room for a hundred bytes, which that of TMPDIR may be.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let packets = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(packets.as_raw_fd(), &UnixAddr::new(&dir.path().join("socket")).unwrap()).unwrap();
    listen(&packets, Backlog::new(1).unwrap()).unwrap();

    let good = listener.as_raw_fd();
    let too_many = [good; 40];
    let too_long = vec![b' '; 64 * 1024 + 1];
    let cases: &[(&[u8], &[RawFd], &str)] = &[
        (ATTACH, &[], "descriptors"),
        (ATTACH, &[good, good], "descriptors"),
        (ATTACH, &too_many, "cut off"),
        (ATTACH, &[pipe_end.as_raw_fd()], "no listening"),
        (ATTACH, &[stream.as_raw_fd()], "no listening"),
        (ATTACH, &[datagrams.as_raw_fd()], "no listening"),
        (ATTACH, &[packets.as_raw_fd()], "no listening"),
        (b"\xff", &[good], "malformed"),
        (b"{}", &[good], "malformed"),
        (&too_long, &[good], "longer than 65536"),
    ];
    for (packet, fds, says) in cases {
        let (answer, _session) = launchers.attach_with(packet, fds);
        let reason = refusal(answer);
        assert!(reason.contains(says), "{says}: {reason}");
    }
    // Nobody can be told about these.
    launchers.send(b"", &[]).unwrap();
    launchers.send(ATTACH, &[]).unwrap();
    launchers.send(ATTACH, &[good]).unwrap();
    launchers.send(&too_long, &too_many).unwrap();

    // The answer to one more comes after all of that was seen.
    drop(launchers.attach("last", &[]));
    let upstream = TestUpstream::plain(site(|_, _| Err(ErrorKind::Unsupported.into())));
    let host = format!("{APP}:{}", upstream.port());
    let (answer, _) = sandbox.connect().get(&format!("http://{host}/hello"), &host).unwrap();
    assert_eq!(answer.status(), 200);
    assert!(proxy.descriptors() <= descriptors + 4, "{} after {descriptors}", proxy.descriptors());
    assert!(proxy.is_running());
}

#[test]
fn each_sandbox_has_its_own_list_and_hears_of_its_own_refusals() {
    let (_proxy, launchers) = start(&[]);
    let upstream = TestUpstream::plain(site(|_, _| Err(ErrorKind::Unsupported.into())));
    let one = launchers.attach("one", &[APP]);
    let two = launchers.attach("two", &["other.test"]);
    for (sandbox, name, allowed, denied) in
        [(&one, "one", APP, "other.test"), (&two, "two", "other.test", APP)]
    {
        let host = format!("{allowed}:{}", upstream.port());
        let (answer, _) = sandbox.connect().get(&format!("http://{host}/hello"), &host).unwrap();
        assert_eq!(answer.status(), 200);
        // However long the path is: who is refused must not be able to keep it from being told.
        for path in ["x".to_owned(), "x".repeat(100_000)] {
            let host = format!("{denied}:{}", upstream.port());
            let (answer, _) = sandbox.connect().get(&format!("http://{host}/{path}"), &host).unwrap();
            assert_eq!(answer.status(), 403);
            let Answer::Event(event) = sandbox.next_answer().unwrap() else { panic!("no event") };
            assert_eq!((event.event, event.ingress), (EventKind::Refused, IngressKind::Http));
            assert_eq!((event.session.as_deref(), event.host.as_str()), (Some(name), denied));
            assert!(event.path.unwrap().starts_with("/x"));
        }
    }
}

#[test]
fn everything_of_a_session_ends_with_its_socket() {
    let (_proxy, launchers) = start(&[APP]);
    let upstream = TestUpstream::plain(|mut conn, _| {
        conn.read_head().unwrap();
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun").unwrap();
        // Until the proxy has gone.
        let _ = conn.read_to_close();
    });
    let sandbox = launchers.attach("short", &[]);
    let kept = launchers.attach("long", &[]);
    let host = format!("{APP}:{}", upstream.port());
    let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut idle = sandbox.connect();
    let mut busy = sandbox.connect();
    busy.send(&request).unwrap();
    assert_eq!(busy.read_head().unwrap().unwrap().status(), 200);
    drop(sandbox);
    // Sooner than anything else would end them.
    for conn in [&mut busy, &mut idle] {
        conn.set_patience(PATIENCE / 6).unwrap();
        let _ = conn.read_to_close().unwrap();
    }
    let mut other = kept.connect();
    other.send(&request).unwrap();
    assert_eq!(other.read_head().unwrap().unwrap().status(), 200);
}
