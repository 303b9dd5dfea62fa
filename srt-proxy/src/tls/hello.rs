//! The first bytes of a tunnel: TLS or not, and whom the client means (RFC 8446 section 4.1.2).
//!
//! Not rustls' own reader: it strips the final dot of a server name, so that `example.com.` would pass for the
//! target `example.com`, and it can neither be asked again nor give its bytes back for an opaque tunnel. rustls
//! reads the same bytes afterwards and has the last word on the handshake.

use std::borrow::Cow;

use srt_shared::domain::Host;

use crate::limits;

/// What the first bytes of a tunnel say. Asking consumes nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum HelloState {
    /// These bytes do not start a TLS connection.
    NotTls,
    /// So far this is TLS, but the ClientHello is not complete.
    NeedMore,
    /// TLS that no server should answer: malformed, over [`limits::CLIENT_HELLO`], or open to two readings.
    Malformed,
    /// A complete ClientHello.
    ClientHello(ClientHello),
}

/// What a ClientHello asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    sni: Option<String>,
    alpn: Vec<Vec<u8>>,
}

impl ClientHello {
    /// The server name as the client spelled it, printable ASCII. `None` if it sent none.
    pub fn sni(&self) -> Option<&str> {
        self.sni.as_deref()
    }

    /// The application protocols offered, the preferred one first.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        self.alpn.iter().map(Vec::as_slice)
    }

    /// Whether the server name, if there is one, is `host`: in any case of letters, but without a final dot,
    /// which RFC 6066 section 3 forbids.
    pub fn names(&self, host: &Host) -> bool {
        match (&self.sni, host) {
            (None, _) => true,
            (Some(sni), Host::Name(name)) => sni.eq_ignore_ascii_case(name.as_str()),
            // Forbidden as well, but sent by some clients; it names no other host.
            (Some(sni), Host::Addr(addr)) => sni.parse() == Ok(*addr),
        }
    }
}

/// Looks at the first bytes of a tunnel. May be asked again with the same bytes and more: it costs well under a
/// microsecond for a hello in one record.
pub fn client_hello(bytes: &[u8]) -> HelloState {
    match bytes {
        // A handshake record of TLS 1.x (RFC 8446 section 5.1).
        [RECORD_HANDSHAKE] | [RECORD_HANDSHAKE, 3, ..] => {}
        [] => return HelloState::NeedMore,
        _ => return HelloState::NotTls,
    }
    let message = match join_records(bytes) {
        Ok(message) => message,
        Err(state) => return state,
    };
    match parse(&message) {
        Some(hello) => HelloState::ClientHello(hello),
        None => HelloState::Malformed,
    }
}

const RECORD_HANDSHAKE: u8 = 22;
const RECORD_HEADER: usize = 5;
/// RFC 8446 section 5.1: 2^14 bytes, and no empty handshake records.
const RECORD_MAX: usize = 1 << 14;
const HANDSHAKE_HEADER: usize = 4;
const HANDSHAKE_CLIENT_HELLO: u8 = 1;
const EXTENSION_SERVER_NAME: u16 = 0;
const EXTENSION_ALPN: u16 = 16;
const NAME_TYPE_HOST: u8 = 0;

/// The body of the ClientHello, put together from the records it spans; or what to say instead.
fn join_records(bytes: &[u8]) -> Result<Cow<'_, [u8]>, HelloState> {
    let mut message = Cow::Borrowed(&bytes[..0]);
    let mut rest = bytes;
    loop {
        if let Some(body) = complete(&message)? {
            return Ok(match message {
                Cow::Borrowed(message) => Cow::Borrowed(&message[body]),
                Cow::Owned(message) => Cow::Owned(message[body].to_vec()),
            });
        }
        if bytes.len() - rest.len() > limits::CLIENT_HELLO {
            return Err(HelloState::Malformed);
        }
        let Some((header, after)) = rest.split_at_checked(RECORD_HEADER) else {
            return Err(HelloState::NeedMore);
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[0] != RECORD_HANDSHAKE || header[1] != 3 || length == 0 || length > RECORD_MAX {
            return Err(HelloState::Malformed);
        }
        let Some((fragment, after)) = after.split_at_checked(length) else {
            return Err(HelloState::NeedMore);
        };
        if message.is_empty() {
            message = Cow::Borrowed(fragment);
        } else {
            message.to_mut().extend_from_slice(fragment);
        }
        rest = after;
    }
}

