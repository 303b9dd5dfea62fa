//! Uploads whose answer comes before they are whole, and those a decider has seen the beginning of.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::io::{Read, sink};
use std::sync::mpsc::channel;

use srt_shared::decider::{Body, Req};
use srt_shared::event::EventKind;
use srt_tests::proxy::{
    APP, Conn, Pki, Starter, TestDecider, TestProxy, TestUpstream, connect, connect_tunnel, site,
};

const SHOWN: usize = 32 << 20;

/// The head of a POST to `port`, in the form that a plain connection or a tunnel wants.
fn post(tunnel: bool, path: &str, port: u16, length: usize) -> String {
    let host = format!("{APP}:{port}");
    let target = if tunnel { path.to_owned() } else { format!("http://{host}{path}") };
    format!("POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n")
}

fn client(proxy: &TestProxy, pki: &Pki, tunnel: bool, port: u16) -> Conn {
    if tunnel { connect_tunnel(proxy, pki, APP, port) } else { connect(proxy) }
}

#[test]
fn an_upload_goes_on_past_an_answer_that_came_early() {
    let pki = Pki::new();
    let decider = TestDecider::allowing(&[APP]);
    let proxy = Starter::new(&pki, &decider).resolve(&[APP]).start();
    for tunnel in [false, true] {
        let (uploaded, whole) = channel();
        let early = site(move |conn: &mut Conn, head: &_| {
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")?;
            let mut body = Vec::new();
            let read = conn.body(head, false).read_to_end(&mut body);
            uploaded.send(read.map(|_| body)).unwrap();
            Ok(())
        });
        let upstream = if tunnel { TestUpstream::tls(&pki, APP, early) } else { TestUpstream::plain(early) };
        let port = upstream.port();
        let mut conn = client(&proxy, &pki, tunnel, port);
        conn.send(post(tunnel, "/early", port, 9) + "first").unwrap();
        let (answer, body) = conn.read_answer().unwrap();
        assert_eq!(
            (answer.status(), body.as_slice(), answer.field("connection")),
            (200, &b"early"[..], None)
        );
        conn.send("rest").unwrap();
        assert_eq!(whole.recv().unwrap().unwrap(), b"firstrest");
        // And the connection is good for the next.
        conn.send(post(tunnel, "/echo", port, 4) + "next").unwrap();
        assert_eq!(conn.read_answer().unwrap().1, b"POST next");
    }
}

#[test]
fn an_early_answer_that_ends_the_connection_says_so() {
    let pki = Pki::new();
    let decider = TestDecider::allowing(&[APP]);
    let proxy = Starter::new(&pki, &decider).resolve(&[APP]).start();
    for head in ["200 OK\r\nConnection: close", "413 Content Too Large"] {
        let upstream = TestUpstream::plain(site(move |conn: &mut Conn, _: &_| {
            conn.send(format!("HTTP/1.1 {head}\r\nContent-Length: 5\r\n\r\nearly"))?;
            std::io::copy(conn, &mut sink()).map(|_| ())
        }));
        let mut conn = connect(&proxy);
        conn.send(post(false, "/early", upstream.port(), 9) + "first").unwrap();
        let (answer, body) = conn.read_answer().unwrap();
        assert_eq!((body.as_slice(), answer.field("connection")), (&b"early"[..], Some("close")), "{head}");
        assert_eq!(conn.read_to_close().unwrap(), 0, "{head}");
    }
}

#[test]
fn a_client_that_leaves_after_an_early_answer_has_had_it() {
    let decider = TestDecider::allowing(&[APP]);
    let proxy =
        Starter::bare().listen().fd("--decider-fd", decider.proxy_end()).resolve(&[APP]).events().start();
    let upstream = TestUpstream::plain(site(|conn: &mut Conn, _: &_| {
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")?;
        std::io::copy(conn, &mut sink()).map(|_| ())
    }));
    let mut conn = connect(&proxy);
    conn.send(post(false, "/early", upstream.port(), 9) + "first").unwrap();
    assert_eq!(conn.read_answer().unwrap().1, b"early");
    drop(conn);
    let (line, event) = proxy.next_event();
    assert_eq!((event.status, event.bytes_in, event.bytes_out), (Some(200), 5, 5), "{line}");
}

