//! Question one, and how the lists of hello, settings and session combine.

use std::collections::BTreeMap;
use std::sync::Arc;

use srt_shared::domain::Host;
use srt_shared::lists::{ListAnswer, Lists};

use crate::pipeline::refuse::Refusal;

/// The lists of all sources. Denied by one of them is denied; what is allowed must be so by each.
#[derive(Debug, Clone, Default)]
pub struct HostRules {
    hello: Option<Arc<Lists>>,
    settings: Option<SettingsLists>,
}

/// The lists of a settings file, and those of one session under it.
#[derive(Debug, Clone)]
pub struct SettingsLists {
    /// `network.allowedDomains` and `network.deniedDomains`.
    pub lists: Arc<Lists>,
    /// `network.deniedDomainReasons`, by the exact text of the entry.
    pub reasons: Arc<BTreeMap<String, String>>,
    /// What the session may reach besides: empty under `network.strictAllowlist`.
    pub session: Arc<Lists>,
}

impl HostRules {
    /// The lists of a decider's hello alone.
    pub fn from_hello(hello: Arc<Lists>) -> Self {
        Self { hello: Some(hello), settings: None }
    }

    /// The lists of settings, and of a decider's hello if there is one.
    pub fn from_settings(settings: SettingsLists, hello: Option<Arc<Lists>>) -> Self {
        Self { hello, settings: Some(settings) }
    }

    /// Whether settings are among the sources.
    pub fn has_settings(&self) -> bool {
        self.settings.is_some()
    }

    /// May anything go to this host and port?
    pub fn check(&self, host: &Host, port: u16) -> Result<(), Refusal> {
        if let Some(settings) = &self.settings {
            settings.check(host, port)?;
        }
        if let Some(hello) = &self.hello {
            check_hello(hello, host, port, self.settings.is_none())?;
        }
        Ok(())
    }
}

impl SettingsLists {
    fn check(&self, host: &Host, port: u16) -> Result<(), Refusal> {
        match self.lists.check(host, port) {
            ListAnswer::Allowed(_) => Ok(()),
            ListAnswer::Denied(entry) => Err(Refusal::HostNotAllowed {
                rule: format!("network.deniedDomains: {entry}"),
                reason: Some(self.reasons.get(entry.as_str()).cloned().unwrap_or_else(|| DENIED.to_owned())),
            }),
            ListAnswer::NotListed => match self.session.check(host, port) {
                ListAnswer::Allowed(_) => Ok(()),
                _ => Err(Refusal::HostNotAllowed { rule: "network.allowedDomains".to_owned(), reason: None }),
            },
        }
    }
}

const DENIED: &str = "host is on the deny list";

fn check_hello(lists: &Lists, host: &Host, port: u16, alone: bool) -> Result<(), Refusal> {
    // A decider that uses a strict host parser must not be asked about a name it cannot parse: in its protocol host
    // names are letters, digits and hyphens (RFC 952).
    if alone && host.name().is_some_and(|name| name.as_str().contains('_')) {
        return Err(Refusal::bad_request("the host name has an underscore"));
    }
    let (rule, reason) = match lists.check(host, port) {
        ListAnswer::Allowed(_) => return Ok(()),
        ListAnswer::Denied(entry) => (format!("deniedDomains: {entry}"), Some(DENIED.to_owned())),
        ListAnswer::NotListed => ("allowedDomains".to_owned(), None),
    };
    Err(Refusal::HostNotAllowed { rule, reason })
}

#[cfg(test)]
mod tests {
    use srt_shared::domain::{DomainPattern, ListKind};

    use super::*;

    fn lists(allowed: &[&str], denied: &[&str]) -> Arc<Lists> {
        let parse = |entries: &[&str], kind| {
            entries.iter().map(|e| DomainPattern::parse_settings(e, kind).unwrap()).collect::<Vec<_>>()
        };
        Arc::new(Lists::new(parse(allowed, ListKind::Allowed), parse(denied, ListKind::Denied)))
    }

    fn settings(allowed: &[&str], denied: &[&str], session: &[&str]) -> SettingsLists {
        let reasons = [("denied.test".to_owned(), "use b.test".to_owned())].into();
        SettingsLists {
            lists: lists(allowed, denied),
            reasons: Arc::new(reasons),
            session: lists(session, &[]),
        }
    }

    fn verdict(rules: &HostRules, host: &str) -> Result<(), String> {
        let host = Host::from_authority(host).unwrap();
        rules.check(&host, 443).map_err(|refusal| refusal.reason())
    }

    #[test]
    fn a_session_widens_settings_but_never_past_a_denial() {
        let rules = HostRules::from_settings(
            settings(&["a.test"], &["denied.test", "*.bad.test"], &["s.test", "denied.test", "x.bad.test"]),
            None,
        );
        assert_eq!(verdict(&rules, "a.test"), Ok(()));
        assert_eq!(verdict(&rules, "s.test"), Ok(()));
        assert_eq!(verdict(&rules, "denied.test"), Err("use b.test".to_owned()));
        assert_eq!(verdict(&rules, "x.bad.test"), Err(DENIED.to_owned()));
        assert!(verdict(&rules, "other.test").is_err());
    }

    #[test]
    fn with_a_decider_both_must_allow_and_either_denies() {
        let hello = lists(&["*.test.example", "only-hello.example"], &["no.test.example"]);
        let rules = HostRules::from_settings(
            settings(
                &["a.test.example", "no.test.example", "only-settings.example"],
                &["*.bad.test.example"],
                &["s.test.example", "s.example"],
            ),
            Some(hello),
        );
        assert_eq!(verdict(&rules, "a.test.example"), Ok(()));
        assert_eq!(verdict(&rules, "s.test.example"), Ok(()));
        for refused in [
            "no.test.example",
            "x.bad.test.example",
            "b.test.example",
            "only-settings.example",
            "only-hello.example",
            "s.example",
        ] {
            assert!(verdict(&rules, refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn underscores_are_a_decider_alones_bad_request() {
        let hello = HostRules::from_hello(lists(&["*.test.example"], &[]));
        let host = Host::from_authority("a_b.test.example").unwrap();
        assert!(matches!(hello.check(&host, 443), Err(Refusal::BadRequest(_))));
        assert_eq!(
            verdict(
                &HostRules::from_settings(settings(&["*.test.example"], &[], &[]), None),
                "a_b.test.example"
            ),
            Ok(())
        );
    }
}
