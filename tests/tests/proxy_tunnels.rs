//! Tunnels under settings: SOCKS5, tunnels nobody looks into, and what is told of them.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};

use serde_json::{Value, json};
use srt_shared::event::{EventKind, IngressKind, RefusalCode};
use srt_tests::proxy::{
    APP, Conn, Pki, Starter, TestProxy, TestUpstream, connect, connect_tunnel, site, try_tunnel,
};

const CONNECT: u8 = 1;
const BIND: u8 = 2;
const UDP: u8 = 3;

fn start(pki: &Pki, network: Value) -> TestProxy {
    let settings =
        json!({"network": network, "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}});
    Starter::bare().listen().ca(pki).settings(&settings).resolve(&[APP]).events().start()
}

/// A SOCKS5 request for a name, `early` sent along with it.
fn socks(proxy: &TestProxy, command: u8, name: &[u8], port: u16, early: &[u8]) -> (Conn, [u8; 10]) {
    let mut conn = connect(proxy);
    let mut bytes = vec![5, 1, 0, 5, command, 0, 3, name.len() as u8];
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes.extend_from_slice(early);
    conn.send(bytes).unwrap();
    let mut replies = [0; 12];
    conn.read_exact(&mut replies).unwrap();
    assert_eq!(replies[..2], [5, 0]);
    (conn, replies[2..].try_into().unwrap())
}

fn ends(conn: &mut Conn) -> Vec<u8> {
    let mut rest = Vec::new();
    // In order: a reset could have taken the reply with it.
    conn.read_to_end(&mut rest).unwrap();
    rest
}

#[test]
fn a_socks_refusal_arrives_whatever_was_sent_early() {
    let pki = Pki::new();
    let proxy = start(&pki, json!({"allowedDomains": [APP], "deniedDomains": []}));
    let early = [b'x'; 50_000];
    for (command, name, port, reply, code) in [
        (CONNECT, &b"other.test"[..], 443, 2, RefusalCode::HostNotAllowed),
        (CONNECT, b"127.0.0.1", 443, 2, RefusalCode::HostNotAllowed),
        (CONNECT, b"app.test\0.other", 443, 2, RefusalCode::BadRequest),
        (CONNECT, b"", 443, 2, RefusalCode::BadRequest),
        (CONNECT, b"0x7f000001", 443, 2, RefusalCode::BadRequest),
        (CONNECT, b"app.test", 0, 2, RefusalCode::BadRequest),
        (CONNECT, b"\xff", 443, 5, RefusalCode::BadRequest),
        (BIND, b"app.test", 443, 7, RefusalCode::BadRequest),
        (UDP, b"app.test", 443, 7, RefusalCode::BadRequest),
        (9, b"app.test", 443, 7, RefusalCode::BadRequest),
    ] {
        let what = name.escape_ascii().to_string();
        let (mut conn, replied) = socks(&proxy, command, name, port, &early);
        assert_eq!(replied[..2], [5, reply], "{command} {what}");
        assert_eq!(ends(&mut conn), b"", "{command} {what}");
        let (line, event) = proxy.next_event();
        assert_eq!((event.event, event.ingress), (EventKind::Refused, IngressKind::Socks), "{line}");
        assert_eq!(event.code, Some(code), "{line}");
        // Nothing in SOCKS has a status.
        assert_eq!(event.status, None, "{line}");
    }
}

#[test]
fn an_ssh_client_reads_the_configured_reason() {
    let pki = Pki::new();
    let reason = "use https\u{1b}[31m\u{e9}";
    let network = json!({
        "allowedDomains": [APP], "deniedDomains": ["app.test:22"], "deniedDomainReasons": {"app.test:22": reason},
    });
    let proxy = start(&pki, network);
    let (mut conn, replied) = socks(&proxy, CONNECT, b"app.test", 22, b"SSH-2.0-OpenSSH_9.2\r\n");
    assert_eq!(replied[..2], [5, 0]);
    let said = ends(&mut conn);
    assert!(said.starts_with(b"SSH-2.0-"), "{}", said.escape_ascii());
    // No control characters: it is printed on a terminal.
    let wanted = b"use https [31m?";
    assert!(said.windows(wanted.len()).any(|part| part == wanted), "{}", said.escape_ascii());
}

#[test]
fn requests_in_a_socks_tunnel_are_told_as_such() {
    let pki = Pki::new();
    let network = json!({"allowedDomains": [APP], "deniedDomains": [], "tlsTerminate": {}});
    let proxy = start(&pki, network);
    let upstream = TestUpstream::tls(&pki, APP, site(|_, _| Err(ErrorKind::Unsupported.into())));
    let port = upstream.port();
    let (conn, _) = socks(&proxy, CONNECT, APP.as_bytes(), port, b"");
    let mut tunnel = conn.into_tls_client(&pki.client_config(), APP).unwrap();
    let (answer, _) = tunnel.get("/hello", &format!("{APP}:{port}")).unwrap();
    assert_eq!(answer.status(), 200);
    let (line, event) = proxy.next_event();
    assert_eq!((event.event, event.ingress), (EventKind::Allowed, IngressKind::Socks), "{line}");

    // What is no request at all is refused with the tunnel's own target.
    tunnel.send("NO REQUEST\r\n\r\n").unwrap();
    let (answer, body) = tunnel.read_answer().unwrap();
    assert_eq!(answer.status(), 400);
    let text = String::from_utf8(body).unwrap();
    assert!(text.contains(&format!("{APP}:{port}")), "{text}");
    let (line, event) = proxy.next_event();
    assert_eq!((event.event, event.ingress), (EventKind::Refused, IngressKind::Socks), "{line}");
    assert_eq!((event.host.as_str(), event.port), (APP, port), "{line}");
}

#[test]
fn a_client_that_leaves_was_not_refused() {
    let pki = Pki::new();
    let proxy = start(&pki, json!({"allowedDomains": [APP], "deniedDomains": [], "tlsTerminate": {}}));
    let (conn, answer) = try_tunnel(&proxy, APP, 443).unwrap();
    assert_eq!(answer.status(), 200);
    drop(conn);
    let (line, event) = proxy.next_event();
    assert_eq!(event.event, EventKind::Closed, "{line}");
}

/// Where only the end of the connection ends an answer, somebody on the way could cut it: the client must be able to
/// tell as it could without us.
#[test]
fn an_end_of_tls_that_is_missing_is_missing_for_the_client_too() {
    let pki = Pki::new();
    let proxy = start(&pki, json!({"allowedDomains": [APP], "deniedDomains": [], "tlsTerminate": {}}));
    let upstream = TestUpstream::tls(&pki, APP, |mut conn, _| {
        let head = conn.read_head().unwrap().unwrap();
        conn.send("HTTP/1.1 200 OK\r\n\r\nall of it").unwrap();
        if head.target() == "/ended" {
            conn.end_sending().unwrap();
        }
    });
    let host = format!("{APP}:{}", upstream.port());
    for (path, ended) in [("/ended", true), ("/cut", false)] {
        let mut tunnel = connect_tunnel(&proxy, &pki, APP, upstream.port());
        write!(tunnel, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        tunnel.flush().unwrap();
        assert_eq!(tunnel.read_head().unwrap().unwrap().status(), 200);
        let mut body = Vec::new();
        let end = tunnel.read_to_end(&mut body).map_err(|e| e.kind());
        assert_eq!(body, b"all of it", "{path}");
        assert_eq!(end.is_ok(), ended, "{path}: {end:?}");
        if !ended {
            assert_eq!(end, Err(ErrorKind::UnexpectedEof));
        }
    }
}
