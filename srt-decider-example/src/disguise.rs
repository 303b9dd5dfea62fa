//! Requests that ask the server to take them for another request. No allow rule matches one: what the rule
//! looked at is not what the server would do.

use srt_shared::{
    decider::{Req, ReqField},
    field_name::is_same,
};
use thiserror::Error;

use crate::query::parse_query;

/// Headers by which frameworks let a client replace the method.
const METHOD_HEADERS: [&str; 4] =
    ["x-http-method-override", "x-http-method", "x-method-override", "x-original-method"];

/// Headers by which servers behind a rewriting front end take the path or host from the client.
const TARGET_HEADERS: [&str; 7] = [
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
    "x-forwarded-uri",
    "x-forwarded-path",
    "x-forwarded-host",
    "x-original-host",
];

/// Query parameters that replace the method, folded as headers are (Rails, Laravel, Symfony, Google APIs).
const METHOD_PARAMETERS: [&str; 6] =
    ["_method", "$method", "x-http-method-override", "x-http-method", "x-method-override", "$httpmethod"];

/// What may stand in a `Connection` header without taking a header away that a rule could look at.
const CONNECTION_OPTIONS: [&str; 5] = ["close", "keep-alive", "proxy-connection", "te", "upgrade"];

/// How a request is disguised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Disguise {
    /// A method in a header.
    #[error("a header asks for another method")]
    MethodHeader,
    /// A path or host in a header.
    #[error("a header asks for another path or host")]
    TargetHeader,
    /// A method in the query.
    #[error("a query parameter asks for another method")]
    MethodParameter,
    /// The proxy takes those away as hop-by-hop, and the server does not see what the rule saw.
    #[error("the connection header names other headers, which would not reach the server")]
    Connection,
    /// After a `101` the connection carries what nobody looks at.
    #[error("the request asks to switch to a protocol that the rule does not name (upgrade)")]
    Upgrade,
}

/// Looks for a disguise. `upgrade` are the protocols that the rule lets a connection switch to.
///
/// # Errors
/// The first one found.
pub fn check_disguise(req: &Req, upgrade: &[Box<str>]) -> Result<(), Disguise> {
    let has_one_of = |names: &[&str]| {
        let is_one = |field: &ReqField| {
            names.iter().any(|name| is_same(name.as_bytes(), field.name.as_str().as_bytes()))
        };
        req.headers.iter().any(is_one)
    };
    if has_one_of(&METHOD_HEADERS) {
        return Err(Disguise::MethodHeader);
    }
    if has_one_of(&TARGET_HEADERS) {
        return Err(Disguise::TargetHeader);
    }
    if req.query.as_deref().is_some_and(has_method_parameter) {
        return Err(Disguise::MethodParameter);
    }
    let is_option = |option: &str| CONNECTION_OPTIONS.iter().any(|own| own.eq_ignore_ascii_case(option));
    if !elements(req, "connection").all(|option| option.is_empty() || is_option(option)) {
        return Err(Disguise::Connection);
    }
    let is_allowed = |protocol: &str| upgrade.iter().any(|own| own.eq_ignore_ascii_case(protocol));
    if !elements(req, "upgrade").all(is_allowed) {
        return Err(Disguise::Upgrade);
    }
    Ok(())
}

/// The elements of a header that is a list, in all its spellings.
fn elements<'a>(req: &'a Req, name: &'static str) -> impl Iterator<Item = &'a str> {
    req.headers
        .iter()
        .filter(move |field| is_same(name.as_bytes(), field.name.as_str().as_bytes()))
        .flat_map(|field| &field.values)
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

fn has_method_parameter(query: &str) -> bool {
    // Each part by itself, so that a broken escape elsewhere does not hide one.
    query
        .split(['&', ';'])
        .filter_map(parse_query)
        .flatten()
        .any(|(name, _)| METHOD_PARAMETERS.iter().any(|own| is_same(own.as_bytes(), name.trim().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_request;

    fn check(headers: &[(&str, &str)], query: Option<&str>) -> Result<(), Disguise> {
        let req = test_request("GET", query, headers);
        check_disguise(&req, &["websocket".into()])
    }

    #[test]
    fn finds_every_disguise() {
        for (headers, query, expected) in [
            (&[("x-http-method-override", "DELETE")][..], None, Disguise::MethodHeader),
            (&[("x_http_method_override", "DELETE")], None, Disguise::MethodHeader),
            (&[("x-http.method", "DELETE")], None, Disguise::MethodHeader),
            (&[("x-method-override", "")], None, Disguise::MethodHeader),
            (&[("x-original-url", "/admin")], None, Disguise::TargetHeader),
            (&[("x_forwarded_host", "b.test")], None, Disguise::TargetHeader),
            (&[], Some("_method=DELETE"), Disguise::MethodParameter),
            (&[], Some("a=b&_METHOD=DELETE"), Disguise::MethodParameter),
            (&[], Some("%5fmethod=DELETE"), Disguise::MethodParameter),
            (&[], Some("a=%zz&_method=DELETE"), Disguise::MethodParameter),
            (&[], Some("a=1;_method=DELETE"), Disguise::MethodParameter),
            (&[], Some("X-HTTP-Method-Override=DELETE"), Disguise::MethodParameter),
            (&[("connection", "close, content-type")], None, Disguise::Connection),
            (&[("connection", "X-Spend")], None, Disguise::Connection),
            (&[("upgrade", "h2c")], None, Disguise::Upgrade),
            (&[("upgrade", "websocket, h2c")], None, Disguise::Upgrade),
            (&[("upgrade", "")], None, Disguise::Upgrade),
        ] {
            assert_eq!(check(headers, query), Err(expected), "{headers:?} {query:?}");
        }
        assert_eq!(check(&[("connection", "Keep-Alive, , Upgrade")], None), Ok(()));
        assert_eq!(check(&[("x-role", "a"), ("upgrade", "WebSocket")], Some("method=a&x=_method")), Ok(()));
    }
}
