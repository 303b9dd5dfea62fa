//! One `[[rule]]`.

use srt_shared::{
    decider::{Denial, Edits, FieldValue, NeedBody, SetField},
    domain::HostPattern,
    field_name::FieldName,
};

use super::{
    conditions::{self, BODY_KEYS, parse_field_name},
    document::{Document, Section, Value},
    error::RulesError,
    values::{one_or_more, small, text, texts},
};
use crate::{
    conditions::Conditions,
    credentials::{CredentialSource, Kept},
    rule::{Action, Grant, Rule},
};

const ALLOW_KEYS: [&str; 6] = ["set", "remove", "credential", "upgrade", "query_only", "json_only"];
const DENY_KEYS: [&str; 2] = ["status", "reason"];
const NEED_BODY_KEYS: [&str; 1] = ["max"];
const ACTIONS: [&str; 3] = ["allow", "deny", "need_body"];

/// Every key of a rule.
pub(super) fn keys() -> Vec<&'static str> {
    let own = ["name", "action", "set", "remove", "credential", "upgrade", "status", "reason", "max"];
    own.into_iter().chain(conditions::KEYS).collect()
}

pub(super) fn read(section: &Section<'_>) -> Result<Rule, RulesError> {
    let document = section.document;
    let Some(name) = section.find("name") else {
        return Err(section.missing("a rule needs a name: the log and --check call it by that"));
    };
    let name = text(document, "name", name)?;
    let Some(action) = section.find("action") else {
        return Err(section.missing("a rule needs an action: \"allow\", \"deny\" or \"need_body\""));
    };
    let word = text(document, "action", action)?;
    let mut conditions = conditions::read(section)?;
    let action = match word {
        "allow" => {
            section.refuse("allow", &DENY_KEYS)?;
            section.refuse("allow", &NEED_BODY_KEYS)?;
            default_port(&mut conditions);
            Action::Allow(Box::new(read_grant(section, &conditions)?))
        }
        "deny" => {
            section.refuse("deny", &ALLOW_KEYS)?;
            section.refuse("deny", &NEED_BODY_KEYS)?;
            Action::Deny(read_denial(section, "denied by a rule")?)
        }
        "need_body" => {
            section.refuse("need_body", &ALLOW_KEYS)?;
            section.refuse("need_body", &DENY_KEYS)?;
            section.refuse("need_body", &BODY_KEYS)?;
            default_port(&mut conditions);
            let Some(max) = section.find("max") else {
                return Err(section.missing("need_body needs max, the number of bytes to look at"));
            };
            Action::NeedBody(read_max(document, "max", max)?)
        }
        other => return Err(document.unknown(action.span().start, "action", other, &ACTIONS)),
    };
    Ok(Rule { name: name.into(), line: section.line(), conditions, action })
}

/// `status` and `reason`, of a rule or of `[otherwise]`.
pub(super) fn read_denial(section: &Section<'_>, reason: &'static str) -> Result<Denial, RulesError> {
    let document = section.document;
    let status = match section.find("status") {
        Some(value) => small(document, "status", value, "a status from 400 to 599")?,
        None => 403,
    };
    let given = section.find("reason");
    let reason = given.map_or(Ok(reason), |value| text(document, "reason", value))?;
    // Both keys are checked at once; the error says which it is.
    let at = section.find("status").or(given);
    Denial::new(status, Some(reason)).map_err(|error| match at {
        Some(at) => document.value_fault(at, "deny", error),
        None => section.missing("status and reason do not fit"),
    })
}

/// How many bytes of a body to ask for.
pub(super) fn read_max(
    document: &Document<'_>,
    key: &str,
    value: &Value<'_>,
) -> Result<NeedBody, RulesError> {
    const WANTED: &str = "1 to 33554432 bytes";
    NeedBody::new(small(document, key, value, WANTED)?)
        .ok_or_else(|| document.value_fault(value, key, format!("expected {WANTED}")))
}

/// What is allowed without a word about the port is HTTPS where it always is.
fn default_port(conditions: &mut Conditions) {
    if conditions.ports.is_empty() {
        conditions.ports.push(443);
    }
}

fn read_grant(section: &Section<'_>, conditions: &Conditions) -> Result<Grant, RulesError> {
    let document = section.document;
    if conditions.hosts.is_empty() {
        return Err(section.missing("an allow rule needs a host"));
    }
    let set = section.find("set").map_or(Ok(Vec::new()), |value| read_set(document, value))?;
    let remove = match section.find("remove") {
        Some(value) => read_remove(document, value)?,
        None => Vec::new(),
    };
    let edits = Edits::new(set, remove, None).map_err(|error| {
        let at = section.find("set").or(section.find("remove"));
        at.map_or_else(
            || section.missing("the edits do not fit"),
            |at| document.value_fault(at, "set and remove", error),
        )
    })?;
    let upgrade = match section.find("upgrade") {
        Some(value) => texts(document, "upgrade", value, |text| Ok::<_, String>(text.into()))?,
        None => Vec::new(),
    };
    let credential = match section.find("credential") {
        Some(value) => {
            let has_wildcard =
                conditions.hosts.iter().any(|host| matches!(host.host(), HostPattern::Subdomains(_)));
            if has_wildcard {
                let why = "goes to hosts that are named one by one: whoever owns any name below a wildcard would get it";
                return Err(document.value_fault(value, "credential", why));
            }
            Some(read_credential(document, value)?)
        }
        None => None,
    };
    Ok(Grant { edits, credential, upgrade })
}

fn read_set<'d>(document: &Document<'_>, value: &'d Value<'d>) -> Result<Vec<SetField>, RulesError> {
    let mut set = Vec::new();
    for (name, value) in Section::entries(document, "set", value)? {
        let label = format!("set.{name}");
        let name = parse_field_name(document, &label, name, value)?;
        let values = texts(document, &label, value, |text| match FieldValue::parse(text) {
            Ok(value) if value.to_latin1().is_some() => Ok(value),
            Ok(_) => Err("a character that HTTP headers cannot carry".to_owned()),
            Err(error) => Err(error.to_string()),
        })?;
        set.push(SetField { name, values });
    }
    Ok(set)
}

fn read_remove<'d>(document: &Document<'_>, value: &'d Value<'d>) -> Result<Vec<FieldName>, RulesError> {
    one_or_more(document, "remove", value)?
        .into_iter()
        .map(|value| parse_field_name(document, "remove", text(document, "remove", value)?, value))
        .collect()
}

fn read_credential<'d>(
    document: &Document<'_>,
    value: &'d Value<'d>,
) -> Result<CredentialSource, RulesError> {
    const HOW: &str = "write { class = \"github\", env = \"GITHUB_TOKEN\" }, or file = \"…\" in place of env";
    let (mut class, mut kept) = (None, Vec::new());
    for (word, value) in Section::entries(document, "credential", value)? {
        let label = format!("credential.{word}");
        let content = text(document, &label, value)?;
        if content.is_empty() {
            return Err(document.value_fault(value, &label, "is empty"));
        }
        match word {
            "class" => class = Some(content.into()),
            "env" => kept.push(Kept::Variable(content.into())),
            "file" => {
                let beside = document.path.parent().unwrap_or(document.path);
                kept.push(Kept::File(beside.join(content)));
            }
            _ => return Err(document.unknown(value.span().start, "key", word, &["class", "env", "file"])),
        }
    }
    match (class, kept.pop(), kept.pop()) {
        (Some(class), Some(kept), None) => {
            Ok(CredentialSource { class, kept, line: document.line(value.span().start) })
        }
        _ => Err(document.value_fault(value, "credential", HOW)),
    }
}
