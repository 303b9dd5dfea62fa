//! The ready-made rules files, request by request: what they must allow, and every way round that they must refuse.

// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use srt_decider_example::{check::explain, request::parse_request, rules::Rules};

use Verdict::{Allow, Deny};

mod rule_files {
    pub mod github;
    pub mod llm;
    pub mod registries;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// By the rule whose name begins so.
    Allow(&'static str),
    /// By the rule whose name begins so, or for a reason that has this in it.
    Deny(&'static str),
}

/// One row: a request, its headers, its body, and what is to become of it.
type Row = (&'static str, &'static [&'static str], &'static str, Verdict);

const JSON: &[&str] = &["Content-Type: application/json"];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples").join(name)
}

fn check(name: &str, rows: &[Row]) {
    let rules = Rules::read(&file(name)).unwrap();
    for (at, (request, headers, body, verdict)) in rows.iter().enumerate() {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        let req = parse_request(request, &headers).unwrap();
        let report = explain(&rules, &req, Some(body.as_bytes()));
        let last = report.text.lines().last().unwrap();
        let (word, expected, is_allowed) = match verdict {
            Allow(expected) => (": ALLOW", expected, true),
            Deny(expected) => (": DENY", expected, false),
        };
        assert!(
            report.allowed == is_allowed && last.contains(word) && last.contains(expected),
            "{name}, row {at}: {request} {headers:?} {body}: expected {verdict:?}\n{}",
            report.text
        );
    }
}

#[test]
fn read_github_push_one_repo() {
    check("read-github-push-one-repo.toml", rule_files::github::ROWS);
}

#[test]
fn package_registries_read_only() {
    check("package-registries-read-only.toml", rule_files::registries::ROWS);
}

#[test]
fn llm_api_injected_key() {
    check("llm-api-injected-key.toml", rule_files::llm::ROWS);
}

/// A body of which the file's own limit shows only the harmless beginning.
#[test]
fn a_cut_body_is_never_allowed() {
    for (name, request, headers, start, filler) in [
        (
            "read-github-push-one-repo.toml",
            "POST https://api.github.com/graphql",
            vec!["Content-Type: application/json".to_owned()],
            r#"{"query":"{ viewer { login } }"}"#,
            " ",
        ),
        (
            "llm-api-injected-key.toml",
            "POST https://api.openai.com/v1/responses",
            vec!["Content-Type: application/json".to_owned(), "X-Spend: small".to_owned()],
            r#"{"model":"gpt-5-mini","max_output_tokens":10,"input":"a"}"#,
            " ",
        ),
    ] {
        let rules = Rules::read(&file(name)).unwrap();
        let req = parse_request(request, &headers).unwrap();
        assert!(explain(&rules, &req, Some(start.as_bytes())).allowed, "{name}");
        let long = format!("{start}{}", filler.repeat(5 << 20));
        let report = explain(&rules, &req, Some(long.as_bytes()));
        assert!(!report.allowed, "{name}: {}", report.text);
        assert!(report.text.contains("longer than"), "{name}: {}", report.text);
    }
}

#[test]
fn deny_all_with_log() {
    check(
        "deny-all-with-log.toml",
        &[
            ("GET https://github.com/", &[], "", Deny("everything")),
            ("GET http://api.github.com/x", &[], "", Deny("everything")),
            ("CONNECT https://www.npmjs.org/", &[], "", Deny("everything")),
            ("GET https://registry.npmjs.org/a/../b", &[], "", Deny("everything")),
            ("GET https://npmjs.org/", &[], "", Deny("no rule names this host")),
        ],
    );
}

#[test]
fn there_are_at_least_sixty_rows() {
    let rows = [rule_files::github::ROWS, rule_files::registries::ROWS, rule_files::llm::ROWS];
    assert!(rows.iter().map(|rows| rows.len()).sum::<usize>() >= 60);
}
