use std::{borrow::Cow, fmt};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

use super::{
    edits::{EditsError, has_control},
    error::ProtocolError,
    fields::{check_proto, parse_id, parse_name, put, refuse_stray, required, unknown_key},
};
use crate::{
    field_name::FieldName,
    json::Reader,
    limits::{MAX_FIELD_BYTES, MAX_FIELD_VALUES, MAX_FRAME, MAX_MESSAGE_DEPTH, MAX_TARGET_BYTES},
};

/// What the proxy sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromProxy {
    /// Once, first.
    Hello,
    /// A request to decide about.
    Req(Box<Req>),
    /// The body that was asked for.
    Body(Body),
}

/// A request as a decider sees it. Its query and header values may hold credentials, so they are not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Req {
    /// Strictly rising from 1.
    pub id: u64,
    /// As the client spelled it.
    pub method: String,
    /// The canonical target, IPv6 without brackets.
    pub host: String,
    /// The port of the target.
    pub port: u16,
    /// The `Host` header.
    pub host_header: Option<String>,
    /// The server name of the TLS connection.
    pub sni: Option<String>,
    /// As the client spelled it, without the query.
    pub path: String,
    /// As the client spelled it, without the question mark.
    pub query: Option<String>,
    /// In order of first appearance.
    pub headers: Vec<ReqField>,
}

/// All values of one header, each byte shown as a Latin-1 character.
#[derive(Clone, PartialEq, Eq)]
pub struct ReqField {
    /// The name, in lower case.
    pub name: FieldName,
    /// One for each header line.
    pub values: Vec<String>,
}

/// The first bytes of a body.
#[derive(Clone, PartialEq, Eq)]
pub struct Body {
    /// The id of the request.
    pub id: u64,
    /// Up to as many bytes as were asked for.
    pub data: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
}

impl fmt::Debug for Req {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Req")
            .field("id", &self.id)
            .field("method", &self.method)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("path", &self.path)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ReqField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} values)", self.name, self.values.len())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body {{ id: {}, data: {} bytes, cut: {} }}", self.id, self.data.len(), self.cut)
    }
}

/// Reads the payload of a frame from the proxy.
///
/// # Errors
/// [`ProtocolError`]: the link must end.
pub fn parse_from_proxy(payload: &[u8]) -> Result<FromProxy, ProtocolError> {
    let mut reader = Reader::new(payload, MAX_MESSAGE_DEPTH)?;
    let mut message = Message::default();
    reader.object(|reader, key| message.member(reader, &key))?;
    reader.end()?;
    let t = required(message.t.take(), "t")?;
    if payload.len() > MAX_FRAME && t != "body" {
        return Err(ProtocolError::TooLong);
    }
    match t.as_ref() {
        "req" => message.into_req().map(|req| FromProxy::Req(Box::new(req))),
        "body" => message.into_body().map(FromProxy::Body),
        "hello" => message.into_hello(),
        _ => Err(ProtocolError::Value { key: "t", wanted: "hello, req or body" }),
    }
}

/// Every field of each message, since `t` need not come first.
#[derive(Default)]
struct Message<'a> {
    t: Option<Cow<'a, str>>,
    proto: Option<i64>,
    id: Option<u64>,
    method: Option<Cow<'a, str>>,
    host: Option<Cow<'a, str>>,
    port: Option<i64>,
    host_header: Option<Cow<'a, str>>,
    sni: Option<Cow<'a, str>>,
    path: Option<Cow<'a, str>>,
    query: Option<Cow<'a, str>>,
    headers: Option<Vec<ReqField>>,
    data: Option<Cow<'a, str>>,
    cut: Option<bool>,
}

impl<'a> Message<'a> {
    fn member(&mut self, reader: &mut Reader<'a>, key: &str) -> Result<(), ProtocolError> {
        match key {
            "t" => put(&mut self.t, "t", reader.string()?),
            "proto" => put(&mut self.proto, "proto", reader.integer()?),
            "id" => put(&mut self.id, "id", parse_id(reader)?),
            "method" => put(&mut self.method, "method", reader.string()?),
            "host" => put(&mut self.host, "host", reader.string()?),
            "port" => put(&mut self.port, "port", reader.integer()?),
            "hostHeader" => put(&mut self.host_header, "hostHeader", reader.string()?),
            "sni" => put(&mut self.sni, "sni", reader.string()?),
            "path" => put(&mut self.path, "path", reader.string()?),
            "query" => put(&mut self.query, "query", reader.string()?),
            "headers" => put(&mut self.headers, "headers", parse_headers(reader)?),
            "data" => put(&mut self.data, "data", reader.string()?),
            "cut" => put(&mut self.cut, "cut", reader.boolean()?),
            _ => Err(unknown_key(key)),
        }
    }

