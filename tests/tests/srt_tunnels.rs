//! SOCKS, and tunnels that nobody looks into.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use srt_shared::event::IngressKind;
use srt_tests::proxy::{Conn, Pki, TestUpstream};
use srt_tests::sandbox_run::{AttachProxy, TestSession, hello_once, settings, socks_connect, socks_get};

/// How a tunnel is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Connect,
    Socks,
}

const BOTH: [By; 2] = [By::Connect, By::Socks];

fn session(network: Value) -> (AttachProxy, TestSession) {
    let proxy = AttachProxy::start(&settings(network));
    let session = proxy.session("s", &[]);
    (proxy, session)
}

/// Asks for a tunnel; gives back the connection, and whether it was granted.
fn ask(session: &TestSession, by: By, host: &str, port: u16) -> (Conn, bool) {
    let mut conn = session.connect();
    let granted = match by {
        By::Connect => {
            conn.send(format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")).unwrap();
            conn.read_head().unwrap().unwrap().status() == 200
        }
        By::Socks => {
            conn.send(socks_connect(host, port)).unwrap();
            socks_reply(&mut conn) == 0
        }
    };
    (conn, granted)
}

fn tunnel(session: &TestSession, by: By, host: &str, port: u16) -> Conn {
    let (conn, granted) = ask(session, by, host, port);
    assert!(granted, "{by:?} to {host}:{port}");
    conn
}

/// The reply code, after the choice of no authentication.
fn socks_reply(conn: &mut Conn) -> u8 {
    let mut reply = [0; 12];
    conn.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..3], [5, 0, 5]);
    assert_eq!(reply[4..], [0, 1, 0, 0, 0, 0, 0, 0]);
    reply[3]
}

