//! The decider of `docs/examples`, as people would run it: a process of its own, on two pipes.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use srt_tests::program::start;
use srt_tests::proxy::{APP, Pki, Starter, TestUpstream, connect_tunnel, site};

/// Killed when a test ends early; otherwise it has ended by itself by then.
struct Decider(Child);

impl Drop for Decider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn decider_py_allows_denies_and_places_its_credential() {
    let pki = Pki::new();
    let upstream = TestUpstream::tls(
        &pki,
        APP,
        site(|conn, head| {
            std::io::copy(&mut conn.body(head, false), &mut std::io::sink())?;
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }),
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/decider.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(APP).env("API_TOKEN", "the-token").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut decider = Decider(start(&mut command));
    let to_proxy = decider.0.stdout.take().unwrap();
    let from_proxy = decider.0.stdin.take().unwrap();
    let mut proxy = Starter::bare()
        .listen()
        .fd("--decider-in", to_proxy.into())
        .fd("--decider-out", from_proxy.into())
        .ca(&pki)
        .resolve(&[APP])
        .start();

    let long = format!(r#"{{"model": "small", "text": "{}"}}"#, "x".repeat(1 << 20));
    for (request, fields, body, status, reason) in [
        ("GET /v1/models", "", "", 200, ""),
        ("GET /v1/models/small", "Authorization: Bearer the-clients\r\nX_API_KEY: its-key\r\n", "", 200, ""),
        ("GET /v1/models/../messages", "", "", 403, "only GET"),
        ("GET /v1/models?limit=1", "", "", 403, "only GET"),
        ("DELETE /v1/models/small", "", "", 403, "only GET"),
        ("POST /v1/messages", "", r#"{"model": "small"}"#, 200, ""),
        ("POST /v1/messages", "", r#"{"model": "huge"}"#, 403, "only the models large, small"),
        ("POST /v1/messages", "", r#"{"model": "small", "model": "huge"}"#, 400, "a key twice"),
        ("POST /v1/messages", "", r#"["model"]"#, 400, "not a JSON object"),
        ("POST /v1/messages", "", r#"{"model": ["small"]}"#, 400, "not a JSON object"),
        ("POST /v1/messages", "", "", 400, "not a JSON object"),
        ("POST /v1/messages", "Content-Encoding: gzip\r\n", "xx", 415, "without a content encoding"),
        ("POST /v1/messages", "", &long, 413, "too long"),
    ] {
        let mut client = connect_tunnel(&proxy, &pki, APP, upstream.port());
        let host = format!("{APP}:{}", upstream.port());
        let length = body.len();
        client
            .send(format!(
                "{request} HTTP/1.1\r\nHost: {host}\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
            ))
            .unwrap();
        let (answer, text) = client.read_answer().unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(answer.status(), status, "{request} {body:.80}: {text}");
        assert!(text.contains(reason), "{request} {body:.80}: {text}");
        let seen = upstream.seen().take();
        assert_eq!(seen.len(), usize::from(status == 200), "{request} {body:.80}");
        for head in seen {
            assert_eq!(head.field("authorization"), Some("Bearer the-token"));
            assert_eq!(head.field("x_api_key"), None);
        }
    }

    // It ends when the proxy does, and not before.
    assert!(decider.0.try_wait().unwrap().is_none());
    proxy.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(proxy.wait().status.success());
    assert!(decider.0.wait().unwrap().success());
}
