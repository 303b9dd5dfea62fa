//! `srt-decider-example` and the proxy that it starts: what goes out, what is logged, and that neither outlives the
//! other.

// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use srt_tests::proxy::{APP, Pki, Starter, TestProxy, TestUpstream, connect_tunnel, site};
use tempfile::TempDir;

const TOKEN: &str = "t0ken-of-the-host";

const RULES: &str = r#"
[[rule]]
name = "read"
host = "app.test"
port = PORT
method = "GET"
path = "/read/*"
action = "allow"
remove = ["x-spend"]
set = { X-Set = "by the decider" }
credential = { class = "any", env = "APP_TOKEN" }

[[rule]]
name = "small"
host = "app.test"
port = PORT
method = "POST"
json = { size = { max = 10 } }
action = "allow"

[[rule]]
name = "rest"
host = "app.test"
action = "deny"
status = 451
reason = "read only"
"#;

/// A decider with its proxy, and a site behind it.
struct Scene {
    dir: TempDir,
    pki: Pki,
    upstream: TestUpstream,
    proxy: TestProxy,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki::new();
        let upstream = TestUpstream::tls(
            &pki,
            APP,
            site(|conn, head| {
                std::io::copy(&mut conn.body(head, false), &mut std::io::sink())?;
                conn.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }),
        );
        let rules = dir.path().join("rules.toml");
        fs::write(&rules, RULES.replace("PORT", &upstream.port().to_string())).unwrap();
        let proxy = Starter::under_decider(&rules, Some(&dir.path().join("log")))
            .env("APP_TOKEN", TOKEN)
            .listen()
            .ca(&pki)
            .resolve(&[APP])
            .events()
            .start();
        Self { dir, pki, upstream, proxy }
    }

    /// Sends a request on a tunnel of its own; gives back status and text.
    fn send(&self, request: &str, fields: &str, body: &str) -> (u16, String) {
        let port = self.upstream.port();
        let mut client = connect_tunnel(&self.proxy, &self.pki, APP, port);
        let length = body.len();
        let head =
            format!("{request} HTTP/1.1\r\nHost: {APP}:{port}\r\n{fields}Content-Length: {length}\r\n\r\n");
        client.send(head + body).unwrap();
        let (answer, text) = client.read_answer().unwrap();
        (answer.status(), String::from_utf8_lossy(&text).into_owned())
    }

    fn rules(&self) -> PathBuf {
        self.dir.path().join("rules.toml")
    }

    /// The process id of the proxy.
    fn proxy_pid(&self) -> Pid {
        let pid = self.proxy.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        Pid::from_raw(children.trim().parse().unwrap())
    }
}

