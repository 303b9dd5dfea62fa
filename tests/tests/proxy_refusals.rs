//! Each refusal, as a client sees it and as an event tells it; and what neither may tell.

use std::io;
use std::net::TcpListener;

use nix::sys::signal::Signal;
use srt_shared::decider::{Body, Cred, Decision, Edits, FieldValue, Req, SetField};
use srt_shared::event::RefusalCode::{self, *};
use srt_shared::event::{Event, EventKind, IngressKind};
use srt_shared::field_name::FieldName;
use srt_tests::proxy::{
    APP, Conn, Message, Pki, Starter, TestDecider, TestProxy, TestUpstream, connect, connect_tunnel, site,
    try_tunnel,
};

/// On the deny list, though a wildcard allows it.
const DENIED: &str = "denied.app.test";
/// Leads to an address that may not be dialled.
const INSIDE: &str = "inside.app.test";
/// On no list.
const OTHER: &str = "other.test";

/// The decider does what the path says.
fn judge(req: &Req, body: Option<&Body>) -> Option<Decision> {
    let set = |name: &str, value: &str| {
        let (name, value) = (FieldName::parse(name).unwrap(), FieldValue::parse(value).unwrap());
        Decision::Allow(Edits::new(vec![SetField { name, values: vec![value] }], vec![], None).unwrap())
    };
    match req.path.as_str() {
        "/deny" => Some(TestDecider::deny(418, "short and stout")),
        "/silence" => None,
        "/set" => Some(set("x-key", "DECIDER-SECRET")),
        "/set-wide" => Some(set("x-key", "\u{20ac}")),
        "/body" if body.is_none() => Some(TestDecider::need_body(100)),
        "/cred" => {
            let cred = Cred::new("api", "CRED-SECRET".to_owned()).unwrap();
            Some(Decision::Allow(Edits::new(vec![], vec![], Some(cred)).unwrap()))
        }
        _ => Some(TestDecider::allow()),
    }
}

struct World {
    pki: Pki,
    decider: TestDecider,
    upstream: TestUpstream,
    proxy: TestProxy,
    port: u16,
}

impl World {
    fn new(tls: bool, complete: impl FnOnce(Starter) -> Starter) -> Self {
        let pki = Pki::new();
        let decider = TestDecider::new(&[APP, "*.app.test"], &[DENIED], judge);
        let upstream = match tls {
            true => TestUpstream::tls(&pki, APP, site(misbehave)),
            false => TestUpstream::plain(site(misbehave)),
        };
        let starter = Starter::new(&pki, &decider)
            .events()
            .args(["--resolve", "app.test=127.0.0.1", "--resolve", "inside.app.test=127.0.0.2"])
            .args(["--allow-resolved", "127.0.0.1", "--decider-timeout-ms", "200"]);
        let proxy = complete(starter).start();
        let port = upstream.port();
        Self { pki, decider, upstream, proxy, port }
    }

    fn tunnel(&self) -> Conn {
        connect_tunnel(&self.proxy, &self.pki, APP, self.port)
    }

    /// The one event of a refusal, with all that is known beforehand checked.
    fn refused(&self, what: &str, code: RefusalCode, status: u16, host: &str, method: Option<&str>) -> Event {
        let (line, event) = self.proxy.next_event();
        assert_eq!(event.event, EventKind::Refused, "{what}: {line}");
        assert_eq!(event.code, Some(code), "{what}: {line}");
        assert_eq!(event.status, Some(status), "{what}: {line}");
        let port = if host.is_empty() { 0 } else { self.port };
        assert_eq!((event.host.as_str(), event.port), (host, port), "{what}: {line}");
        assert_eq!(event.method.as_deref(), method, "{what}: {line}");
        assert!(event.reason.as_ref().is_some_and(|reason| !reason.is_empty()), "{what}: {line}");
        event
    }
}