/// Where the body lies in `message` once all of it is there.
fn complete(message: &[u8]) -> Result<Option<std::ops::Range<usize>>, HelloState> {
    if message.first().is_some_and(|&kind| kind != HANDSHAKE_CLIENT_HELLO) {
        return Err(HelloState::Malformed);
    }
    let Some([_, length @ ..]) = message.first_chunk::<HANDSHAKE_HEADER>() else { return Ok(None) };
    let length = length.iter().fold(0, |length, &octet| (length << 8) | usize::from(octet));
    if length > limits::CLIENT_HELLO {
        return Err(HelloState::Malformed);
    }
    let end = HANDSHAKE_HEADER + length;
    match message.len() {
        short if short < end => Ok(None),
        exact if exact == end => Ok(Some(HANDSHAKE_HEADER..end)),
        // Another handshake message in the same record: no client sends one before it was answered.
        _ => Err(HelloState::Malformed),
    }
}

fn parse(body: &[u8]) -> Option<ClientHello> {
    let mut rest = Reader(body);
    let _version_random = rest.take(2 + 32)?;
    let _session_id = rest.vector8()?;
    let _cipher_suites = rest.vector16()?;
    let _compression = rest.vector8()?;
    let mut hello = ClientHello::default();
    if rest.is_empty() {
        // Extensions are optional in TLS 1.2 (RFC 5246 section 7.4.1.2).
        return Some(hello);
    }
    let mut extensions = rest.vector16()?;
    if !rest.is_empty() {
        return None;
    }
    let mut seen_alpn = false;
    while !extensions.is_empty() {
        let kind = extensions.number16()?;
        let mut data = extensions.vector16()?;
        match kind {
            EXTENSION_SERVER_NAME if hello.sni.is_some() => return None,
            EXTENSION_SERVER_NAME => hello.sni = Some(parse_server_name(&mut data)?),
            EXTENSION_ALPN if seen_alpn => return None,
            EXTENSION_ALPN => {
                seen_alpn = true;
                hello.alpn = parse_alpn(&mut data)?;
            }
            _ => data.0 = &[],
        }
        if !data.is_empty() {
            return None;
        }
    }
    Some(hello)
}

/// RFC 6066 section 3: a list, of which one type is defined, and that may occur once.
fn parse_server_name(data: &mut Reader<'_>) -> Option<String> {
    let mut list = data.vector16()?;
    let kind = list.take(1)?[0];
    let name = list.vector16()?;
    if kind != NAME_TYPE_HOST || !list.is_empty() || name.is_empty() {
        return None;
    }
    name.0.iter().all(u8::is_ascii_graphic).then(|| name.0.iter().map(|&byte| char::from(byte)).collect())
}

/// RFC 7301 section 3.1.
fn parse_alpn(data: &mut Reader<'_>) -> Option<Vec<Vec<u8>>> {
    let mut list = data.vector16()?;
    let mut protocols = Vec::new();
    while !list.is_empty() {
        let protocol = list.vector8()?;
        if protocol.is_empty() {
            return None;
        }
        protocols.push(protocol.0.to_vec());
    }
    (!protocols.is_empty()).then_some(protocols)
}

/// Takes fields off the front; `None` when there is less than a field needs.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn vector8(&mut self) -> Option<Self> {
        let length = self.take(1)?[0];
        self.take(length.into()).map(Self)
    }

    fn vector16(&mut self) -> Option<Self> {
        let length = self.number16()?;
        self.take(length.into()).map(Self)
    }
}

#[cfg(test)]
mod tests;
