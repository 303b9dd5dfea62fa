//! The file as a whole.

use std::path::Path;

use srt_shared::{
    decider::{Hello, NeedBody},
    domain::{DomainPattern, HostPattern},
};
use toml::de::DeValue;

use super::{
    Rules, deny,
    document::{Document, Section},
    error::RulesError,
    rule,
    values::texts,
};
use crate::{limits::DEFAULT_MAX_BODY, rule::Rule};

const KEYS: [&str; 4] = ["denied_hosts", "max_body", "otherwise", "rule"];

pub(super) fn read(text: &str, path: &Path) -> Result<Rules, RulesError> {
    let document = Document::new(path, text);
    let root = document.parse()?;
    let file = Section::new(&document, root.get_ref(), 0, &KEYS)?;
    let denied = match file.find("denied_hosts") {
        Some(value) => {
            texts(&document, "denied_hosts", value, |text| match DomainPattern::parse_hello(text) {
                Ok(_) => Ok(text),
                Err(error) => Err(format!("{text:?}: {error}")),
            })?
        }
        None => Vec::new(),
    };
    let max_body = match file.find("max_body") {
        Some(value) => rule::read_max(&document, "max_body", value)?,
        None => {
            NeedBody::new(DEFAULT_MAX_BODY).expect("invariant: the default is within the protocol's range")
        }
    };
    let otherwise = match file.find("otherwise") {
        Some(value) => {
            let DeValue::Table(table) = value.get_ref() else {
                return Err(document.kind_fault(value, "otherwise", "a table"));
            };
            let section = Section::new(&document, table, value.span().start, &["status", "reason"])?;
            rule::read_denial(&section, NO_RULE)?
        }
        None => deny(NO_RULE),
    };
    let rules = read_rules(&document, &file)?;
    let allowed = hosts_of(&rules);
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let hello = Hello::new(&allowed, &denied).map_err(|error| match file.find("denied_hosts") {
        Some(at) => document.value_fault(at, "denied_hosts", error),
        None => file.missing("the hosts do not fit into a hello"),
    })?;
    if hello.encode(&mut Vec::new()).is_err() {
        return Err(file.missing("there are more hosts than fit into a hello"));
    }
    Ok(Rules { rules, max_body, otherwise, lists: hello.clone().into_lists(), hello })
}

const NO_RULE: &str = "no rule allows this request";

fn read_rules(document: &Document<'_>, file: &Section<'_>) -> Result<Vec<Rule>, RulesError> {
    let Some(value) = file.find("rule") else { return Ok(Vec::new()) };
    let DeValue::Array(tables) = value.get_ref() else {
        return Err(document.kind_fault(value, "rule", "a list of tables: write [[rule]] above each"));
    };
    let keys = rule::keys();
    let mut rules: Vec<Rule> = Vec::new();
    for value in tables {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(document.kind_fault(value, "rule", "a table"));
        };
        let section = Section::new(document, table, value.span().start, &keys)?;
        let rule = rule::read(&section)?;
        if let Some(other) = rules.iter().find(|other| other.name == rule.name) {
            let why = format!("the rule of line {} is called so too", other.line);
            return Err(document.value_fault(value, "name", why));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// Every host that a rule names, with the ports it names: the proxy asks about these and refuses the rest.
fn hosts_of(rules: &[Rule]) -> Vec<String> {
    let mut hosts = Vec::new();
    for rule in rules {
        for host in &rule.conditions.hosts {
            let text = match host.host() {
                HostPattern::Addr(std::net::IpAddr::V6(addr)) => format!("[{addr}]"),
                _ => host.as_str().to_owned(),
            };
            match rule.conditions.ports.as_slice() {
                [] => hosts.push(text),
                ports => hosts.extend(ports.iter().map(|port| format!("{text}:{port}"))),
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    hosts.retain(|host| seen.insert(host.clone()));
    hosts
}
