//! Which field names are the same name, and which have a meaning of their own for a proxy.
//!
//! `-`, `_` and `.` count as one character: gateways and CGI-style servers turn all of them into `_`, so
//! behind such a server `X_Role` *is* `X-Role`. A rule about a name holds for every such spelling of it.

/// Fields that end at this hop (RFC 9110 7.6.1, RFC 9112 C.2.2 and 9.6), whichever way they travel.
///
/// `http2-settings` belongs to the cleartext upgrade to HTTP/2, which is not forwarded either.
const HOP_BY_HOP: &[&[u8]] = &[
    b"connection",
    b"http2-settings",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authentication-info",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"transfer-encoding",
    b"upgrade",
];

/// Fields the decider may neither set nor remove: they are the message's framing and routing, made anew by
/// the proxy on each leg.
const FRAMING: &[&[u8]] = &[
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"connection",
    b"upgrade",
    b"te",
    b"trailer",
    b"keep-alive",
    b"proxy-connection",
];

/// Fields that carry a credential. The client's own go when the decider gives one.
const CREDENTIALS: &[&[u8]] = &[b"authorization", b"proxy-authorization", b"cookie", b"x-api-key"];

/// Whether `a` and `b` are spellings of one name.
pub(super) fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| fold(a) == fold(b))
}

pub(super) fn is_in(list: &[&[u8]], name: &[u8]) -> bool {
    list.iter().any(|known| is_same(known, name))
}

pub(super) fn is_hop_by_hop(name: &[u8]) -> bool {
    is_in(HOP_BY_HOP, name)
}

pub(super) fn is_framing(name: &[u8]) -> bool {
    is_in(FRAMING, name)
}

pub(super) fn is_credential(name: &[u8]) -> bool {
    is_in(CREDENTIALS, name)
}

/// Whether `name` is a token (RFC 9110 5.6.2), the only thing a field name may be.
pub(super) fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| is_token_byte(byte))
}

pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn fold(byte: u8) -> u8 {
    match byte {
        b'_' | b'.' => b'-',
        _ => byte.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name() {
        for (a, b, same) in [
            ("X-Tenant-Id", "x_tenant.ID", true),
            ("x-tenant-id", "x-tenantid", false),
            ("x--a", "x-a", false),
            ("x-a", "x-b", false),
            ("", "", true),
            // Not folded: other token characters, and letters that only look alike in ASCII tricks.
            ("x~a", "x-a", false),
            ("x@a", "x`a", false),
        ] {
            assert_eq!(is_same(a.as_bytes(), b.as_bytes()), same, "{a:?} {b:?}");
        }
    }

    #[test]
    fn tokens() {
        for good in ["a", "X-A", "__proto__", "a!#$%&'*+-.^_`|~9"] {
            assert!(is_token(good.as_bytes()), "{good:?}");
        }
        for bad in ["", "a b", "a:", "a\t", "(a)", "caf\u{e9}", "a\r\n", "a/b", "{a}"] {
            assert!(!is_token(bad.as_bytes()), "{bad:?}");
        }
    }
}