#[test]
fn requests_are_decided_by_the_rules() {
    let scene = Scene::new();
    let json = "Content-Type: application/json\r\n";
    for (request, fields, body, status, reason) in [
        ("GET /read/a", "X-Spend: small\r\nAuthorization: Bearer the-clients\r\n", "", 200, "ok"),
        ("GET /read/../secret", "", "", 451, "read only"),
        ("GET /read/a", "X-HTTP-Method-Override: DELETE\r\n", "", 451, "read only"),
        ("DELETE /read/a", "", "", 451, "read only"),
        ("POST /a", json, r#"{"size": 10}"#, 200, "ok"),
        ("POST /a", json, r#"{"size": 11}"#, 451, "read only"),
        ("POST /a", json, r#"{"size": 11, "size": 10}"#, 451, "read only"),
        ("POST /a", json, "", 451, "read only"),
    ] {
        let (is, text) = scene.send(request, fields, body);
        assert_eq!(is, status, "{request} {body}: {text}");
        assert!(text.contains(reason), "{request} {body}: {text}");
    }
    let seen = scene.upstream.seen().take();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].field("authorization"), Some("Bearer t0ken-of-the-host"));
    assert_eq!(seen[0].field("x-set"), Some("by the decider"));
    assert_eq!(seen[0].field("x-spend"), None);
    assert_eq!(seen[1].field("authorization"), None);
}

#[test]
fn the_credential_is_nowhere_but_in_the_request() {
    let mut scene = Scene::new();
    assert_eq!(scene.send("GET /read/a?key=its-query", "X-Key: its-header\r\n", "").0, 200);
    assert_eq!(scene.send("POST /a", "", "its-body").0, 451);

    let of_proxy = |what: &str| fs::read(format!("/proc/{}/{what}", scene.proxy_pid())).unwrap();
    for what in ["environ", "cmdline"] {
        assert!(!String::from_utf8_lossy(&of_proxy(what)).contains(TOKEN), "{what}");
    }
    scene.proxy.signal(Signal::SIGTERM);
    let exited = scene.proxy.wait();
    let log = fs::read_to_string(scene.dir.path().join("log")).unwrap();
    let verdicts: Vec<_> =
        ["\"verdict\":\"allow\"", "\"verdict\":\"need_body\"", "\"verdict\":\"deny\""].into_iter().collect();
    assert_eq!(log.lines().count(), verdicts.len(), "{log}");
    for (line, verdict) in log.lines().zip(verdicts) {
        assert!(line.contains(verdict), "{line}");
    }
    let told = log + &exited.stderr + &scene.proxy.remaining_events().concat();
    for secret in [TOKEN, "its-query", "its-header", "its-body"] {
        assert!(!told.contains(secret), "{secret}: {told}");
    }
}

#[test]
fn a_hangup_reloads_the_rules_and_keeps_them_if_they_do_not_parse() {
    let scene = Scene::new();
    assert_eq!(scene.send("GET /read/a", "", "").0, 200);
    let before = fs::read_to_string(scene.rules()).unwrap();

    fs::write(scene.rules(), before.replace("action", "acton")).unwrap();
    scene.proxy.signal(Signal::SIGHUP);
    let line = scene.proxy.next_line();
    assert!(line.contains("rules.toml:8: unknown key `acton`; did you mean `action`?"), "{line}");
    assert!(line.contains("the rules of before stay in force"), "{line}");
    assert_eq!(scene.send("GET /read/a", "", "").0, 200);

    fs::write(scene.rules(), before.replace("/read/*", "/other/*")).unwrap();
    scene.proxy.signal(Signal::SIGHUP);
    assert_eq!(scene.proxy.next_line(), "srt-decider-example: rules reloaded");
    assert_eq!(scene.send("GET /read/a", "", "").0, 451);
    assert_eq!(scene.send("GET /other/a", "", "").0, 200);

    fs::write(scene.rules(), before.replace("app.test", "other.test")).unwrap();
    scene.proxy.signal(Signal::SIGHUP);
    let line = scene.proxy.next_line();
    assert!(line.contains("they name other hosts or ports than before"), "{line}");
    // The proxy still asks, by the hello of the start.
    let (status, text) = scene.send("GET /read/a", "", "");
    assert_eq!(status, 403);
    assert!(text.contains("no rule names this host"), "{text}");
}

#[test]
fn signals_are_passed_on_and_the_proxys_status_is_ours() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut scene = Scene::new();
        assert_eq!(scene.send("GET /read/a", "", "").0, 200);
        scene.proxy.signal(signal);
        let exited = scene.proxy.wait();
        assert_eq!(exited.status.code(), Some(0), "{signal}: {}", exited.stderr);
    }
}

#[test]
fn a_proxy_that_is_killed_ends_the_decider() {
    let mut scene = Scene::new();
    assert_eq!(scene.send("GET /read/a", "", "").0, 200);
    kill(scene.proxy_pid(), Signal::SIGKILL).unwrap();
    assert_eq!(scene.proxy.wait().status.code(), Some(128 + 9));
}

#[test]
fn a_decider_that_is_killed_ends_the_proxy() {
    let mut scene = Scene::new();
    assert_eq!(scene.send("GET /read/a", "", "").0, 200);
    scene.proxy.signal(Signal::SIGKILL);
    // Both hold the other end of its stderr, so this waits for both.
    scene.proxy.wait();
    scene.proxy.remaining_events();
}

#[test]
fn the_status_of_a_proxy_that_does_not_start_is_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let rules = dir.path().join("rules.toml");
    fs::write(&rules, "").unwrap();
    let mut proxy = Starter::under_decider(&rules, None).arg("--no-such-option").start();
    let exited = proxy.wait();
    assert_eq!(exited.status.code(), Some(2), "{}", exited.stderr);
    assert!(exited.stderr.contains("--no-such-option"), "{}", exited.stderr);
}

#[test]
fn what_cannot_be_logged_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let pki = Pki::new();
    let rules = dir.path().join("rules.toml");
    fs::write(&rules, RULES.replace("PORT", "443")).unwrap();
    let proxy = Starter::under_decider(&rules, Some(Path::new("/dev/full")))
        .env("APP_TOKEN", TOKEN)
        .listen()
        .ca(&pki)
        .start();
    let (answer, text) = connect_tunnel(&proxy, &pki, APP, 443).get("/read/a", APP).unwrap();
    assert_eq!(answer.status(), 503);
    assert!(String::from_utf8_lossy(&text).contains("cannot write its log"));
}
