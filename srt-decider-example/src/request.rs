//! A request made up for `--check`.

use srt_shared::{
    decider::{Req, ReqField},
    domain::{Authority, AuthorityError},
    field_name::{FieldName, FieldNameError, is_token},
};
use thiserror::Error;

/// Why a text is no request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    /// No blank.
    #[error("write a method and a URL, such as 'GET https://example.com/path'")]
    NoUrl,
    /// Not a token.
    #[error("{0:?} is no method")]
    Method(Box<str>),
    /// Another scheme, or none.
    #[error("the URL starts with https:// or http://")]
    Scheme,
    /// Host or port.
    #[error("the URL: {0}")]
    Authority(#[from] AuthorityError),
    /// No colon.
    #[error("a header is written as 'Name: value'")]
    NoColon,
    /// The name.
    #[error("{0:?} is {1}")]
    Name(Box<str>, FieldNameError),
    /// Part of the target.
    #[error("leave `Host` out: it is taken from the URL")]
    Host,
}

/// Reads `METHOD URL`, and headers as `Name: value`. The path stays as it is spelled.
///
/// # Errors
/// [`RequestError`].
pub fn parse_request(text: &str, headers: &[String]) -> Result<Req, RequestError> {
    let (method, url) = text.split_once(' ').ok_or(RequestError::NoUrl)?;
    if !is_token(method.as_bytes()) {
        return Err(RequestError::Method(method.into()));
    }
    let (default_port, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (443, rest),
        (_, Some(rest)) => (80, rest),
        _ => return Err(RequestError::Scheme),
    };
    let rest = rest.split('#').next().unwrap_or(rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let authority = Authority::parse(&rest[..end])?;
    let (path, query) = match rest[end..].split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (&rest[end..], None),
    };
    Ok(Req {
        id: 1,
        method: method.into(),
        host: authority.host.to_string(),
        port: authority.port.map_or(default_port, Into::into),
        host_header: Some(rest[..end].into()),
        sni: authority.host.name().map(ToString::to_string),
        path: latin1(if path.is_empty() { "/" } else { path }),
        query: query.filter(|query| !query.is_empty()).map(latin1),
        headers: parse_headers(headers)?,
    })
}

fn parse_headers(lines: &[String]) -> Result<Vec<ReqField>, RequestError> {
    let mut headers: Vec<ReqField> = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(RequestError::NoColon)?;
        let name = FieldName::parse(&name.trim().to_ascii_lowercase())
            .map_err(|error| RequestError::Name(name.into(), error))?;
        if name.as_str() == "host" {
            return Err(RequestError::Host);
        }
        let value = latin1(value.trim());
        match headers.iter_mut().find(|field| field.name == name) {
            Some(field) => field.values.push(value),
            None => headers.push(ReqField { name, values: vec![value] }),
        }
    }
    Ok(headers)
}

/// As the proxy shows them: each byte as the character of that number.
fn latin1(text: &str) -> String {
    text.bytes().map(char::from).collect()
}

/// A request to `https://a.test/` as the proxy tells it, with what a test is about.
#[cfg(test)]
pub(crate) fn test_request(method: &str, query: Option<&str>, headers: &[(&str, &str)]) -> Req {
    let headers = headers.iter().map(|(name, value)| ReqField {
        name: FieldName::parse(name).expect("invariant: tests name fields well"),
        values: vec![(*value).to_owned()],
    });
    Req {
        id: 1,
        method: method.into(),
        host: "a.test".into(),
        port: 443,
        host_header: None,
        sni: None,
        path: "/".into(),
        query: query.map(Into::into),
        headers: headers.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_apart_as_spelled() {
        let headers = ["X-A: 1".to_owned(), "x-a:2".to_owned(), "B:c:d".to_owned()];
        let req = parse_request("POST https://Example.com:8443/a/../%62?x=1?y#z", &headers).unwrap();
        assert_eq!((req.method.as_str(), req.host.as_str(), req.port), ("POST", "example.com", 8443));
        assert_eq!((req.path.as_str(), req.query.as_deref()), ("/a/../%62", Some("x=1?y")));
        assert_eq!(req.headers[0].values, ["1", "2"]);
        assert_eq!(req.headers[1].values, ["c:d"]);
        let req = parse_request("GET http://[::1]", &[]).unwrap();
        assert_eq!((req.host.as_str(), req.port, req.path.as_str()), ("::1", 80, "/"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (text, error) in [
            ("https://a.test/", RequestError::NoUrl),
            ("G(T https://a.test/", RequestError::Method("G(T".into())),
            ("GET a.test/", RequestError::Scheme),
            ("GET ftp://a.test/", RequestError::Scheme),
        ] {
            assert_eq!(parse_request(text, &[]), Err(error), "{text}");
        }
        assert!(matches!(parse_request("GET https://u@a.test/", &[]), Err(RequestError::Authority(_))));
        for header in ["a", "Host: a", "a b: c", ": c"] {
            assert!(parse_request("GET https://a.test/", &[header.to_owned()]).is_err(), "{header}");
        }
    }
}
