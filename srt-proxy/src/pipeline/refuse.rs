//! Refusals: what the proxy says no to, and how it says so.
//!
//! This is the only place that knows a refusal's status, its `X-Deny-Reason` code, its text and its headers.

use std::borrow::Cow;
use std::fmt;

use bytes::{BufMut, BytesMut};
use srt_shared::event::{RefusalCode, clean_reason, status_phrase};

/// Why a request or a tunnel is not served. Nothing of it has reached the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Host or port outside the allow list, or on the denied list.
    HostNotAllowed {
        /// The entry or settings key that decided, for the event.
        rule: String,
        /// The configured reason of a denied entry.
        reason: Option<String>,
    },
    /// The decider said deny.
    Decider {
        /// Its status, 400 to 599.
        status: u16,
        /// Its reason.
        reason: Option<String>,
    },
    /// No verdict: timer, lost decider, spent budget.
    DeciderUnavailable(&'static str),
    /// Malformed, ambiguous, or too large to be asked about.
    BadRequest(Cow<'static, str>),
    /// Host, server name or authority does not name the target.
    Misdirected(&'static str),
    /// A tunnel nobody could look into.
    OpaqueTunnel(&'static str),
    /// An allow with header sets for a cleartext request.
    PlaintextHeaderSet,
    /// A body asked for on a method that has none.
    BodylessMethodBody,
    /// The name leads only to addresses that may not be dialled.
    AddressNotAllowed(
        /// Names the class of address, never the address: it may be the secret.
        String,
    ),
    /// All tunnel slots are taken.
    TooManyTunnels,
    /// TRACE and TRACK would echo what the decider set.
    MethodRefused,
    /// A value the decider set has characters no header can carry.
    UnsendableHeader,
    /// The target names another path once normalised.
    AmbiguousTarget,
}

impl Refusal {
    /// A [`Self::BadRequest`] that says what is wrong.
    pub fn bad_request(why: impl Into<Cow<'static, str>>) -> Self {
        Self::BadRequest(why.into())
    }

    /// The code of `X-Deny-Reason` and of the event.
    pub fn code(&self) -> RefusalCode {
        match self {
            Self::HostNotAllowed { .. } => RefusalCode::HostNotAllowed,
            Self::Decider { .. } => RefusalCode::Decider,
            Self::DeciderUnavailable(_) => RefusalCode::DeciderUnavailable,
            Self::BadRequest(_) | Self::AmbiguousTarget => RefusalCode::BadRequest,
            Self::Misdirected(_) => RefusalCode::Misdirected,
            Self::OpaqueTunnel(_) => RefusalCode::OpaqueTunnel,
            Self::PlaintextHeaderSet => RefusalCode::PlaintextHeaderSet,
            Self::BodylessMethodBody => RefusalCode::BodylessMethodBody,
            Self::AddressNotAllowed(_) => RefusalCode::AddressNotAllowed,
            Self::TooManyTunnels => RefusalCode::TooManyTunnels,
            Self::MethodRefused => RefusalCode::MethodRefused,
            Self::UnsendableHeader => RefusalCode::UnsendableHeader,
        }
    }

    /// The status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Decider { status, .. } => *status,
            Self::DeciderUnavailable(_) | Self::TooManyTunnels => 503,
            Self::BadRequest(_) | Self::AmbiguousTarget => 400,
            Self::Misdirected(_) => 421,
            Self::MethodRefused => 405,
            Self::HostNotAllowed { .. }
            | Self::OpaqueTunnel(_)
            | Self::PlaintextHeaderSet
            | Self::BodylessMethodBody
            | Self::AddressNotAllowed(_)
            | Self::UnsendableHeader => 403,
        }
    }

    fn proxy_error(&self) -> &'static str {
        match self {
            Self::TooManyTunnels => "too-many-tunnels",
            Self::AmbiguousTarget => "ambiguous-request-target",
            _ => "blocked-by-sandbox-runtime",
        }
    }

    /// The entry or key that decided, where one did.
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::HostNotAllowed { rule, .. } => Some(rule),
            _ => None,
        }
    }

    /// Why, in a few words a person or a model can act on; cleaned as every reason is.
    pub fn reason(&self) -> String {
        let text: Cow<'_, str> = match self {
            Self::HostNotAllowed { reason: Some(reason), .. } => reason.as_str().into(),
            Self::HostNotAllowed { .. } => "host is not on the allow list".into(),
            Self::Decider { reason: Some(reason), .. } => reason.as_str().into(),
            Self::Decider { .. } => "denied by the decider".into(),
            Self::DeciderUnavailable(why) => format!("no verdict from the decider: {why}").into(),
            Self::BadRequest(why) => why.as_ref().into(),
            Self::Misdirected(what) => {
                format!("{what} does not name the host and port of this connection").into()
            }
            Self::OpaqueTunnel(why) => (*why).into(),
            Self::PlaintextHeaderSet => {
                "the decider's header edits would travel in cleartext; use https, or --plaintext-header-set"
                    .into()
            }
            Self::BodylessMethodBody => {
                "a GET, HEAD or OPTIONS request with a body cannot be judged by it".into()
            }
            Self::AddressNotAllowed(why) => why.as_str().into(),
            Self::TooManyTunnels => "too many open tunnels; close some, or raise the limit".into(),
            Self::MethodRefused => "TRACE and TRACK are not forwarded".into(),
            Self::UnsendableHeader => "a header value the decider set cannot be sent in HTTP".into(),
            Self::AmbiguousTarget => {
                "the request target names another path once normalised; send it normalised".into()
            }
        };
        clean_reason(&text, "denied")
    }

    /// What to do about it, where the reason does not say that itself.
    fn advice(&self) -> Cow<'static, str> {
        let advice = match self {
            Self::HostNotAllowed { rule, reason: None } if rule.starts_with("network.") => {
                "; to reach it, add it to network.allowedDomains"
            }
            // Which of many entries it was, is for whoever may change them.
            Self::HostNotAllowed { rule, reason: Some(_) } => return format!("; denied by {rule}").into(),
            Self::HostNotAllowed { reason: None, .. } => "; only the decider can put it there",
            Self::DeciderUnavailable(_) => "; try again later",
            Self::Misdirected(_) => "; open a connection of its own for that host",
            Self::BodylessMethodBody => "; send it without a body",
            Self::AddressNotAllowed(_) => "; to reach it, allow the address itself",
            _ => "",
        };
        advice.into()
    }

    /// Appends the whole answer. `connect` puts the reason into the status phrase too, because that is what
    /// clients print of a refused CONNECT. `head_only` leaves the body away (HEAD).
    pub fn write(&self, out: &mut BytesMut, about: &About<'_>, connect: bool, head_only: bool) {
        let reason = self.reason();
        let phrase = if connect { status_phrase(&reason) } else { phrase_of(self.status()).to_owned() };
        let text = format!("srt-proxy: {about}: {reason} ({}){}\n", self.code(), self.advice());
        write_answer(
            out,
            self.status(),
            &phrase,
            &[("X-Deny-Reason", self.code().as_str()), ("X-Proxy-Error", self.proxy_error())],
            &text,
            head_only,
        );
    }
}

