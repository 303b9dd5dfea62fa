//! Settings that are replaced while the proxy serves.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{PipeWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use srt_tests::proxy::{Starter, TestUpstream};
use srt_tests::sandbox_run::{AttachProxy, TestSession, hello_once, settings};

const HOSTS: [&str; 2] = ["a.localhost", "b.localhost"];

/// Settings that allow one of the hosts, and deny the other with a reason of their own.
fn only(allowed: usize) -> Value {
    let denied = HOSTS[1 - allowed];
    let reasons = json!({denied: format!("only {} now", HOSTS[allowed])});
    settings(
        json!({"allowedDomains": [HOSTS[allowed]], "deniedDomains": [denied], "deniedDomainReasons": reasons}),
    )
}

fn start(first: &Value) -> (AttachProxy, PipeWriter) {
    let (read, write) = std::io::pipe().unwrap();
    (AttachProxy::start_with(first, |starter| starter.fd("--control-fd", read.into())), write)
}

fn line(settings: &Value) -> Vec<u8> {
    format!("{settings}\n").into_bytes()
}

/// Waits until the proxy has said that it dropped something: what was written before is in force then.
fn wait_for_report(proxy: &AttachProxy) -> Vec<String> {
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("was dropped; the settings in force stay"))
    {
        lines.push(proxy.proxy.next_line());
    }
    lines
}

/// Which host the settings in force allow, by both hosts' answers.
fn in_force(session: &TestSession, port: u16) -> usize {
    let answers = HOSTS.map(|host| session.get(&format!("{host}:{port}")));
    let allowed = answers.iter().position(|(status, _)| *status == 200).unwrap();
    let refusal = &answers[1 - allowed];
    assert!(refusal.0 == 403 && refusal.1.contains(&format!("only {} now", HOSTS[allowed])), "{refusal:?}");
    allowed
}

/// One connection that asks for both hosts: each answer is one that some settings give, and both are of the same.
fn judge_one_connection(session: &TestSession, port: u16, first: usize) -> bool {
    let mut conn = session.connect();
    for (count, host) in [first, 1 - first].into_iter().enumerate() {
        let authority = format!("{}:{port}", HOSTS[host]);
        let (answer, body) = conn.get(&format!("http://{authority}/hello"), &authority).unwrap();
        let body = String::from_utf8(body).unwrap();
        match answer.status() {
            200 => assert!(count == 0 && body == "hello", "{count}: {body}"),
            403 => {
                assert!(body.contains(&format!("only {} now", HOSTS[1 - host])), "{body}");
                // A refusal ends the connection.
                return count == 1;
            }
            other => panic!("{other}: {body}"),
        }
    }
    panic!("one connection was let through by two policies");
}

#[test]
fn replaced_a_thousand_times_a_second_no_answer_is_half_of_one_and_half_of_another() {
    const CLIENTS: usize = 64;
    const UPDATES: u32 = 1500;
    let upstream = TestUpstream::plain(hello_once);
    let port = upstream.port();
    let (proxy, mut control) = start(&only(0));
    let sessions: Vec<_> = (0..4).map(|n| proxy.session(&format!("s{n}"), &[])).collect();
    let over = AtomicBool::new(false);
    let [allowed, refused] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (sessions, over, allowed, refused) = (&sessions, &over, &allowed, &refused);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let count = match judge_one_connection(&sessions[client % 4], port, client % 2) {
                        true => allowed,
                        false => refused,
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let lines = [line(&only(0)), line(&only(1))];
        let begun = Instant::now();
        for update in 0..UPDATES {
            control.write_all(&lines[update as usize % 2]).unwrap();
            // The rate is what is tested.
            thread::sleep(
                (begun + Duration::from_millis(update.into())).saturating_duration_since(Instant::now()),
            );
        }
        over.store(true, Ordering::Relaxed);
    });
    let (allowed, refused) = (allowed.into_inner(), refused.into_inner());
    assert!(allowed > CLIENTS && refused > CLIENTS, "{allowed} and {refused}");
    for update in 0..100 {
        control.write_all(&line(&only(update % 2))).unwrap();
        control.write_all(b"no settings\n").unwrap();
        wait_for_report(&proxy);
        assert_eq!(in_force(&sessions[update % 4], port), update % 2);
    }
}

#[test]
fn a_line_that_is_not_whole_and_valid_changes_nothing_and_is_reported() {
    let upstream = TestUpstream::plain(hello_once);
    let port = upstream.port();
    let (proxy, mut control) = start(&only(0));
    let session = proxy.session("s", &[]);
    let other = only(1).to_string();
    let network = only(1)["network"].clone();
    let mut unsupported = only(1);
    unsupported["network"]["parentProxy"] = json!({"http": "http://p.localhost:1"});
    let mut misspelt = only(1);
    misspelt["network"]["deniedDomain"] = json!([]);
    let huge = format!("{}{}", other, " ".repeat(5 << 20));
    for bad in [
        "{}",
        "null",
        "[]",
        "no settings",
        &other[..other.len() - 1],
        &format!("{other}{other}"),
        &json!({"network": network}).to_string(),
        &misspelt.to_string(),
        &unsupported.to_string(),
        &other.replace("b.localhost", "b.localhost\u{0}"),
        &"[".repeat(100_000),
        &huge,
    ] {
        control.write_all(bad.as_bytes()).unwrap();
        control.write_all(b"\n").unwrap();
        let lines = wait_for_report(&proxy);
        assert!(lines.iter().all(|line| line.len() < 500), "{lines:?}");
        assert_eq!(in_force(&session, port), 0, "{}", &bad[..bad.len().min(80)]);
    }
    control.write_all(b"\xff\xfe\n").unwrap();
    wait_for_report(&proxy);

    // Empty lines are none.
    control.write_all(b"\n  \n").unwrap();
    control.write_all(&line(&only(1))).unwrap();
    // Its end is missing, and then it never comes.
    control.write_all(only(0).to_string().as_bytes()).unwrap();
    drop(control);
    let lines = wait_for_report(&proxy);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("a last line without its end"), "{lines:?}");
    // The end of the stream leaves the last whole ones in force.
    assert_eq!(in_force(&session, port), 1);
}

#[test]
fn the_files_of_a_line_do_not_count_and_its_network_does() {
    let upstream = TestUpstream::plain(hello_once);
    let (proxy, mut control) = start(&only(0));
    let session = proxy.session("s", &[]);
    let mut other = only(1);
    other["filesystem"]["allowWrite"] = json!(["/"]);
    control.write_all(&line(&other)).unwrap();
    control.write_all(b"no settings\n").unwrap();
    assert!(wait_for_report(&proxy)[0].contains("filesystem.* does not change"));
    assert_eq!(in_force(&session, upstream.port()), 1);
}

#[test]
fn a_control_descriptor_that_fails_at_once_ends_the_proxy() {
    let (_attach, theirs) = srt_tests::sandbox_run::packet_pair();
    let (read, mut write) = std::io::pipe().unwrap();
    write.write_all(only(0).to_string().as_bytes()).unwrap();
    drop(write);
    let mut proxy = Starter::bare()
        .fd("--attach-fd", theirs)
        .fd("--settings-fd", read.into())
        .fd("--control-fd", File::open("/").unwrap().into())
        .start();
    let exited = proxy.wait();
    assert_eq!(exited.status.code(), Some(1));
    assert!(exited.stderr.contains("failed before its first line"), "{}", exited.stderr);
}
