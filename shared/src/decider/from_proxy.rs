use super::error::ProtocolError;

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

/// A request as a decider sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Lower-case names in order of first appearance, each with its values.
    pub headers: Vec<(String, Vec<String>)>,
}

/// The first bytes of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The id of the request.
    pub id: u64,
    /// Up to as many bytes as were asked for.
    pub data: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
}

/// Reads the payload of a frame from the proxy.
///
/// # Errors
/// [`ProtocolError`]: the link must end.
pub fn parse_from_proxy(payload: &[u8]) -> Result<FromProxy, ProtocolError> {
    let _ = payload;
    Err(ProtocolError::MissingKey("t"))
}