/// The upstream's fault: nothing was refused, and the answer carries no refusal code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// 502, or 504 where a deadline passed.
    pub status: u16,
    /// The class of failure, without addresses or header values.
    pub reason: Cow<'static, str>,
}

impl Failure {
    /// A 502 with this class of failure.
    pub fn bad_gateway(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { status: 502, reason: reason.into() }
    }

    /// A 504 with this class of failure.
    pub fn timeout(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { status: 504, reason: reason.into() }
    }

    /// Appends the whole answer.
    pub fn write(&self, out: &mut BytesMut, about: &About<'_>, connect: bool, head_only: bool) {
        let phrase = if connect { status_phrase(&self.reason) } else { phrase_of(self.status).to_owned() };
        let text = format!("srt-proxy: {about}: {}\n", self.reason);
        write_answer(out, self.status, &phrase, &[], &text, head_only);
    }
}

/// Why a request got an answer of ours instead of the upstream's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotServed {
    /// Policy, client or decider.
    Refused(Refusal),
    /// The upstream.
    Failed(Failure),
}

impl From<Refusal> for NotServed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Failure> for NotServed {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl NotServed {
    /// Appends the whole answer.
    pub fn write(&self, out: &mut BytesMut, about: &About<'_>, connect: bool, head_only: bool) {
        match self {
            Self::Refused(refusal) => refusal.write(out, about, connect, head_only),
            Self::Failed(failure) => failure.write(out, about, connect, head_only),
        }
    }
}

/// What a refusal speaks about: as much of the target as is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct About<'a> {
    /// Host and port, once they are known and well-formed.
    pub target: Option<&'a crate::pipeline::target::Target>,
}

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target {
            Some(target) => write!(f, "{target}"),
            None => f.write_str("this request"),
        }
    }
}

fn write_answer(
    out: &mut BytesMut,
    status: u16,
    phrase: &str,
    fields: &[(&str, &str)],
    text: &str,
    head_only: bool,
) {
    let mut head = format!("HTTP/1.1 {status} {phrase}\r\n");
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!(
        "Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    ));
    out.put_slice(head.as_bytes());
    if !head_only {
        out.put_slice(text.as_bytes());
    }
}

fn phrase_of(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Refused",
    }
}
