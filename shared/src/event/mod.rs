//! Event records: what was allowed, refused, failed, closed.
//!
//! One JSON object a line on `--events-fd` and in `--violations FILE`, one packet on an attach session. Never a
//! header value, a query, a body or a credential.

mod code;
mod reason;
mod time;

use serde::{Deserialize, Serialize};

pub use code::RefusalCode;
pub use reason::{clean_reason, status_phrase};
pub use time::{Timestamp, TimestampError};

/// One event. Readers ignore keys they do not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When it happened.
    pub time: Timestamp,
    /// What happened.
    pub event: EventKind,
    /// The attached sandbox, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How the client came in.
    pub ingress: IngressKind,
    /// The canonical target, IPv6 without brackets.
    pub host: String,
    /// The port of the target.
    pub port: u16,
    /// The method, where there is a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The path without its query, where there is a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Why it was refused, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<RefusalCode>,
    /// The status answered, where there is a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The entry or key of the policy that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, for people; cleaned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Bytes from the client.
    pub bytes_in: u64,
    /// Bytes to the client.
    pub bytes_out: u64,
    /// How long it took, in milliseconds.
    pub ms: f64,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A request or connection was let through.
    Allowed,
    /// The policy refused it.
    Refused,
    /// The policy let it through, the upstream failed.
    Failed,
    /// A connection ended.
    Closed,
}

/// How a client came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IngressKind {
    /// An absolute-form request.
    Http,
    /// A CONNECT tunnel.
    Connect,
    /// SOCKS.
    Socks,
    /// An intercepted connection.
    Transparent,
    /// A question to the resolver.
    Dns,
}

impl Event {
    /// The line that `srt` prints inside `<sandbox_violations>`.
    pub fn violation_line(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let reason = self.reason.as_deref().unwrap_or("no reason given");
        format!("deny network-outbound {host}:{} ({reason})", self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Event {
        Event {
            time: "2026-11-29T12:00:00.123Z".parse().unwrap(),
            event: EventKind::Refused,
            session: Some("build-42".into()),
            ingress: IngressKind::Connect,
            host: "example.com".into(),
            port: 443,
            method: Some("GET".into()),
            path: Some("/v1/x".into()),
            code: Some(RefusalCode::HostNotAllowed),
            status: Some(403),
            rule: Some("network.allowedDomains".into()),
            reason: Some("host is not on the allow list".into()),
            bytes_in: 0,
            bytes_out: 0,
            ms: 0.4,
        }
    }

    #[test]
    fn is_written_as_documented() {
        let line = r#"{"time":"2026-11-29T12:00:00.123Z","event":"refused","session":"build-42","ingress":"connect","host":"example.com","port":443,"method":"GET","path":"/v1/x","code":"host_not_allowed","status":403,"rule":"network.allowedDomains","reason":"host is not on the allow list","bytesIn":0,"bytesOut":0,"ms":0.4}"#;
        assert_eq!(serde_json::to_string(&refused()).unwrap(), line);
    }

    #[test]
    fn every_key_is_in_the_manual_and_its_samples_are_events() {
        let protocol = include_str!("../../../docs/attach-protocol.md");
        let (_, events) = protocol.split_once("\n## Events\n").unwrap();
        let value = serde_json::to_value(refused()).unwrap();
        for key in value.as_object().unwrap().keys() {
            let named = |line: &str| line.starts_with('|') && line.contains(&format!("`{key}`"));
            assert!(events.lines().any(named), "{key}");
        }
        for manual in [events, include_str!("../../../docs/srt.md")] {
            let samples: Vec<&str> =
                manual.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
            assert!(!samples.is_empty());
            for sample in samples {
                let event: Event = serde_json::from_str(sample).unwrap_or_else(|e| panic!("{e}: {sample}"));
                assert_eq!(event.event, EventKind::Refused);
            }
        }
    }

    #[test]
    fn readers_ignore_keys_they_do_not_know() {
        let line = r#"{"time":"2026-11-29T12:00:00.123Z","event":"closed","ingress":"socks","host":"::1","port":22,"bytesIn":7,"bytesOut":8,"ms":1.5,"later":{"x":1}}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        assert_eq!((event.event, event.ingress, event.code), (EventKind::Closed, IngressKind::Socks, None));
    }

    #[test]
    fn the_line_of_a_report() {
        let mut event = refused();
        let reason = "host is not on the allow list";
        assert_eq!(event.violation_line(), format!("deny network-outbound example.com:443 ({reason})"));
        event.host = "2001:db8::1".into();
        event.reason = None;
        assert_eq!(event.violation_line(), "deny network-outbound [2001:db8::1]:443 (no reason given)");
    }
}
