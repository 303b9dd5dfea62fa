//! Settings, and the lines that replace them while the proxy runs.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{ErrorKind, PipeWriter, Write, pipe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use srt_tests::proxy::{
    APP, PATIENCE, Pki, Starter, TestProxy, TestUpstream, connect, connect_tunnel, site, try_tunnel,
};

const OTHER: &str = "other.test";

fn settings(network: Value) -> Value {
    json!({"network": network, "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}})
}

/// Allows one of two hosts and denies the other, giving `name` as the reason.
fn policy(name: &str, allowed: &str, denied: &str) -> Value {
    settings(json!({
        "allowedDomains": [allowed, denied], "deniedDomains": [denied], "deniedDomainReasons": {denied: name},
    }))
}

fn with_control(starter: Starter, first: &Value) -> (Starter, PipeWriter) {
    let (read, write) = pipe().unwrap();
    (starter.settings(first).fd("--control-fd", read.into()), write)
}

fn send(control: &mut PipeWriter, line: &Value) {
    control.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn plain_site() -> TestUpstream {
    TestUpstream::plain(site(|_, _| Err(ErrorKind::Unsupported.into())))
}

/// What a new connection gets from a host: its answer, or the reason of the refusal.
fn ask(proxy: &TestProxy, host: &str, port: u16) -> String {
    let host = format!("{host}:{port}");
    let (answer, body) = connect(proxy).get(&format!("http://{host}/hello"), &host).unwrap();
    format!("{} {}", answer.status(), String::from_utf8_lossy(&body))
}

/// Sends a line, and waits for its effect.
fn wait_until(control: &mut PipeWriter, line: &Value, in_force: impl Fn() -> bool) {
    send(control, line);
    let begun = Instant::now();
    while !in_force() {
        assert!(begun.elapsed() < PATIENCE, "the line has no effect");
    }
}

#[test]
fn no_answer_is_given_that_neither_policy_gives() {
    let a = policy("reason A", APP, OTHER);
    let b = policy("reason B", OTHER, APP);
    let (starter, mut control) = with_control(Starter::bare().listen().resolve(&[APP, OTHER]), &a);
    let proxy = starter.start();
    let upstream = plain_site();
    let port = upstream.port();
    let done = AtomicBool::new(false);
    let (seen_a, seen_b) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // One connection, so one policy: both answers must be the same one's.
                    let mut conn = connect(&proxy);
                    let mut get = |host: &str| {
                        let host = format!("{host}:{port}");
                        conn.get(&format!("http://{host}/hello"), &host).unwrap()
                    };
                    let (first, refused) = get(APP);
                    let (refused, reason) = if first.status() == 200 {
                        seen_a.fetch_add(1, Ordering::Relaxed);
                        (get(OTHER), "reason A")
                    } else {
                        seen_b.fetch_add(1, Ordering::Relaxed);
                        ((first, refused), "reason B")
                    };
                    let text = String::from_utf8(refused.1).unwrap();
                    assert!(refused.0.status() == 403 && text.contains(reason), "{reason}: {text}");
                }
            });
        }
        let begun = Instant::now();
        for (round, line) in [&b, &a].into_iter().cycle().take(2000).enumerate() {
            send(&mut control, line);
            thread::sleep(Duration::from_millis(round as u64).saturating_sub(begun.elapsed()));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(seen_a.into_inner() > 0 && seen_b.into_inner() > 0, "both policies were in force");

    // Lines of the storm may still wait in the pipe, and each of them has its effect: the reason of the one behind them
    // says when they have passed.
    let c = policy("reason C", OTHER, APP);
    wait_until(&mut control, &c, || ask(&proxy, APP, port).contains("reason C"));
    // The last line stays in force once it is.
    for (line, host) in [(&a, APP), (&b, OTHER), (&a, APP)] {
        wait_until(&mut control, line, || ask(&proxy, host, port) == "200 hello");
        for _ in 0..20 {
            assert_eq!(ask(&proxy, host, port), "200 hello");
        }
    }
}

