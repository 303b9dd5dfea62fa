//! `--check`: what a rules file says, and what it would say to a request.

use std::{
    fmt::Write,
    fs::File,
    io::{self, Read},
    path::Path,
};

use srt_shared::{
    decider::{Body, Edits, NeedBody, Req},
    limits::MAX_NEED_BODY,
};

use crate::{
    ask::Ask,
    rule::{Action, Rule},
    rules::{Choice, Rules},
};

/// What is to be told, and whether the request would be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Lines for people.
    pub text: String,
    /// Whether the request is allowed; without a request, whether the file is in order.
    pub allowed: bool,
}

/// What the file as a whole says: its rules, the hosts, and which credentials are not there.
pub fn describe(rules: &Rules, path: &Path) -> Report {
    let mut text = format!("{}: {} rules\n", path.display(), rules.rules().len());
    for rule in rules.rules() {
        line(&mut text, format_args!("  line {}: {} ({})", rule.line, rule.name, word(&rule.action)));
        if let Action::Allow(grant) = &rule.action
            && let Some(source) = &grant.credential
            && let Err(error) = source.read()
        {
            line(&mut text, format_args!("    warning: line {}: credential: {error}", source.line));
        }
    }
    let hosts: Vec<_> = rules.hello().allowed().iter().map(|host| host.as_str()).collect();
    match hosts.as_slice() {
        [] => text.push_str("no rule names a host: the proxy refuses everything without asking\n"),
        hosts => line(&mut text, format_args!("the proxy asks about: {}", hosts.join(", "))),
    }
    Report { text, allowed: true }
}

/// Which rule decides about a request, and why those above it do not.
pub fn explain(rules: &Rules, req: &Req, body: Option<&[u8]>) -> Report {
    let query = if req.query.is_some() { "?…" } else { "" };
    let mut text = format!("{} {}:{}{}{query}\n", req.method, req.host, req.port, req.path);
    let mut shown = None;
    loop {
        let mut passed_over = String::new();
        let choice = rules.decide(&Ask::new(req, shown.as_ref()), |rule, why| {
            line(&mut passed_over, format_args!("  line {}: {}: no: {why}", rule.line, rule.name));
        });
        let rule = |at: usize| &rules.rules()[at];
        match choice {
            Choice::NeedBody(at, max) if shown.is_none() => {
                tell(&mut text, rule(at), format_args!("looks at up to {} bytes of the body", max.max()));
                let body = body.unwrap_or_default();
                if matches!(req.method.as_str(), "GET" | "HEAD" | "OPTIONS") && !body.is_empty() {
                    text.push_str("  the proxy: DENY 403 bodyless_method_body\n");
                    return Report { text, allowed: false };
                }
                shown = Some(show(body, max));
                continue;
            }
            // The rules ask for a body once; to ask again would break the protocol.
            Choice::NeedBody(..) => return Report { text, allowed: false },
            Choice::Allow(at) => {
                text.push_str(&passed_over);
                let effect = match &rule(at).action {
                    Action::Allow(grant) => {
                        describe_edits(&grant.edits, grant.credential.as_ref().map(|source| &*source.class))
                    }
                    _ => String::new(),
                };
                tell(&mut text, rule(at), format_args!("ALLOW{effect}"));
                return Report { text, allowed: true };
            }
            Choice::Deny(at, denial) => {
                text.push_str(&passed_over);
                let reason = denial.reason().unwrap_or("no reason");
                match at {
                    Some(at) => tell(&mut text, rule(at), format_args!("DENY {} {reason}", denial.status())),
                    None => line(&mut text, format_args!("  otherwise: DENY {} {reason}", denial.status())),
                }
                return Report { text, allowed: false };
            }
        }
    }
}

/// Reads as much of a body as could matter. `-` is the standard input.
///
/// # Errors
/// If the file cannot be read.
pub fn read_body(path: &Path) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let limit = u64::from(MAX_NEED_BODY) + 1;
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut body)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut body)?;
    }
    Ok(body)
}

/// What the proxy would show of a body.
fn show(body: &[u8], max: NeedBody) -> Body {
    let max = usize::try_from(max.max()).unwrap_or(usize::MAX);
    Body { id: 1, data: body[..body.len().min(max)].to_vec(), cut: body.len() > max }
}

fn describe_edits(edits: &Edits, class: Option<&str>) -> String {
    let names = |label: &str, names: Vec<&str>| match names.as_slice() {
        [] => String::new(),
        names => format!(", {label} {}", names.join(" ")),
    };
    let removed = names("removes", edits.remove().iter().map(|name| name.as_str()).collect());
    let set = names("sets", edits.set().iter().map(|field| field.name.as_str()).collect());
    let credential = class.map(|class| format!(", with the credential of class {class}"));
    format!("{removed}{set}{}", credential.unwrap_or_default())
}

fn word(action: &Action) -> &'static str {
    match action {
        Action::Allow(_) => "allow",
        Action::Deny(_) => "deny",
        Action::NeedBody(_) => "need_body",
    }
}

fn tell(text: &mut String, rule: &Rule, what: std::fmt::Arguments<'_>) {
    line(text, format_args!("  line {}: {}: {what}", rule.line, rule.name));
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("invariant: writing to a string cannot fail");
}
