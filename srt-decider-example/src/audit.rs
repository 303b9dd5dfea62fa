//! The log: one JSON line for each verdict. Never a header value, a query, a body or a credential.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use serde::Serialize;
use srt_shared::{
    decider::{Decision, Req},
    event::Timestamp,
};

use crate::policy::Decided;

/// Where the log goes, if anywhere.
#[derive(Debug, Default)]
pub struct Audit {
    file: Option<File>,
}

#[derive(Serialize)]
struct Line<'a> {
    time: Timestamp,
    id: u64,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    method: &'a str,
    host: &'a str,
    port: u16,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u32>,
}

impl Audit {
    /// No log.
    pub fn off() -> Self {
        Self::default()
    }

    /// A log at the end of a file, which only its owner can read if it is made here.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self { file: Some(file) })
    }

    /// Writes a line about a verdict, in one write, so that lines of several writers do not mix.
    ///
    /// # Errors
    /// If it cannot be written; the request must then not go out.
    pub fn record(&mut self, req: &Req, decided: &Decided<'_>) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut line = Line {
            time: Timestamp::now(),
            id: req.id,
            verdict: "allow",
            rule: decided.rule.map(|rule| &*rule.name),
            method: &req.method,
            host: &req.host,
            port: req.port,
            path: &req.path,
            credential: None,
            status: None,
            reason: None,
            max: None,
        };
        match &decided.decision {
            Decision::Allow(edits) => line.credential = edits.cred().map(|cred| cred.class()),
            Decision::Deny(denial) => {
                line.verdict = "deny";
                line.status = Some(denial.status());
                line.reason = denial.reason();
            }
            Decision::NeedBody(max) => {
                line.verdict = "need_body";
                line.max = Some(max.max());
            }
        }
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        file.write_all(&text)
    }
}
