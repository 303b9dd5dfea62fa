//! The command line of `srt-proxy`: its help, what stops it, and with which status.

use std::fs::File;
use std::io::{ErrorKind, PipeWriter, Read, Write, pipe};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::sys::signal::Signal;
use srt_shared::decider::Hello;
use srt_tests::binary::binary;
use srt_tests::program::{Finished, Program};
use srt_tests::proxy::{APP, Conn, Pki, Starter, TestDecider, TestProxy, TestUpstream, connect, site};

fn run(args: &[&str]) -> Finished {
    Program::new(binary("srt-proxy")).args(args).run()
}

/// To accept a new text: `srt-proxy --help > tests/tests/golden/srt-proxy-help.txt`.
#[test]
fn help_is_as_reviewed() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/srt-proxy-help.txt");
    let reviewed = std::fs::read_to_string(&golden).unwrap();
    let help = run(&["--help"]).succeeded();
    assert_eq!(help.stderr, "");
    for (at, (is, was)) in help.text().lines().zip(reviewed.lines()).enumerate() {
        assert_eq!(is, was, "line {} of {}", at + 1, golden.display());
    }
    assert_eq!(help.text(), reviewed);
}

#[test]
fn version_is_one_line() {
    let version = run(&["--version"]).succeeded();
    assert_eq!(version.text(), concat!("srt-proxy ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_wrong_command_line_ends_with_2_and_says_what_is_wrong() {
    let listen = ["--listen", "127.0.0.1:0"];
    let decider = ["--decider-fd", "9"];
    for (args, says) in [
        (&[][..], "--listen-fd"),
        (&decider, "--listen-fd"),
        (&listen, "--decider-fd"),
        (&["--listen", "127.0.0.1:0", "--decider-in", "3"], "--decider-out"),
        (&["--listen", "127.0.0.1:0", "--listen-fd", "3", "--decider-fd", "4"], "--listen"),
        (
            &["--listen-fd", "3", "--decider-fd", "4", "--decider-in", "5", "--decider-out", "6"],
            "--decider-fd",
        ),
        (&["--listen", "0.0.0.0:0", "--decider-fd", "9"], "--listen-any-interface"),
        (&["--listen", "example.com:80", "--decider-fd", "9"], "example.com"),
        (&["--listen-fd", "three", "--decider-fd", "9"], "three"),
        (&["--listen", "127.0.0.1:0", "--decider-fd", "+9"], "+9"),
        // Far above any that is open.
        (&["--listen", "127.0.0.1:0", "--decider-fd", "900000"], "--decider-fd 900000"),
        (&["--listen-fd", "3", "--decider-fd", "4", "--no-such-flag"], "--no-such-flag"),
        (&["--listen-fd", "3", "--decider-fd", "4", "surplus"], "surplus"),
        (&["--listen-fd", "3", "--decider-fd", "4", "--allow-resolved", "10.0.0.0/33"], "10.0.0.0/33"),
        (&["--listen-fd", "3", "--decider-fd", "4", "--deny-resolved", "example.com"], "example.com"),
        (&["--listen-fd", "3", "--decider-fd", "4", "--resolve", "app.test"], "app.test"),
        (&["--listen-fd", "3", "--decider-fd", "4", "--resolve", "app.test=elsewhere"], "elsewhere"),
        (&["--listen-fd", "3", "--decider-fd", "4", "--strip-response-header", "a b"], "a b"),
        (&["--listen-fd", "3", "--decider-fd", "4", "--max-tunnels", "0"], "--max-tunnels"),
        (&["--listen-fd", "3", "--decider-fd", "4", "--decider-timeout-ms", "5s"], "5s"),
    ] {
        let ended = run(args);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.text(), "", "{args:?}");
        assert!(ended.stderr.contains(says), "{args:?}: {}", ended.stderr);
    }
}

/// A proxy that has a listener and one end of a link; the other end is the test's.
fn with_link() -> (Starter, UnixStream) {
    let (theirs, ours) = UnixStream::pair().unwrap();
    (Starter::bare().listen().fd("--decider-fd", theirs.into()), ours)
}

fn say_hello(link: &mut UnixStream) {
    let mut hello = Vec::new();
    Hello::new(&[APP], &[]).unwrap().encode(&mut hello).unwrap();
    link.write_all(&hello).unwrap();
}

#[test]
fn what_cannot_be_used_ends_with_its_status_and_one_line() {
    let certificate_only = std::fs::read(Pki::new().proxy_ca_file()).unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let start = || {
        let (theirs, mut ours) = UnixStream::pair().unwrap();
        say_hello(&mut ours);
        (Starter::bare().fd("--decider-fd", theirs.into()), ours)
    };
    let not_listening = || UnixStream::pair().unwrap().0.into();
    let readable = || pipe().unwrap().0.into();
    let no_ca = b"-----BEGIN CERTIFICATE-----\n";
    type Complete<'a> = Box<dyn Fn(Starter) -> Starter + 'a>;
    let cases: [(&str, u8, Complete<'_>); 10] = [
        // The number is far above any that is open.
        ("--listen-fd 900000", 1, Box::new(|s| s.args(["--listen-fd", "900000"]))),
        ("listening", 1, Box::new(|s| s.fd("--listen-fd", not_listening()))),
        ("listening", 1, Box::new(|s| s.fd("--listen-fd", readable()))),
        ("--listen", 1, Box::new(|s| s.args(["--listen", &taken]))),
        ("--ca-fd", 1, Box::new(|s| s.listen().ca_text(b""))),
        ("--ca-fd", 1, Box::new(|s| s.listen().ca_text(no_ca))),
        ("--ca-fd", 1, Box::new(|s| s.listen().ca_text(&certificate_only))),
        ("/nowhere.pem", 1, Box::new(|s| s.listen().args(["--upstream-ca", "/nowhere.pem"]))),
        ("--events-fd", 2, Box::new(|s| s.listen().fd("--events-fd", readable()))),
        (
            "--lifeline-fd",
            2,
            Box::new(|s| s.listen().fd("--lifeline-fd", File::open("/dev/null").unwrap().into())),
        ),
    ];
    for (at, (says, status, complete)) in cases.into_iter().enumerate() {
        let (starter, _link) = start();
        let ended = complete(starter).start().wait();
        assert_eq!(ended.status.code(), Some(status.into()), "case {at}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "case {at}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("srt-proxy: "), "case {at}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "case {at}: {}", ended.stderr);
    }
}

#[test]
fn a_ca_that_cannot_be_used_is_told_without_a_hello() {
    let (starter, _link) = with_link();
    let ended = starter.ca_text(b"no CA").start().wait();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("--ca-fd"), "{}", ended.stderr);
}

#[test]
fn a_stop_is_heard_while_the_ca_is_waited_for() {
    let (starter, mut link) = with_link();
    let (never_written, _open) = pipe().unwrap();
    let mut proxy = starter.fd("--ca-fd", never_written.into()).start();
    say_hello(&mut link);
    // It takes signals once it has said its own hello.
    link.read_exact(&mut [0; 4]).unwrap();
    proxy.signal(Signal::SIGTERM);
    let ended = proxy.wait();
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_decider_that_fails_before_its_hello_ends_the_start_with_2() {
    let frame =
        |payload: &str| [&u32::try_from(payload.len()).unwrap().to_be_bytes(), payload.as_bytes()].concat();
    for (what, bytes) in [
        ("the end", vec![]),
        ("the end inside a frame", frame("{}")[..5].to_vec()),
        ("no frame", b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        ("no JSON", frame("hello")),
        ("another version", frame(r#"{"t":"hello","proto":2,"allowedDomains":[],"deniedDomains":[]}"#)),
        (
            "an entry that is none",
            frame(r#"{"t":"hello","proto":1,"allowedDomains":["*"],"deniedDomains":[]}"#),
        ),
        ("a verdict", frame(r#"{"t":"verdict","id":1,"action":"allow"}"#)),
    ] {
        let (starter, mut link) = with_link();
        let mut proxy = starter.start();
        let mut client = connect(&proxy);
        link.write_all(&bytes).unwrap();
        link.shutdown(std::net::Shutdown::Write).unwrap();
        let ended = proxy.wait();
        assert_eq!(ended.status.code(), Some(2), "{what}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{what}: {}", ended.stderr);
        // Who was waiting is told so.
        let (answer, _) = client.read_answer().unwrap();
        assert_eq!((answer.status(), answer.field("x-deny-reason")), (503, Some("decider_unavailable")));
    }
}

/// A serving proxy and the ends that its host holds.
struct Host {
    proxy: TestProxy,
    link: Option<UnixStream>,
    lifeline: Option<PipeWriter>,
}

#[test]
fn whatever_stops_it_after_the_hello_ends_with_0() {
    type Stop = fn(&mut Host);
    let stops: [(&str, Stop); 6] = [
        ("SIGTERM", |host| host.proxy.signal(Signal::SIGTERM)),
        ("SIGINT", |host| host.proxy.signal(Signal::SIGINT)),
        ("the end of the lifeline", |host| host.lifeline = None),
        ("the end of the decider", |host| host.link = None),
        ("the decider ends its side", |host| {
            host.link.as_ref().unwrap().shutdown(std::net::Shutdown::Write).unwrap();
        }),
        ("a breach of the protocol", |host| host.link.as_ref().unwrap().write_all(b"\0\0\0\0").unwrap()),
    ];
    for (what, stop) in stops {
        let (starter, mut link) = with_link();
        let (theirs, mut lifeline) = pipe().unwrap();
        let proxy = starter.fd("--lifeline-fd", theirs.into()).start();
        say_hello(&mut link);
        // What is written to the lifeline means nothing.
        lifeline.write_all(b"stop").unwrap();
        // An answer, if only a refusal, shows that it serves.
        let mut client = connect(&proxy);
        client.send("GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(client.read_answer().unwrap().0.status(), 400, "{what}");

        let mut host = Host { proxy, link: Some(link), lifeline: Some(lifeline) };
        stop(&mut host);
        let ended = host.proxy.wait();
        assert_eq!(ended.status.code(), Some(0), "{what}: {}", ended.stderr);
    }
}

#[test]
fn a_stop_before_the_hello_ends_with_0() {
    for what in ["SIGTERM", "the end of the lifeline"] {
        let (starter, mut link) = with_link();
        let (theirs, lifeline) = pipe().unwrap();
        let mut proxy = starter.fd("--lifeline-fd", theirs.into()).start();
        // It takes signals once it has said its own hello.
        link.read_exact(&mut [0; 4]).unwrap();
        match what {
            "SIGTERM" => proxy.signal(Signal::SIGTERM),
            _ => drop(lifeline),
        }
        assert_eq!(proxy.wait().status.code(), Some(0), "{what}");
    }
}

#[test]
fn a_stop_lets_an_answer_finish_and_accepts_nothing_more() {
    let (asked, at_upstream) = channel();
    let (go_on, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::plain(site(move |conn, _| {
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")?;
        asked.send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        conn.send(" last")
    }));
    let decider = TestDecider::allowing(&[APP]);
    let mut proxy = Starter::bare().listen().fd("--decider-fd", decider.proxy_end()).resolve(&[APP]).start();
    let mut client = connect(&proxy);
    let host = format!("{APP}:{}", upstream.port());
    client.send(format!("GET http://{host}/slow HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap();
    at_upstream.recv().unwrap();
    let mut idle = connect(&proxy);
    idle.get(&format!("http://{host}/hello"), &host).unwrap();

    proxy.signal(Signal::SIGTERM);
    // It has let go of the listener when a connection is refused. Until then a full backlog may hold one up.
    let connect = || TcpStream::connect_timeout(&proxy.address(), Duration::from_millis(20));
    while !connect().is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused) {}
    go_on.send(()).unwrap();
    let (answer, body) = client.read_answer().unwrap();
    assert_eq!((answer.status(), body.as_slice()), (200, &b"first last"[..]));
    assert_eq!(idle.read_to_close().unwrap(), 0);
    assert_eq!(proxy.wait().status.code(), Some(0));
}

#[test]
fn it_listens_on_an_address_of_its_own_and_says_where() {
    let upstream = TestUpstream::plain(site(|_, _| Ok(())));
    let decider = TestDecider::allowing(&[APP]);
    let (starter, warns) =
        (Starter::bare().fd("--decider-fd", decider.proxy_end()).resolve(&[APP]), "warning: ");
    let proxy = starter.args(["--listen", "0.0.0.0:0", "--listen-any-interface"]).start();
    let line = proxy.next_line();
    assert!(line.contains(warns) && line.contains("0.0.0.0:0"), "{line}");
    let line = proxy.next_line();
    let address: SocketAddr = line.strip_prefix("srt-proxy: listening on ").unwrap().parse().unwrap();
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, address.port())).unwrap();
    let host = format!("{APP}:{}", upstream.port());
    let (_, body) = Conn::plain(socket).unwrap().get(&format!("http://{host}/hello"), &host).unwrap();
    assert_eq!(body, b"hello");
}
