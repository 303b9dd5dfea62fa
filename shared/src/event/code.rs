use std::fmt;

use serde::{Deserialize, Serialize};

/// Why something was refused: the `code` of an event and the `X-Deny-Reason` of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// Host or port outside the lists, or on the denied one.
    HostNotAllowed,
    /// The decider said deny.
    Decider,
    /// No verdict in time, decider gone, body budget spent.
    DeciderUnavailable,
    /// A request that cannot be asked about, or is malformed.
    BadRequest,
    /// Host, SNI or authority do not name the target.
    Misdirected,
    /// A CONNECT that cannot be terminated.
    OpaqueTunnel,
    /// Headers to set on a cleartext request.
    PlaintextHeaderSet,
    /// A body on GET, HEAD or OPTIONS that the decider wants to see.
    BodylessMethodBody,
    /// The name resolves only to addresses that may not be dialled.
    AddressNotAllowed,
    /// More terminated tunnels than may be.
    TooManyTunnels,
    /// TRACE, TRACK.
    MethodRefused,
    /// The settings denied it.
    Policy,
    /// A header to set with a character that HTTP cannot carry.
    UnsendableHeader,
}

impl RefusalCode {
    /// The code as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostNotAllowed => "host_not_allowed",
            Self::Decider => "decider",
            Self::DeciderUnavailable => "decider_unavailable",
            Self::BadRequest => "bad_request",
            Self::Misdirected => "misdirected",
            Self::OpaqueTunnel => "opaque_tunnel",
            Self::PlaintextHeaderSet => "plaintext_header_set",
            Self::BodylessMethodBody => "bodyless_method_body",
            Self::AddressNotAllowed => "address_not_allowed",
            Self::TooManyTunnels => "too_many_tunnels",
            Self::MethodRefused => "method_refused",
            Self::Policy => "policy",
            Self::UnsendableHeader => "unsendable_header",
        }
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written in two places: by hand for headers, by serde for events.
    #[test]
    fn both_ways_to_write_a_code_agree() {
        for code in [
            RefusalCode::HostNotAllowed,
            RefusalCode::Decider,
            RefusalCode::DeciderUnavailable,
            RefusalCode::BadRequest,
            RefusalCode::Misdirected,
            RefusalCode::OpaqueTunnel,
            RefusalCode::PlaintextHeaderSet,
            RefusalCode::BodylessMethodBody,
            RefusalCode::AddressNotAllowed,
            RefusalCode::TooManyTunnels,
            RefusalCode::MethodRefused,
            RefusalCode::Policy,
            RefusalCode::UnsendableHeader,
        ] {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
