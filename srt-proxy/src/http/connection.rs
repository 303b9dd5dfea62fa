//! What a sender says about the connection (RFC 9110 7.6.1, RFC 9112 9.3).

use srt_shared::field_name::is_same;
use thiserror::Error;

use super::{fields::Fields, head::Version};
use crate::limits;

/// More options than anybody needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// More than [`limits::CONNECTION_OPTIONS_MAX`].
    #[error("the Connection field has more than {} options", limits::CONNECTION_OPTIONS_MAX)]
    TooManyOptions,
}

/// The options of all `Connection` fields of a message.
#[derive(Debug, Clone, Default)]
pub struct ConnectionOptions<'a> {
    close: bool,
    keep_alive: bool,
    upgrade: bool,
    /// Field names that end at this hop because the sender says so.
    named: Vec<&'a [u8]>,
}

impl<'a> ConnectionOptions<'a> {
    /// Collects the options of a message.
    pub fn parse(fields: &'a Fields) -> Result<Self, ConnectionError> {
        let mut options = Self::default();
        for (count, option) in members(fields, "Connection").enumerate() {
            if count == limits::CONNECTION_OPTIONS_MAX {
                return Err(ConnectionError::TooManyOptions);
            }
            if option.eq_ignore_ascii_case(b"close") {
                options.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                options.keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                options.upgrade = true;
            } else {
                options.named.push(option);
            }
        }
        Ok(options)
    }

    /// Whether the sender leaves the connection open behind this message.
    pub fn persists(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }

    /// Whether the sender wants to go on in another protocol.
    pub fn upgrades(&self) -> bool {
        self.upgrade
    }

    /// Whether the sender named this field, in any spelling.
    pub(super) fn names(&self, name: &[u8]) -> bool {
        self.named.iter().any(|named| is_same(named, name))
    }
}

/// Whether a request says that its sender understands trailers (`TE: trailers`, RFC 9110 10.1.4).
pub fn accepts_trailers(fields: &Fields) -> bool {
    members(fields, "TE").any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
}

/// The members of a list field (RFC 9110 5.6.1), empty ones left out.
fn members<'a>(fields: &'a Fields, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    fields
        .values(name)
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::http::{HeadReader, RequestHead};

    fn head(fields: &str) -> RequestHead {
        let mut buf = BytesMut::from(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes());
        HeadReader::new().read_request(&mut buf).unwrap().unwrap()
    }

    #[test]
    fn persistence() {
        use Version::{Http10, Http11};

        for (fields, in_10, in_11) in [
            ("", false, true),
            ("Connection: close\r\n", false, false),
            ("connection: CLOSE\r\n", false, false),
            ("Connection: keep-alive\r\n", true, true),
            ("Connection: keep-alive, close\r\n", false, false),
            ("Connection: keep-alive\r\nConnection: x\r\nConnection: ,close ,\r\n", false, false),
            ("Connection: x-close\r\n", false, true),
            ("Proxy-Connection: close\r\n", false, true),
        ] {
            let head = head(fields);
            let options = ConnectionOptions::parse(head.fields()).unwrap();
            assert_eq!((options.persists(Http10), options.persists(Http11)), (in_10, in_11), "{fields:?}");
        }
    }

    #[test]
    fn named_fields() {
        let head = head("Connection: x-one,X-Two , x_three\r\nConnection: Upgrade\r\n");
        let options = ConnectionOptions::parse(head.fields()).unwrap();
        for (name, named) in [
            ("X-One", true),
            ("x.two", true),
            ("X-Three", true),
            ("x", false),
            ("X-Four", false),
            ("", false),
        ] {
            assert_eq!(options.names(name.as_bytes()), named, "{name:?}");
        }
        assert!(options.upgrades());
    }

    #[test]
    fn options_are_bounded() {
        let most = vec!["a"; limits::CONNECTION_OPTIONS_MAX].join(",");
        assert!(ConnectionOptions::parse(head(&format!("Connection: {most},\r\n")).fields()).is_ok());
        for fields in
            [format!("Connection: {most},b\r\n"), format!("Connection: {most}\r\nConnection: b\r\n")]
        {
            let refused = ConnectionOptions::parse(head(&fields).fields()).map(|_| ());
            assert_eq!(refused, Err(ConnectionError::TooManyOptions));
        }
    }

    #[test]
    fn trailers_are_wanted_only_when_asked_for() {
        for (fields, wanted) in [
            ("", false),
            ("TE: trailers\r\n", true),
            ("te: gzip;q=0.5, Trailers\r\n", true),
            ("TE: gzip\r\nTE: trailers\r\n", true),
            ("TE: gzip\r\n", false),
            ("TE: xtrailers\r\n", false),
            ("Trailer: trailers\r\n", false),
        ] {
            assert_eq!(accepts_trailers(head(fields).fields()), wanted, "{fields:?}");
        }
    }
}
