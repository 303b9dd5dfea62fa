//! Deciders that misbehave. One that does ends its link, and with it the proxy, so each has a proxy of its own.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, recv};
use srt_shared::decider::{Hello, Verdict};
use srt_tests::proxy::{APP, Conn, PATIENCE, Starter, TestDecider, TestProxy, TestUpstream, connect, site};

use super::{FLOOD, Fault, Stage, garbage};

/// Longer than what the sockets on the way hold, so that it is still under way when its verdict is out.
const LONG_ANSWER: usize = 8 << 20;

/// A proxy that has sent a request's question to its decider, or would like to.
struct Scene {
    proxy: TestProxy,
    link: UnixStream,
    client: Conn,
    upstream: TestUpstream,
}

/// Has a decider do `fault` at `stage`, and checks all that must come of it.
pub fn round(stage: Stage, fault: Fault) {
    let verdict = verdict(1);
    match stage {
        Stage::BeforeHead => before_hello(Scene::start("/hello"), fault),
        Stage::InHead => in_verdict(Scene::start("/hello"), &verdict, 2, fault),
        Stage::BeforeBody => in_verdict(Scene::start("/hello"), &verdict, 4, fault),
        Stage::InBody => in_verdict(Scene::start("/hello"), &verdict, verdict.len() / 2, fault),
        Stage::InAnswer => after_verdict(Scene::start(&format!("/pattern/{LONG_ANSWER}")), &verdict, fault),
        Stage::Idle => after_verdict(Scene::start("/pattern/1000"), &verdict, fault),
    }
}

fn before_hello(mut scene: Scene, fault: Fault) {
    let held = commit(scene.link, fault, b"x: y\r\n");
    match held {
        Some(mut link) if fault == Fault::Stall => {
            // Nobody is served yet.
            scene.client.set_patience(Duration::from_millis(100)).unwrap();
            assert!(scene.client.read(&mut [0]).is_err());
            scene.client.set_patience(PATIENCE).unwrap();
            say_hello(&mut link);
            check_served(Scene { link, ..scene }, 1);
        }
        _held => {
            let ended = scene.proxy.wait();
            assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
            check_refused(&mut scene.client);
        }
    }
}

fn in_verdict(mut scene: Scene, verdict: &[u8], cut: usize, fault: Fault) {
    say_hello(&mut scene.link);
    wait_until_asked(&scene.link, 1);
    scene.link.write_all(&verdict[..cut]).unwrap();
    let held = commit(scene.link, fault, b"x: y\r\n");
    check_refused(&mut scene.client);
    match held {
        Some(mut link) if fault == Fault::Stall => {
            // It is too late for this verdict, but the frame is whole now, and the link with it.
            link.write_all(&verdict[cut..]).unwrap();
            check_lives(Scene { link, ..scene });
        }
        _held => check_stopped(scene.proxy, scene.client),
    }
}

fn after_verdict(mut scene: Scene, verdict: &[u8], fault: Fault) {
    say_hello(&mut scene.link);
    wait_until_asked(&scene.link, 1);
    scene.link.write_all(verdict).unwrap();
    let head = scene.client.read_head().unwrap().unwrap();
    let length: usize = head.field("content-length").unwrap().parse().unwrap();
    let mut answer = scene.client.body(&head, true);
    // Of the long one that is the beginning.
    answer.read_exact(&mut [0; 1000]).unwrap();
    // Nothing waits for a second verdict.
    let held = commit(scene.link, fault, verdict);
    // What was allowed goes on.
    let mut rest = Vec::new();
    answer.read_to_end(&mut rest).unwrap();
    assert_eq!(1000 + rest.len(), length);
    match held {
        Some(link) if fault == Fault::Stall => check_lives(Scene { link, ..scene }),
        _held => check_stopped(scene.proxy, scene.client),
    }
}

/// The client's request got no verdict.
fn check_refused(client: &mut Conn) {
    let (answer, _) = client.read_answer().unwrap();
    assert_eq!((answer.status(), answer.field("x-deny-reason")), (503, Some("decider_unavailable")));
}

/// The proxy lives and its link works: a second request is asked about and served.
fn check_lives(mut scene: Scene) {
    scene.client = connect(&scene.proxy);
    scene.ask("/hello");
    check_served(scene, 2);
}

/// The client is served once request `id` has its verdict.
fn check_served(mut scene: Scene, id: u64) {
    wait_until_asked(&scene.link, id);
    scene.link.write_all(&verdict(id)).unwrap();
    assert_eq!(scene.client.read_answer().unwrap().1, b"hello");
    scene.proxy.signal(Signal::SIGTERM);
    check_stopped(scene.proxy, scene.client);
}

/// The proxy ends as it does when told to, and every connection with it.
fn check_stopped(mut proxy: TestProxy, mut client: Conn) {
    let ended = proxy.wait();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(client.read_to_close().unwrap(), 0);
}

impl Scene {
    fn start(path: &str) -> Self {
        let upstream = TestUpstream::plain(site(|_, _| Ok(())));
        let (theirs, link) = UnixStream::pair().unwrap();
        let starter = Starter::bare().listen().fd("--decider-fd", theirs.into()).resolve(&[APP]);
        let proxy = starter.args(["--decider-timeout-ms", "300"]).start();
        let client = connect(&proxy);
        let mut scene = Self { proxy, link, client, upstream };
        scene.ask(path);
        scene
    }

    fn ask(&mut self, path: &str) {
        let host = format!("{APP}:{}", self.upstream.port());
        self.client.send(format!("GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap();
    }
}

/// Does it; gives the link back if there still is one.
fn commit(mut link: UnixStream, fault: Fault, endless: &[u8]) -> Option<UnixStream> {
    match fault {
        // It has read nothing, and closing a socket with unread bytes is a reset.
        Fault::Reset => return None,
        Fault::Stall => {}
        Fault::Flood => {
            let piece = endless.repeat(1024);
            let mut left = FLOOD / piece.len();
            while left > 0 && link.write_all(&piece).is_ok() {
                left -= 1;
            }
            assert!(left > 0, "the proxy has taken all of it");
        }
        // The proxy may have seen enough before the end of it.
        Fault::Garbage => drop(link.write_all(&garbage())),
        Fault::HalfClose => link.shutdown(Shutdown::Write).unwrap(),
    }
    Some(link)
}

fn say_hello(link: &mut UnixStream) {
    let mut hello = Vec::new();
    Hello::new(&[APP], &[]).unwrap().encode(&mut hello).unwrap();
    link.write_all(&hello).unwrap();
}

fn verdict(id: u64) -> Vec<u8> {
    let mut frame = Vec::new();
    Verdict { id, decision: TestDecider::allow() }.encode(&mut frame).unwrap();
    frame
}

/// Waits for a question and leaves it unread, for a reset.
fn wait_until_asked(link: &UnixStream, id: u64) {
    let question = format!("{{\"t\":\"req\",\"id\":{id},");
    let mut buffer = [0; 4096];
    loop {
        let n = recv(link.as_raw_fd(), &mut buffer, MsgFlags::MSG_PEEK).unwrap();
        assert_ne!(n, 0, "the proxy has ended the link");
        if buffer[..n].windows(question.len()).any(|bytes| bytes == question.as_bytes()) {
            return;
        }
        thread::yield_now();
    }
}
