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