    fn into_hello(self) -> Result<FromProxy, ProtocolError> {
        self.refuse_req_keys()?;
        self.refuse_body_keys()?;
        refuse_stray([("id", self.id.is_some())])?;
        check_proto(self.proto)?;
        Ok(FromProxy::Hello)
    }

    fn into_req(self) -> Result<Req, ProtocolError> {
        self.refuse_body_keys()?;
        refuse_stray([("proto", self.proto.is_some())])?;
        let port = required(self.port, "port")?;
        Ok(Req {
            id: required(self.id, "id")?,
            method: required(self.method, "method")?.into_owned(),
            host: within_limit("host", required(self.host, "host")?)?,
            port: u16::try_from(port)
                .ok()
                .filter(|port| *port != 0)
                .ok_or(ProtocolError::Value { key: "port", wanted: "an integer from 1 to 65535" })?,
            host_header: optional("hostHeader", self.host_header)?
                .map(|text| within_limit("hostHeader", text))
                .transpose()?,
            sni: optional("sni", self.sni)?.map(|text| within_limit("sni", text)).transpose()?,
            path: within_limit("path", required(self.path, "path")?)?,
            query: optional("query", self.query)?.map(Cow::into_owned),
            headers: self.headers.unwrap_or_default(),
        })
    }

    fn into_body(self) -> Result<Body, ProtocolError> {
        self.refuse_req_keys()?;
        refuse_stray([("proto", self.proto.is_some())])?;
        if self.cut == Some(false) {
            return Err(ProtocolError::Empty("cut"));
        }
        let data = required(self.data, "data")?;
        let wanted = ProtocolError::Value { key: "data", wanted: "padded base64" };
        Ok(Body {
            id: required(self.id, "id")?,
            data: BASE64.decode(data.as_bytes()).map_err(|_| wanted)?,
            cut: self.cut.is_some(),
        })
    }

    fn refuse_req_keys(&self) -> Result<(), ProtocolError> {
        refuse_stray([
            ("method", self.method.is_some()),
            ("host", self.host.is_some()),
            ("port", self.port.is_some()),
            ("hostHeader", self.host_header.is_some()),
            ("sni", self.sni.is_some()),
            ("path", self.path.is_some()),
            ("query", self.query.is_some()),
            ("headers", self.headers.is_some()),
        ])
    }

    fn refuse_body_keys(&self) -> Result<(), ProtocolError> {
        refuse_stray([("data", self.data.is_some()), ("cut", self.cut.is_some())])
    }
}

fn parse_headers(reader: &mut Reader<'_>) -> Result<Vec<ReqField>, ProtocolError> {
    let mut headers: Vec<ReqField> = Vec::new();
    let (mut count, mut bytes) = (0, 0);
    reader.object(|reader, name| {
        let name = parse_name("headers", &name)?;
        if name.as_str() == "host" {
            return Err(ProtocolError::Value { key: "headers", wanted: "without host, which is hostHeader" });
        }
        if headers.iter().any(|field| field.name == name) {
            return Err(EditsError::Duplicate(name).into());
        }
        bytes += name.as_str().len();
        let mut values = Vec::new();
        reader.array(|reader| {
            let value = reader.string()?;
            if has_control(&value) {
                return Err(EditsError::ControlCharacter.into());
            }
            bytes += value.len();
            values.push(value.into_owned());
            check_limits(count + values.len(), bytes)
        })?;
        count += values.len().max(1);
        headers.push(ReqField { name, values });
        check_limits(count, bytes)
    })?;
    if headers.is_empty() { Err(ProtocolError::Empty("headers")) } else { Ok(headers) }
}

fn check_limits(count: usize, bytes: usize) -> Result<(), ProtocolError> {
    if count > MAX_FIELD_VALUES {
        return Err(EditsError::TooMany.into());
    }
    if bytes > MAX_FIELD_BYTES { Err(EditsError::TooLong.into()) } else { Ok(()) }
}

fn optional<'a>(
    key: &'static str,
    text: Option<Cow<'a, str>>,
) -> Result<Option<Cow<'a, str>>, ProtocolError> {
    match text {
        Some(text) if text.is_empty() => Err(ProtocolError::Empty(key)),
        text => Ok(text),
    }
}

fn within_limit(key: &'static str, text: Cow<'_, str>) -> Result<String, ProtocolError> {
    if text.len() > MAX_TARGET_BYTES {
        return Err(ProtocolError::Value { key, wanted: "at most 8 KiB long" });
    }
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests;