/// What the site does not have; most of it fails.
fn misbehave(conn: &mut Conn, head: &Message) -> io::Result<()> {
    let path = head.target().split('?').next().unwrap_or_default();
    match path {
        "/set" | "/cred" | "/body" => {
            io::copy(&mut conn.body(head, false), &mut io::sink())?;
            return conn.send("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nANSWER-SECRET");
        }
        "/garbage" => conn.send("SSH-2.0-OpenSSH_9.2\r\n\r\n")?,
        "/ambiguous" => conn.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")?,
        _ => {}
    }
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// What every refusal has; gives back its text.
fn check_refusal(what: &str, answer: &Message, body: &[u8], code: RefusalCode, status: u16) -> String {
    assert_eq!(answer.status(), status, "{what}: {answer:?}");
    assert_eq!(answer.field("x-deny-reason"), Some(code.as_str()), "{what}: {answer:?}");
    let error = match code {
        TooManyTunnels => "too-many-tunnels",
        _ => "blocked-by-sandbox-runtime",
    };
    assert_eq!(answer.field("x-proxy-error"), Some(error), "{what}: {answer:?}");
    assert_eq!(answer.field("connection"), Some("close"), "{what}: {answer:?}");
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{what}: {text:?}");
    text
}

#[test]
fn refused_plain_requests() {
    let world = World::new(false, |starter| starter);
    let port = world.port;
    let (app, denied, inside, other) = (
        format!("{APP}:{port}"),
        format!("{DENIED}:{port}"),
        format!("{INSIDE}:{port}"),
        format!("{OTHER}:{port}"),
    );
    for (method, host, path, more, code, status, says) in [
        ("GET", &other, "/", "", HostNotAllowed, 403, "not on the allow list"),
        ("GET", &denied, "/", "", HostNotAllowed, 403, "on the deny list"),
        ("GET", &app, "/deny", "", Decider, 418, "short and stout"),
        ("GET", &app, "/silence", "", DeciderUnavailable, 503, "did not answer in time"),
        ("GET", &app, "/set", "", PlaintextHeaderSet, 403, "--plaintext-header-set"),
        ("GET", &app, "/set-wide", "", UnsendableHeader, 403, "cannot be sent"),
        ("GET", &app, "/body", "Content-Length: 1\r\n", BodylessMethodBody, 403, "GET, HEAD or OPTIONS"),
        ("GET", &inside, "/", "", AddressNotAllowed, 403, "loopback"),
        ("TRACE", &app, "/", "", MethodRefused, 405, "TRACE"),
        ("POST", &app, "/", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", BadRequest, 400, ""),
        ("GET", &app, "/", "Host: app.test\r\n", BadRequest, 400, "Host"),
    ] {
        let what = format!("{method} {host}{path}");
        let mut client = connect(&world.proxy);
        client.send(format!("{method} http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\nx")).unwrap();
        let (answer, body) = client.read_answer().unwrap();
        let text = check_refusal(&what, &answer, &body, code, status);
        assert!(text.contains(&format!("{host}:")), "{what}: {text}");
        assert!(text.contains(says), "{what}: {text}");
        // Of many entries, the one.
        assert_eq!(text.contains("denied by deniedDomains: denied.app.test"), host == &denied, "{text}");
        assert_eq!(client.read_to_close().unwrap(), 0, "{what}");
        let name = host.rsplit_once(':').unwrap().0;
        let event = world.refused(&what, code, status, name, Some(method));
        assert_eq!((event.ingress, event.path.as_deref()), (IngressKind::Http, Some(path)), "{what}");
        assert!(event.reason.unwrap().contains(says), "{what}");
        let rule = match host {
            host if *host == other => Some("allowedDomains"),
            host if *host == denied => Some("deniedDomains: denied.app.test"),
            _ => None,
        };
        assert_eq!(event.rule.as_deref(), rule, "{what}");
    }

    // Host names another: the target is what the request line says.
    let mut client = connect(&world.proxy);
    client.send(format!("GET http://{app}/ HTTP/1.1\r\nHost: {other}\r\n\r\n")).unwrap();
    let (answer, body) = client.read_answer().unwrap();
    let text = check_refusal("Host", &answer, &body, Misdirected, 421);
    assert!(text.contains(&app) && text.contains("Host"), "{text}");
    world.refused("Host", Misdirected, 421, APP, Some("GET"));

    // Nothing that could be taken for a request: there is no target to name.
    let mut client = connect(&world.proxy);
    client.send("GET / HTTP/1.1\nHost: app.test\n\n").unwrap();
    let (answer, body) = client.read_answer().unwrap();
    check_refusal("bare LF", &answer, &body, BadRequest, 400);
    world.refused("bare LF", BadRequest, 400, "", None);

    // HEAD: the same answer without its text.
    let mut client = connect(&world.proxy);
    client.send(format!("HEAD http://{app}/deny HTTP/1.1\r\nHost: {app}\r\n\r\n")).unwrap();
    let answer = client.read_head().unwrap().unwrap();
    assert_eq!((answer.status(), answer.field("x-deny-reason")), (418, Some("decider")));
    assert_eq!(client.read_to_close().unwrap(), 0);
    world.refused("HEAD", Decider, 418, APP, Some("HEAD"));

    assert!(world.upstream.seen().take().is_empty());
}

#[test]
fn refused_tunnels() {
    let world = World::new(true, |starter| starter.args(["--max-tunnels", "1"]));
    let held = world.tunnel();
    for (host, code, status, says) in [
        (OTHER, HostNotAllowed, 403, "host is not on the allow list"),
        (DENIED, HostNotAllowed, 403, "host is on the deny list"),
        (APP, TooManyTunnels, 503, "too many open tunnels"),
        ("127.1", BadRequest, 400, ""),
    ] {
        let (mut client, answer) = try_tunnel(&world.proxy, host, world.port).unwrap();
        let mut body = Vec::new();
        io::Read::read_to_end(&mut client.body(&answer, true), &mut body).unwrap();
        let text = check_refusal(host, &answer, &body, code, status);
        // Most clients print no more of it than the status phrase.
        let phrase = answer.start.splitn(3, ' ').nth(2).unwrap();
        assert!(phrase.starts_with(says), "{host}: {phrase}");
        assert!(text.contains(phrase), "{host}: {text}");
        assert_eq!(client.read_to_close().unwrap(), 0, "{host}");
        let name = if code == BadRequest { "" } else { host };
        if !name.is_empty() {
            assert!(text.contains(&format!("{host}:{}", world.port)), "{text}");
        }
        let event = world.refused(host, code, status, name, None);
        assert_eq!(event.ingress, IngressKind::Connect, "{host}");
    }
    drop(held);
    assert!(world.decider.take_asked().is_empty());

    let no_ca = {
        let decider = TestDecider::allowing(&[APP]);
        let starter = Starter::bare().listen().fd("--decider-fd", decider.proxy_end()).events();
        World { proxy: starter.start(), decider, ..world }
    };
    let (mut client, answer) = try_tunnel(&no_ca.proxy, APP, no_ca.port).unwrap();
    let mut body = Vec::new();
    io::Read::read_to_end(&mut client.body(&answer, true), &mut body).unwrap();
    let text = check_refusal("no CA", &answer, &body, OpaqueTunnel, 403);
    assert!(text.contains("no CA"), "{text}");
    no_ca.refused("no CA", OpaqueTunnel, 403, APP, None);
}

#[test]
fn refused_inside_tunnels() {
    let world = World::new(true, |starter| starter);
    let host = format!("{APP}:{}", world.port);
    for (request, code, status, says) in [
        (format!("GET /deny HTTP/1.1\r\nHost: {host}\r\n\r\n"), Decider, 418, "short and stout"),
        (format!("GET / HTTP/1.1\r\nHost: {OTHER}\r\n\r\n"), Misdirected, 421, "Host"),
        (format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"), BadRequest, 400, "must be a path"),
    ] {
        let mut client = world.tunnel();
        client.send(&request).unwrap();
        let (answer, body) = client.read_answer().unwrap();
        let text = check_refusal(&request, &answer, &body, code, status);
        assert!(text.contains(says), "{request}: {text}");
        assert_eq!(client.read_to_close().unwrap(), 0, "{request}");
        assert!(text.contains(&host), "{request}: {text}");
        let event = world.refused(&request, code, status, APP, Some("GET"));
        assert_eq!(event.ingress, IngressKind::Connect);
    }

    // The server name is another than the CONNECT's: the certificate is still for the CONNECT's target.
    let (client, answer) = try_tunnel(&world.proxy, "sub.app.test", world.port).unwrap();
    assert_eq!(answer.status(), 200);
    let failed = client.into_tls_client(&world.pki.client_config(), APP).unwrap_err();
    assert!(failed.to_string().contains("certificate"), "{failed}");
    world.refused("certificate", OpaqueTunnel, 403, "sub.app.test", None);

    // No TLS: the 200 is out, so the tunnel can only be closed.
    let (mut client, answer) = try_tunnel(&world.proxy, APP, world.port).unwrap();
    assert_eq!(answer.status(), 200);
    client.send("SSH-2.0-OpenSSH_9.2\r\n").unwrap();
    assert_eq!(client.read_to_close().unwrap(), 0);
    world.refused("no TLS", OpaqueTunnel, 403, APP, None);
}

#[test]
fn failing_upstreams_are_no_refusals() {
    let world = World::new(false, |starter| starter);
    let no_tls = TestUpstream::plain(|mut conn, _| conn.send("SSH-2.0-OpenSSH_9.2\r\n").unwrap());
    let untrusted = TestUpstream::tls(&Pki::new(), APP, site(misbehave));
    let misnamed = TestUpstream::tls(&world.pki, OTHER, site(misbehave));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (scheme, path, port, says) in [
        ("http", "/garbage", world.port, "malformed"),
        ("http", "/ambiguous", world.port, "malformed"),
        ("http", "/nothing", world.port, "without an answer"),
        ("http", "/", closed, "refused the connection"),
        ("https", "/", no_tls.port(), "TLS"),
        ("https", "/", untrusted.port(), "certificate"),
        ("https", "/", misnamed.port(), "certificate"),
    ] {
        let what = format!("{scheme} {path} {says}");
        let host = format!("{APP}:{port}");
        let mut client = connect(&world.proxy);
        let (answer, body) = client.get(&format!("{scheme}://{host}{path}"), &host).unwrap();
        let text = String::from_utf8(body).unwrap();
        assert_eq!(answer.status(), 502, "{what}: {text}");
        assert_eq!(answer.field("x-deny-reason"), None, "{what}");
        assert_eq!(answer.field("connection"), Some("close"), "{what}");
        assert!(text.contains(&host) && text.contains(says), "{what}: {text}");
        assert_eq!(text.lines().count(), 1, "{what}: {text}");
        let (line, event) = world.proxy.next_event();
        assert_eq!((event.event, event.status, event.code), (EventKind::Failed, Some(502), None), "{line}");
        assert!(event.reason.is_some_and(|reason| reason.contains(says)), "{line}");
    }
}

#[test]
fn one_event_for_each_request_and_no_secret_in_any() {
    const SECRETS: [&str; 6] =
        ["QUERY-SECRET", "HEADER-SECRET", "DECIDER-SECRET", "CRED-SECRET", "BODY-SECRET", "ANSWER-SECRET"];
    let mut world = World::new(true, |starter| starter.arg("--debug"));
    let host = format!("{APP}:{}", world.port);
    let mut tunnel = world.tunnel();
    let paths = ["/set", "/cred", "/body", "/deny"];
    for path in paths {
        let head =
            format!("POST {path}?k=QUERY-SECRET HTTP/1.1\r\nHost: {host}\r\nX-Mine: HEADER-SECRET\r\n");
        tunnel.send(format!("{head}Content-Length: 11\r\n\r\nBODY-SECRET")).unwrap();
        let (answer, _) = tunnel.read_answer().unwrap();
        assert_eq!(answer.status(), if path == "/deny" { 418 } else { 200 }, "{path}");
    }
    world.proxy.signal(Signal::SIGTERM);
    let ended = world.proxy.wait();
    let lines = world.proxy.remaining_events();
    let events: Vec<Event> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), paths.len(), "{lines:?}");
    for (event, path) in events.iter().zip(paths) {
        assert_eq!(event.path.as_deref(), Some(path));
        assert_eq!((event.host.as_str(), event.port), (APP, world.port));
        assert_eq!((event.ingress, event.method.as_deref()), (IngressKind::Connect, Some("POST")));
        let (kind, status, sizes) = match path {
            "/deny" => (EventKind::Refused, 418, (0, 0)),
            _ => (EventKind::Allowed, 200, (11, 13)),
        };
        assert_eq!((event.event, event.status), (kind, Some(status)), "{path}");
        assert_eq!((event.bytes_in, event.bytes_out), sizes, "{path}");
    }
    // The upstream did get them, so there was something to leak.
    let seen = world.upstream.seen().take();
    let field = |at: usize, name| seen[at].field(name);
    assert_eq!(field(0, "x-key"), Some("DECIDER-SECRET"));
    assert_eq!(field(1, "authorization"), Some("Bearer CRED-SECRET"));
    assert_eq!(field(2, "x-mine"), Some("HEADER-SECRET"));
    for secret in SECRETS {
        assert!(!lines.iter().any(|line| line.contains(secret)), "{secret}: {lines:?}");
        assert!(!ended.stderr.contains(secret), "{secret}: {}", ended.stderr);
    }
}
