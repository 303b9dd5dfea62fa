//! A request to decide about, with as much of its body as was shown.

use std::cell::OnceCell;

use serde_json::Value;
use srt_shared::{
    decider::{Body, Req},
    domain::Host,
    field_name::is_same,
    json::{self, JsonError, Limits, Null},
};
use thiserror::Error;

use crate::limits::MAX_JSON_DEPTH;

/// A request, and what is worked out from it once, however many rules ask.
#[derive(Debug)]
pub struct Ask<'a> {
    req: &'a Req,
    host: Option<Host>,
    body: Option<&'a Body>,
    json: OnceCell<Result<Value, BodyFault>>,
}

/// Why a body is not read as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BodyFault {
    /// What is behind the part shown could say anything.
    #[error("the body is longer than the {0} bytes that were looked at")]
    Cut(usize),
    /// The server may read it as a form, or in another character set.
    #[error("there is no single `content-type: application/json`")]
    ContentType,
    /// Compressed, so what was looked at is not what the server reads.
    #[error("the body has a content-encoding")]
    Encoded,
    /// Not JSON, or JSON that two parsers read differently.
    #[error("the body is not plain JSON: {0}")]
    Json(JsonError),
}

impl<'a> Ask<'a> {
    /// Takes a request and, once it was shown, its body.
    pub fn new(req: &'a Req, body: Option<&'a Body>) -> Self {
        Self { req, host: Host::from_bare(&req.host).ok(), body, json: OnceCell::new() }
    }

    /// The request as the proxy told it.
    pub fn req(&self) -> &'a Req {
        self.req
    }

    /// The target host; `None` for a spelling that the proxy never sends.
    pub fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// Whether the body was shown, or the part of it that was asked for.
    pub fn is_body_shown(&self) -> bool {
        self.body.is_some()
    }

    /// The body as JSON, if it was shown.
    pub fn json(&self) -> Option<Result<&Value, &BodyFault>> {
        let body = self.body?;
        Some(self.json.get_or_init(|| self.read_json(body)).as_ref())
    }

    fn read_json(&self, body: &Body) -> Result<Value, BodyFault> {
        if body.cut {
            return Err(BodyFault::Cut(body.data.len()));
        }
        if self.values_of("content-encoding").next().is_some() {
            return Err(BodyFault::Encoded);
        }
        let mut types = self.values_of("content-type");
        let (Some(only), None) = (types.next(), types.next()) else { return Err(BodyFault::ContentType) };
        if !is_json_type(only) {
            return Err(BodyFault::ContentType);
        }
        let limits = Limits { max_bytes: body.data.len(), max_depth: MAX_JSON_DEPTH, null: Null::Passed };
        json::check(&body.data, limits).map_err(BodyFault::Json)?;
        Ok(serde_json::from_slice(&body.data).expect("invariant: what passed the strict check is JSON"))
    }

    /// The values of a header in all its spellings.
    fn values_of(&self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.req
            .headers
            .iter()
            .filter(move |field| is_same(name.as_bytes(), field.name.as_str().as_bytes()))
            .flat_map(|field| field.values.iter().map(String::as_str))
    }
}

/// `application/json`, if anything in UTF-8.
fn is_json_type(value: &str) -> bool {
    let mut parts = value.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    let is_utf8 = |part: &str| {
        part.split_once('=').is_some_and(|(name, charset)| {
            name.eq_ignore_ascii_case("charset") && charset.trim_matches('"').eq_ignore_ascii_case("utf-8")
        })
    };
    is_json && parts.all(is_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_request;

    fn read(headers: &[(&str, &str)], data: &[u8], cut: bool) -> Result<Value, BodyFault> {
        let req = test_request("POST", None, headers);
        let body = Body { id: 1, data: data.to_vec(), cut };
        let ask = Ask::new(&req, Some(&body));
        ask.json().unwrap().cloned().map_err(Clone::clone)
    }

    #[test]
    fn reads_plain_json_only() {
        let json = ("content-type", "application/json");
        assert!(read(&[json], br#"{"a":null}"#, false).is_ok());
        for value in
            ["Application/JSON", "application/json; charset=utf-8", "application/json;charset=\"UTF-8\""]
        {
            assert!(read(&[("content-type", value)], b"{}", false).is_ok(), "{value}");
        }
        for headers in [
            &[][..],
            &[("content-type", "text/plain")],
            &[("content-type", "application/json; charset=utf-7")],
            &[("content-type", "application/json, text/plain")],
            &[("content-type", "application/json; x=y")],
            &[json, ("content_type", "application/x-www-form-urlencoded")],
        ] {
            assert_eq!(read(headers, b"{}", false), Err(BodyFault::ContentType), "{headers:?}");
        }
        assert_eq!(read(&[json, ("content-encoding", "gzip")], b"{}", false), Err(BodyFault::Encoded));
        assert_eq!(read(&[json], b"{}", true), Err(BodyFault::Cut(2)));
        for data in [
            &b""[..],
            b"{\"a\":1,\"a\":2}",
            b"{\"a\":1,\"\\u0061\":2}",
            b"{\"a\":1} {}",
            b"{\"a\":1",
            b"\xef\xbb\xbf{}",
            b"{\"a\":\"\xff\"}",
            b"{'a':1}",
            b"{\"a\":1,}",
            b"[".repeat(65).as_slice(),
        ] {
            let read = read(&[json], data, false);
            assert!(matches!(read, Err(BodyFault::Json(_))), "{data:?}: {read:?}");
        }
    }
}
