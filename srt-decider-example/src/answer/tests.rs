use super::*;
use crate::request::test_request;

const RULES: &str = r#"
[[rule]]
name = "read"
host = "a.test"
method = "GET"
action = "allow"
credential = { class = "any", file = "token" }
[[rule]]
name = "write"
host = "a.test"
method = "POST"
json = { a = 1 }
action = "allow"
"#;

fn answerer(dir: &std::path::Path, audit: Audit) -> Answerer {
    std::fs::write(dir.join("token"), "s3cret\n").unwrap();
    std::fs::write(dir.join("rules.toml"), RULES).unwrap();
    let policy = CurrentPolicy::load(&dir.join("rules.toml")).unwrap();
    Answerer::new(Arc::new(policy), audit)
}

fn req(id: u64, method: &str) -> FromProxy {
    let headers = [("content-type", "application/json")];
    FromProxy::Req(Box::new(Req { id, ..test_request(method, Some("key=s3cret"), &headers) }))
}

fn body(id: u64, data: &str) -> FromProxy {
    FromProxy::Body(Body { id, data: data.into(), cut: false })
}

fn decision(reply: Result<Reply, OutOfOrder>) -> Decision {
    match reply.unwrap() {
        Reply::Verdict(verdict) => verdict.decision,
        Reply::Hello => panic!("a hello"),
    }
}

#[test]
fn a_request_and_its_body_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let mut answerer = answerer(dir.path(), Audit::off());
    assert!(matches!(answerer.answer(FromProxy::Hello), Ok(Reply::Hello)));
    let Decision::Allow(edits) = decision(answerer.answer(req(1, "GET"))) else { panic!() };
    assert_eq!(edits.cred().unwrap().credential().expose(), b"s3cret");
    assert!(matches!(decision(answerer.answer(req(2, "POST"))), Decision::NeedBody(_)));
    assert!(matches!(decision(answerer.answer(req(3, "POST"))), Decision::NeedBody(_)));
    assert!(matches!(decision(answerer.answer(body(3, "{}"))), Decision::Deny(_)));
    assert!(matches!(decision(answerer.answer(body(2, r#"{"a":1}"#))), Decision::Allow(_)));
}

#[test]
fn what_comes_out_of_order_ends_the_link() {
    let dir = tempfile::tempdir().unwrap();
    let start = || answerer(dir.path(), Audit::off());
    assert_eq!(start().answer(req(1, "GET")).unwrap_err(), OutOfOrder::NoHello);
    let mut greeted = start();
    greeted.answer(FromProxy::Hello).unwrap();
    assert_eq!(greeted.answer(FromProxy::Hello).unwrap_err(), OutOfOrder::SecondHello);
    assert_eq!(greeted.answer(body(1, "")).unwrap_err(), OutOfOrder::UnaskedBody);
    greeted.answer(req(2, "POST")).unwrap();
    assert_eq!(greeted.answer(req(2, "GET")).unwrap_err(), OutOfOrder::Id);
    greeted.answer(body(2, "")).unwrap();
    assert_eq!(greeted.answer(body(2, "")).unwrap_err(), OutOfOrder::UnaskedBody);
}

#[test]
fn bodies_that_never_come_are_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut answerer = answerer(dir.path(), Audit::off());
    answerer.answer(FromProxy::Hello).unwrap();
    answerer.answer(req(1, "POST")).unwrap();
    answerer.answer(req(2 + MAX_WAITING, "POST")).unwrap();
    assert_eq!(answerer.waiting.len(), 1);
    assert!(matches!(decision(answerer.answer(body(1, r#"{"a":1}"#))), Decision::Deny(_)));
}

#[test]
fn the_log_has_every_verdict_and_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut answerer = answerer(dir.path(), Audit::open(&log).unwrap());
    answerer.answer(FromProxy::Hello).unwrap();
    answerer.answer(req(1, "GET")).unwrap();
    answerer.answer(req(2, "POST")).unwrap();
    answerer.answer(body(2, r#"{"a":"s3cret"}"#)).unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdicts: Vec<_> = lines.iter().map(|line| line["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["allow", "need_body", "deny"]);
    assert_eq!((&lines[0]["rule"], &lines[0]["credential"]), (&"read".into(), &"any".into()));
    assert_eq!(lines[2]["status"], 403);
}

#[test]
fn what_cannot_be_logged_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let full = Audit::open(std::path::Path::new("/dev/full")).unwrap();
    let mut answerer = answerer(dir.path(), full);
    answerer.answer(FromProxy::Hello).unwrap();
    let Decision::Deny(denial) = decision(answerer.answer(req(1, "GET"))) else { panic!("allowed") };
    assert_eq!(denial.status(), 503);
}

#[test]
fn a_reload_that_fails_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.toml");
    let mut answerer = answerer(dir.path(), Audit::off());
    answerer.answer(FromProxy::Hello).unwrap();
    for broken in ["", "x"] {
        // Neither a broken file nor a missing credential is half in force.
        std::fs::write(&path, format!("{RULES}{broken}")).unwrap();
        std::fs::remove_file(dir.path().join("token")).ok();
        assert!(answerer.policy.reload().is_err());
        let id = answerer.newest + 1;
        assert!(matches!(decision(answerer.answer(req(id, "GET"))), Decision::Allow(_)));
    }
    std::fs::write(&path, "").unwrap();
    assert_eq!(answerer.policy.reload().unwrap(), crate::policy::Reloaded::HostsKept);
    let id = answerer.newest + 1;
    assert!(matches!(decision(answerer.answer(req(id, "GET"))), Decision::Deny(_)));
}