#[test]
fn a_body_counts_as_held_until_what_was_shown_is_passed_on() {
    let decider = TestDecider::new(&[APP], &[], |_: &Req, body: Option<&Body>| match body {
        None => Some(TestDecider::need_body(SHOWN as u32)),
        Some(_) => Some(TestDecider::allow()),
    });
    let proxy = Starter::bare()
        .listen()
        .fd("--decider-fd", decider.proxy_end())
        .resolve(&[APP])
        // This one reads its frames slowly when it is built for tests.
        .args(["--decider-timeout-ms", "60000"])
        .start();
    let (passed_on, wait) = channel();
    let upstream = TestUpstream::plain(site(move |conn: &mut Conn, head: &_| {
        let mut body = conn.body(head, false);
        std::io::copy(&mut (&mut body).take(SHOWN as u64 + 1), &mut sink())?;
        passed_on.send(()).unwrap();
        std::io::copy(&mut body, &mut sink()).map(|_| ())
    }));
    let port = upstream.port();
    let shown = vec![b'x'; SHOWN];
    // Both together are all that may be held. They go on, for as long as their clients like.
    let mut uploads: Vec<_> = (0..2)
        .map(|_| {
            let mut conn = connect(&proxy);
            conn.send(post(false, "/long", port, SHOWN + 9)).unwrap();
            conn.send(&shown).unwrap();
            conn
        })
        .collect();
    for conn in &mut uploads {
        conn.send("a").unwrap();
        wait.recv().unwrap();
    }
    let mut third = connect(&proxy);
    third.send(post(false, "/echo", port, 5) + "third").unwrap();
    let (answer, body) = third.read_answer().unwrap();
    assert_eq!((answer.status(), body.as_slice()), (200, &b"POST third"[..]));
}

/// More than is read ahead of a client while something is waited for.
const UNREAD: usize = 100_000;

#[test]
fn a_client_that_left_behind_unread_bytes_gets_no_connection() {
    let pki = Pki::new();
    let (asked, questions) = channel();
    let (go_on, wait) = channel::<()>();
    let decider = TestDecider::new(&[APP], &[], move |req: &Req, _: Option<&Body>| {
        if req.path == "/left" {
            asked.send(()).unwrap();
            wait.recv().unwrap();
        }
        Some(TestDecider::allow())
    });
    let proxy = Starter::new(&pki, &decider).resolve(&[APP]).events().start();
    let upstream = TestUpstream::tls(&pki, APP, site(|_, _| Ok(())));
    let port = upstream.port();
    let mut conn = connect_tunnel(&proxy, &pki, APP, port);
    conn.send(post(true, "/left", port, 2 * UNREAD)).unwrap();
    conn.send(vec![b'x'; UNREAD]).unwrap();
    questions.recv().unwrap();
    drop(conn);
    go_on.send(()).unwrap();
    let (line, event) = proxy.next_event();
    assert_eq!(
        (event.event, event.reason.as_deref()),
        (EventKind::Closed, Some("the client left")),
        "{line}"
    );
    assert!(upstream.seen().take().is_empty());
}

#[test]
fn a_client_that_leaves_behind_unread_bytes_does_not_keep_its_upstream() {
    let pki = Pki::new();
    let decider = TestDecider::allowing(&[APP]);
    let proxy = Starter::new(&pki, &decider).resolve(&[APP]).start();
    let (asked, at_upstream) = channel();
    let (ended, wait) = channel();
    let upstream = TestUpstream::tls(
        &pki,
        APP,
        site(move |conn: &mut Conn, _: &_| {
            asked.send(()).unwrap();
            // Never an answer.
            ended.send(conn.read_to_close()).unwrap();
            Ok(())
        }),
    );
    let port = upstream.port();
    let mut conn = connect_tunnel(&proxy, &pki, APP, port);
    let host = format!("{APP}:{port}");
    conn.send(format!("GET /never HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap();
    conn.send(post(true, "/next", port, UNREAD)).unwrap();
    conn.send(vec![b'x'; UNREAD]).unwrap();
    at_upstream.recv().unwrap();
    drop(conn);
    wait.recv().unwrap().unwrap();
}
