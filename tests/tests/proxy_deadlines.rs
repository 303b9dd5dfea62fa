//! Peers that stall, until the proxy's deadline for them: of each the nearest one, all at the same time.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{Backlog, listen};
use srt_tests::proxy::{
    APP, Conn, PATIENCE, Pki, Starter, TestDecider, TestProxy, TestUpstream, connect, connect_tunnel, site,
    try_tunnel,
};

/// Busy machines are late, never early.
const LATE: Duration = Duration::from_secs(8);

/// Runs `stall`, which must end after `deadline`.
fn ends_after(deadline: Duration, what: &str, stall: impl FnOnce()) {
    let begun = Instant::now();
    stall();
    let took = begun.elapsed();
    assert!(took >= deadline - Duration::from_millis(200), "{what}: too early, after {took:?}");
    assert!(took <= deadline + LATE, "{what}: too late, after {took:?}");
}

struct World {
    pki: Pki,
    proxy: TestProxy,
    good: TestUpstream,
    /// Accepts and says nothing.
    silent: TestUpstream,
}

#[test]
fn whoever_stalls_has_a_deadline_and_holds_up_nobody() {
    let pki = Pki::new();
    let decider = TestDecider::allowing(&[APP]);
    let proxy = Starter::new(&pki, &decider).resolve(&[APP]).start();
    let good = TestUpstream::tls(&pki, APP, site(|_, _| Ok(())));
    let silent = TestUpstream::plain(|mut conn, _| drop(conn.read_to_close()));
    let full = FullListener::new();
    let world = World { pki, proxy, good, silent };
    let (short, long) = (Duration::from_secs(10), Duration::from_secs(30));
    let mut kept = world.tunnel();
    // Those that stall longer still do when the others have ended.
    let mut check_others = || {
        let host = format!("{APP}:{}", world.good.port());
        for conn in [&mut kept, &mut world.tunnel()] {
            let begun = Instant::now();
            assert_eq!(conn.get("/hello", &host).unwrap().1, b"hello");
            assert!(begun.elapsed() < LATE);
        }
    };

    thread::scope(|scope| {
        let world = &world;
        let stalls = [
            scope.spawn(|| ends_after(short, "no TLS", || world.stall_handshake(b""))),
            // The header of a record of 512 bytes.
            scope.spawn(|| {
                ends_after(short, "half a ClientHello", || world.stall_handshake(b"\x16\x03\x01\x02\0\x01"))
            }),
            scope.spawn(|| {
                ends_after(short, "an upstream without TLS", || {
                    world.stall_upstream("https", world.silent.port(), "TLS handshake in time");
                })
            }),
            scope.spawn(|| {
                ends_after(long, "an upstream that does not accept", || {
                    world.stall_upstream("http", full.port(), "accept the connection in time");
                })
            }),
            scope.spawn(|| ends_after(long, "half a head", || stall_head(connect(&world.proxy)))),
            scope.spawn(|| ends_after(long, "half a head in a tunnel", || stall_head(world.tunnel()))),
            scope.spawn(|| ends_after(long, "a head that drips", || drip_head(connect(&world.proxy)))),
        ];
        for stall in stalls {
            check_others();
            stall.join().unwrap();
        }
        check_others();
    });
}

impl World {
    fn tunnel(&self) -> Conn {
        connect_tunnel(&self.proxy, &self.pki, APP, self.good.port())
    }

    fn stall_handshake(&self, beginning: &[u8]) {
        let (mut conn, answer) = try_tunnel(&self.proxy, APP, self.good.port()).unwrap();
        assert_eq!(answer.status(), 200);
        conn.send(beginning).unwrap();
        assert_eq!(conn.read_to_close().unwrap(), 0);
    }

    fn stall_upstream(&self, scheme: &str, port: u16, says: &str) {
        let host = format!("{APP}:{port}");
        let (answer, body) = connect(&self.proxy).get(&format!("{scheme}://{host}/"), &host).unwrap();
        let text = String::from_utf8(body).unwrap();
        assert_eq!((answer.status(), answer.field("x-deny-reason")), (504, None), "{text}");
        assert!(text.contains(says), "{text}");
    }
}

fn stall_head(mut conn: Conn) {
    conn.send("GET / HTTP/1.1\r\nHost: ").unwrap();
    assert_eq!(conn.read_to_close().unwrap(), 0);
}

/// Each byte is progress, and none of them a reason to wait longer.
fn drip_head(mut conn: Conn) {
    conn.set_patience(Duration::from_millis(500)).unwrap();
    conn.send("GET / HTTP/1.1\r\nX: ").unwrap();
    let begun = Instant::now();
    loop {
        match conn.read(&mut [0]) {
            Ok(0) => return,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            // A byte that came after the end.
            Err(e) => return assert_eq!(e.kind(), ErrorKind::ConnectionReset),
            Ok(_) => panic!("an answer to half a head"),
        }
        assert!(begun.elapsed() < PATIENCE);
        // The end may have come in between.
        let _ = conn.send("x");
    }
}

/// A listener whose backlog is full, so that the kernel answers no further connection.
struct FullListener {
    listener: TcpListener,
    _backlog: Vec<TcpStream>,
}

impl FullListener {
    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listen(&listener, Backlog::new(0).unwrap()).unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(500)).ok();
        let backlog: Vec<_> = std::iter::from_fn(connect).take(64).collect();
        assert!(backlog.len() < 64, "the backlog is not full");
        Self { listener, _backlog: backlog }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }
}
