//! A body of 1 GiB past a peer that does not read for a while: it arrives whole, and none of it is kept in between.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use srt_tests::proxy::{
    APP, Conn, PATIENCE, Pki, Site, Starter, TestDecider, TestProxy, TestUpstream, connect, connect_tunnel,
    pattern, sha256, site,
};

const BODY: u64 = 1 << 30;

/// What the proxy may ever take.
const MEMORY_KIB: u64 = 64 << 10;

/// Nothing has been taken for so long: whoever should read is stalled, and all that holds bytes on the way is full.
const HELD_BACK: Duration = Duration::from_secs(1);

/// In chunks of this size, which fit to nothing that the proxy reads or writes at once.
const CHUNK: usize = 50_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leg {
    /// Without TLS, in chunks.
    Plain,
    /// With TLS on both sides, with a length.
    Tunnel,
}

/// Sends a body, and calls `stalled` once it is held back.
fn send_body(conn: &mut Conn, leg: Leg, stalled: impl FnOnce()) -> io::Result<()> {
    conn.set_patience(HELD_BACK)?;
    let mut stalled = Some(stalled);
    let mut from = pattern(BODY);
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let n = from.by_ref().take(CHUNK as u64).read_to_end(&mut piece)?;
        if leg == Leg::Plain {
            piece.splice(0..0, format!("{n:x}\r\n").into_bytes());
            piece.extend_from_slice(b"\r\n");
        }
        let mut rest = piece.as_slice();
        while !rest.is_empty() {
            match conn.write(rest) {
                Ok(n) => rest = &rest[n..],
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    let Some(stalled) = stalled.take() else { return Err(e) };
                    stalled();
                    conn.set_patience(PATIENCE)?;
                }
                Err(e) => return Err(e),
            }
        }
        if n == 0 {
            assert!(stalled.is_none(), "it was never held back");
            return conn.flush();
        }
    }
}

fn framing(leg: Leg) -> String {
    match leg {
        Leg::Plain => "Transfer-Encoding: chunked".to_owned(),
        Leg::Tunnel => format!("Content-Length: {BODY}"),
    }
}

struct World {
    pki: Pki,
    proxy: TestProxy,
    _decider: TestDecider,
}

impl World {
    fn new() -> Self {
        let pki = Pki::new();
        let decider = TestDecider::allowing(&[APP]);
        let proxy = Starter::new(&pki, &decider).resolve(&[APP]).start();
        Self { pki, proxy, _decider: decider }
    }

    fn upstream(&self, leg: Leg, serve: impl Site) -> TestUpstream {
        match leg {
            Leg::Plain => TestUpstream::plain(site(serve)),
            Leg::Tunnel => TestUpstream::tls(&self.pki, APP, site(serve)),
        }
    }

    /// A connection, and what its targets begin with.
    fn connect(&self, leg: Leg, port: u16) -> (Conn, String) {
        match leg {
            Leg::Plain => (connect(&self.proxy), format!("http://{APP}:{port}")),
            Leg::Tunnel => (connect_tunnel(&self.proxy, &self.pki, APP, port), String::new()),
        }
    }

    fn check_memory(&self) {
        let peak = self.proxy.peak_kib();
        assert!(peak <= MEMORY_KIB, "{peak} KiB");
    }

    fn upload(&self, leg: Leg) {
        let (go_on, wait) = channel();
        let wait = Mutex::new(wait);
        let upstream = self.upstream(leg, move |conn, head| {
            wait.lock().unwrap().recv().unwrap();
            let (hash, length) = sha256(conn.body(head, false))?;
            let body = format!("{hash} {length}");
            conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
        });
        let (mut client, base) = self.connect(leg, upstream.port());
        let (host, framing) = (format!("{APP}:{}", upstream.port()), framing(leg));
        client.send(format!("POST {base}/upload HTTP/1.1\r\nHost: {host}\r\n{framing}\r\n\r\n")).unwrap();
        send_body(&mut client, leg, || {
            self.check_memory();
            go_on.send(()).unwrap();
        })
        .unwrap();
        let (_, body) = client.read_answer().unwrap();
        let (hash, length) = sha256(pattern(BODY)).unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), format!("{hash} {length}"), "{leg:?}");
        self.check_memory();
    }

    fn download(&self, leg: Leg) {
        let (stalled, wait) = channel();
        let upstream = self.upstream(leg, move |conn, _| {
            conn.send(format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", framing(leg)))?;
            send_body(conn, leg, || stalled.send(()).unwrap())
        });
        let (mut client, base) = self.connect(leg, upstream.port());
        let host = format!("{APP}:{}", upstream.port());
        client.send(format!("GET {base}/download HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap();
        let head = client.read_head().unwrap().unwrap();
        wait.recv_timeout(PATIENCE).unwrap();
        self.check_memory();
        let got = sha256(client.body(&head, true)).unwrap();
        assert_eq!(got, sha256(pattern(BODY)).unwrap(), "{leg:?}");
        self.check_memory();
    }
}

#[test]
fn a_large_upload_past_an_upstream_that_does_not_read() {
    let world = World::new();
    for leg in [Leg::Plain, Leg::Tunnel] {
        world.upload(leg);
    }
}

#[test]
fn a_large_download_past_a_client_that_does_not_read() {
    let world = World::new();
    for leg in [Leg::Plain, Leg::Tunnel] {
        world.download(leg);
    }
}
