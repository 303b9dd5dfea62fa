//! Field names with a meaning of their own for a proxy, beside those that `srt_shared::field_name` knows.

use srt_shared::field_name::is_same;

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

/// Fields by which clients know the proxy's own refusals. An upstream that sends them pretends to be us.
const OURS: &[&[u8]] = &[b"x-deny-reason", b"x-proxy-error"];

/// Whether the name, folded, is a field that ends at this hop.
pub(super) fn is_hop_by_hop(name: &[u8]) -> bool {
    HOP_BY_HOP.iter().any(|known| is_same(known, name))
}

/// Whether the name, folded, is a field that only our own answers carry.
pub(super) fn is_ours(name: &[u8]) -> bool {
    OURS.iter().any(|known| is_same(known, name))
}