#[test]
fn a_line_that_is_no_settings_changes_nothing_and_is_told() {
    let (starter, mut control) =
        with_control(Starter::bare().listen().resolve(&[APP]), &policy("first", APP, OTHER));
    let mut proxy = starter.start();
    let upstream = plain_site();
    let open = settings(json!({"allowedDomains": [APP, OTHER], "deniedDomains": []})).to_string();
    let unknown_value = open.replace("\"deniedDomains\":[]", "\"deniedDomains\":\"SECRET\"");
    assert_ne!(open, unknown_value);
    let mut huge = open.clone().into_bytes();
    huge.resize(5 << 20, b' ');
    for (line, says) in [
        (b"{}".to_vec(), "network"),
        (b"null".to_vec(), "invalid"),
        (b"\x00\xff\x80binary".to_vec(), "invalid"),
        (open.as_bytes()[..open.len() - 1].to_vec(), "invalid"),
        (format!("{open}{open}").into_bytes(), "invalid"),
        (format!("\u{feff}{open}").into_bytes(), "invalid"),
        (unknown_value.into_bytes(), "network.deniedDomains"),
        (huge, "4194304"),
    ] {
        control.write_all(&line).unwrap();
        control.write_all(b"\n").unwrap();
        let mut told = String::new();
        while !told.contains("was dropped") {
            told += &proxy.next_line();
        }
        assert!(told.contains(says), "{says}: {told}");
        assert!(!told.contains("SECRET"), "{told}");
        assert!(ask(&proxy, OTHER, upstream.port()).contains("first"));
    }
    // A line without its end is none, even at the end.
    control.write_all(open.as_bytes()).unwrap();
    drop(control);
    assert!(proxy.next_line().contains("without its end"));
    assert!(ask(&proxy, OTHER, upstream.port()).contains("first"));
    assert_eq!(ask(&proxy, APP, upstream.port()), "200 hello");
    assert!(proxy.is_running());
}

#[test]
fn a_control_descriptor_that_fails_before_its_first_line_ends_the_proxy() {
    let directory = File::open("/").unwrap();
    let starter = Starter::bare().listen().settings(&policy("first", APP, OTHER));
    let ended = starter.fd("--control-fd", directory.into()).start().wait();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("--control-fd"), "{}", ended.stderr);
}

#[test]
fn a_line_without_tls_termination_does_not_open_the_tunnels() {
    let pki = Pki::new();
    let upstream = TestUpstream::tls(&pki, APP, site(|_, _| Err(ErrorKind::Unsupported.into())));
    let list = json!({"allowedDomains": [APP], "deniedDomains": []});
    let mut terminating = list.clone();
    terminating["tlsTerminate"] = json!({});
    let starter = Starter::bare().listen().ca(&pki).resolve(&[APP]);
    let (starter, mut control) = with_control(starter, &settings(terminating));
    let proxy = starter.start();
    for _ in 0..2 {
        send(&mut control, &settings(list.clone()));
        // The second time the first line is in force.
        assert!(proxy.next_line().contains("whether TLS is terminated does not change"));
    }
    let mut tunnel = connect_tunnel(&proxy, &pki, APP, upstream.port());
    let host = format!("{APP}:{}", upstream.port());
    assert_eq!(tunnel.get("/hello", &host).unwrap().1, b"hello");
}

#[test]
fn a_setting_without_effect_is_named() {
    let network = json!({"allowedDomains": [APP], "deniedDomains": [], "someLaterKey": true});
    let proxy = Starter::bare().listen().settings(&settings(network)).start();
    let line = proxy.next_line();
    assert!(line.contains("network.someLaterKey") && line.contains("no effect"), "{line}");
}

#[test]
fn a_host_that_does_not_hear_us_loses_lines_and_nothing_else() {
    let (starter, mut control) =
        with_control(Starter::bare().listen().resolve(&[APP]), &policy("first", APP, OTHER));
    let mut proxy = starter.arg("--debug").unheard().start();
    let upstream = plain_site();
    control.write_all(b"no settings\n").unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&proxy, APP, upstream.port()), "200 hello");
        assert!(ask(&proxy, OTHER, upstream.port()).contains("first"));
        assert_eq!(try_tunnel(&proxy, OTHER, 443).unwrap().1.status(), 403);
    }
    assert!(proxy.is_running());
}