fn read_text(conn: &mut Conn) -> String {
    let mut text = String::new();
    conn.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn socks_takes_names_and_literals_and_nothing_but_connections() {
    let upstream = TestUpstream::plain(hello_once);
    let port = upstream.port();
    let (_proxy, session) = session(json!({"allowedDomains": ["a.localhost", "127.0.0.1"]}));
    for host in ["a.localhost", "A.LocalHost", "127.0.0.1"] {
        let mut conn = session.connect();
        conn.send(socks_get(host, port)).unwrap();
        assert_eq!(socks_reply(&mut conn), 0, "{host}");
        assert!(read_text(&mut conn).ends_with("\r\n\r\nhello"), "{host}");
    }
    // A user and a password mean nothing.
    let mut conn = session.connect();
    conn.send(b"\x05\x01\x02\x01\x04user\x02pw").unwrap();
    let mut choice = [0; 4];
    conn.read_exact(&mut choice).unwrap();
    assert_eq!(choice, [5, 2, 1, 0]);
    conn.send(&socks_get("a.localhost", port)[3..]).unwrap();
    assert!(read_text(&mut conn).ends_with("hello"));
    assert_eq!(upstream.seen().take().len(), 4);

    for host in ["b.localhost", "127.0.0.2", "::1", "localhost", "127.1", "0x7f000001"] {
        let mut conn = session.connect();
        conn.send(socks_connect(host, port)).unwrap();
        assert_eq!(socks_reply(&mut conn), 2, "{host}");
        assert_eq!(conn.read_to_close().unwrap(), 0, "{host}");
        let event = session.next_event();
        assert_eq!(event.ingress, IngressKind::Socks, "{event:?}");
    }
    for command in [2, 3] {
        let mut conn = session.connect();
        let mut request = socks_connect("a.localhost", port);
        request[4] = command;
        conn.send(request).unwrap();
        assert_eq!(socks_reply(&mut conn), 7);
    }
    // No method of ours, another version inside, and an unknown kind of address: no tunnel.
    for bytes in [&b"\x05\x01\x01"[..], b"\x05\x01\x00\x04\x01\x00", b"\x05\x01\x00\x05\x01\x00\x09"] {
        let mut conn = session.connect();
        conn.send(bytes).unwrap();
        conn.end_sending().unwrap();
        assert!(conn.read_to_close().unwrap() < 13, "{bytes:?}");
    }
    assert!(upstream.seen().take().is_empty());
}

#[test]
fn either_side_may_end_first_and_the_other_goes_on() {
    let waits = TestUpstream::plain(|mut conn, _| {
        let mut sent = String::new();
        conn.read_to_string(&mut sent).unwrap();
        let _ = conn.send(format!("{} bytes", sent.len()));
    });
    let ends = TestUpstream::plain(|mut conn, seen| {
        conn.send("bye").unwrap();
        conn.socket().shutdown(Shutdown::Write).unwrap();
        seen.add(&conn.read_head().unwrap().unwrap());
    });
    let (_proxy, session) = session(json!({"allowedDomains": ["a.localhost"]}));
    for by in BOTH {
        let mut conn = tunnel(&session, by, "a.localhost", waits.port());
        conn.send("x".repeat(100_000)).unwrap();
        conn.end_sending().unwrap();
        assert_eq!(read_text(&mut conn), "100000 bytes");

        let mut conn = tunnel(&session, by, "a.localhost", ends.port());
        assert_eq!(read_text(&mut conn), "bye");
        conn.send("GET /late HTTP/1.1\r\n\r\n").unwrap();
        conn.end_sending().unwrap();
        while ends.seen().take().is_empty() {
            std::thread::yield_now();
        }
    }
}

/// A server of mail or SSH, so to speak: greets, and answers one line.
fn greets(mut conn: Conn, _: &srt_tests::proxy::Seen) {
    let _ = conn.send("220 ready\r\n");
    let mut line = [0; 6];
    if conn.read_exact(&mut line).is_ok() {
        let _ = conn.write_all(b"250 ").and_then(|()| conn.send(line));
    }
}

#[test]
fn a_server_may_speak_first_where_tls_is_terminated_too() {
    let upstream = TestUpstream::plain(greets);
    for terminate in [false, true] {
        let mut network = json!({"allowedDomains": ["a.localhost"]});
        if terminate {
            network["tlsTerminate"] = json!({});
        }
        let (_proxy, session) = session(network);
        for by in BOTH {
            let mut conn = tunnel(&session, by, "a.localhost", upstream.port());
            let mut greeting = [0; 11];
            conn.read_exact(&mut greeting).unwrap();
            assert_eq!(&greeting, b"220 ready\r\n");
            conn.send("EHLO\r\n").unwrap();
            assert_eq!(read_text(&mut conn), "250 EHLO\r\n");
            // The client may be first, all the same.
            let mut conn = tunnel(&session, by, "a.localhost", upstream.port());
            conn.send("HELO\r\n").unwrap();
            assert_eq!(read_text(&mut conn), "220 ready\r\n250 HELO\r\n");
        }
    }
}

#[test]
fn opaque_tunnels_can_be_refused() {
    let upstream = TestUpstream::plain(greets);
    let port = upstream.port();
    let (_proxy, session) = session(json!({"allowedDomains": ["a.localhost"], "refuseOpaqueTunnels": true}));
    for by in BOTH {
        let (_conn, granted) = ask(&session, by, "a.localhost", port);
        assert!(!granted, "{by:?}");
        assert_eq!(session.next_event().code.unwrap().as_str(), "opaque_tunnel");
    }

    // Where TLS is terminated, a CONNECT must prove to be TLS in time.
    let tls = json!({"excludeDomains": ["excluded.localhost"], "handshakeTimeoutMs": 400});
    let (_proxy, session) = self::session(json!({
        "allowedDomains": ["a.localhost", "excluded.localhost"], "refuseOpaqueTunnels": true, "tlsTerminate": tls
    }));
    for (by, host) in [(By::Socks, "a.localhost"), (By::Connect, "excluded.localhost")] {
        assert!(!ask(&session, by, host, port).1, "{by:?} to {host}");
        assert_eq!(session.next_event().code.unwrap().as_str(), "opaque_tunnel");
    }
    for says in ["EHLO\r\n", ""] {
        let mut conn = tunnel(&session, By::Connect, "a.localhost", port);
        conn.send(says).unwrap();
        assert_eq!(conn.read_to_close().unwrap(), 0, "{says:?}");
        assert_eq!(session.next_event().code.unwrap().as_str(), "opaque_tunnel");
    }
}

#[test]
fn tls_is_terminated_whatever_brought_it_and_not_for_excluded_hosts() {
    let pki = Pki::new();
    let names = ["a.localhost", "excluded.localhost"];
    let upstreams = names.map(|name| TestUpstream::tls(&pki, name, hello_once));
    let network =
        json!({"allowedDomains": names, "tlsTerminate": {"excludeDomains": ["excluded.localhost"]}});
    let proxy = AttachProxy::start_with(&settings(network), |starter| starter.ca(&pki));
    let session = proxy.session("s", &[]);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pki.upstream_ca_file()).unwrap()).unwrap();
    let trusts_upstreams =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    // Each certificate is trusted by one of the two: whose it is shows who ended the TLS.
    let configs = [pki.client_config(), Arc::new(trusts_upstreams)];
    for by in BOTH {
        for at in [0, 1] {
            let connect = || tunnel(&session, by, names[at], upstreams[at].port());
            assert!(connect().into_tls_client(&configs[1 - at], names[at]).is_err(), "{by:?} {at}");
            let mut conn = connect().into_tls_client(&configs[at], names[at]).unwrap();
            let (answer, body) =
                conn.get("/hello", &format!("{}:{}", names[at], upstreams[at].port())).unwrap();
            assert_eq!((answer.status(), &body[..]), (200, &b"hello"[..]));
        }
    }
}

#[test]
fn ssh_clients_are_told_the_reason_in_their_own_words() {
    let reason = "SSH is blocked; use an https:// remote";
    let (_proxy, session) = session(json!({
        "allowedDomains": ["a.localhost"],
        "deniedDomains": ["*:22", "*:23"],
        "deniedDomainReasons": {"*:22": reason, "*:23": "no telnet"}
    }));
    let mut conn = session.connect();
    conn.send(socks_connect("a.localhost", 22)).unwrap();
    assert_eq!(socks_reply(&mut conn), 0);
    let mut said = Vec::new();
    conn.read_to_end(&mut said).unwrap();
    let packet = said.strip_prefix(b"SSH-2.0-srt\r\n").expect("an SSH server");
    // SSH_MSG_DISCONNECT, a code, and the text with its length.
    assert_eq!(packet[5], 1);
    assert_eq!(packet[10..14], (reason.len() as u32).to_be_bytes());
    assert_eq!(&packet[14..14 + reason.len()], reason.as_bytes());
    let event = session.next_event();
    assert_eq!((event.reason.as_deref(), event.port), (Some(reason), 22));
    // Other ports have no such words.
    assert!(!ask(&session, By::Socks, "a.localhost", 23).1);
    // A CONNECT is answered with the reason as the status phrase.
    let mut conn = session.connect();
    conn.send("CONNECT a.localhost:22 HTTP/1.1\r\nHost: a.localhost:22\r\n\r\n").unwrap();
    assert_eq!(conn.read_head().unwrap().unwrap().start, format!("HTTP/1.1 403 {reason}"));
}
