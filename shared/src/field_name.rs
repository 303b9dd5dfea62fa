//! Header field names, and the folding under which two spellings are the same name.
//!
//! CGI, WSGI and their kin turn `X-Role`, `x_role` and sometimes `x.role` into one variable, so a client that
//! sends `X_Role` gets past a rule that only knows `X-Role`. Every rule about names therefore compares them
//! folded: case ignored, `-`, `_` and `.` as one.

use std::{cmp::Ordering, fmt};

use thiserror::Error;

/// Header fields that say where a message ends or which connection it is for: nobody but the proxy sets them.
const FRAMING: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "proxy-connection",
];

/// Header fields that carry a credential: set only through `cred`, so that a log or a rule finds them all.
const CREDENTIAL: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// A header field name: a lower-case token (RFC 9110 section 5.6.2), spelled as it was given.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldName(Box<str>);

impl FieldName {
    /// Takes a name that is a lower-case token.
    ///
    /// # Errors
    /// [`FieldNameError`] for upper case, an empty name, or a character outside the token set.
    pub fn parse(name: &str) -> Result<Self, FieldNameError> {
        if !is_token(name.as_bytes()) {
            return Err(FieldNameError::NotToken);
        }
        if name.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(FieldNameError::UpperCase);
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name as a client or server spelled it is this one, folded.
    pub fn is_same(&self, name: &[u8]) -> bool {
        is_same(self.0.as_bytes(), name)
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a header name is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FieldNameError {
    /// Empty, or a character that is not a token character.
    #[error("not a header name")]
    NotToken,
    /// An upper-case letter where only lower case is agreed on.
    #[error("not lower case")]
    UpperCase,
}

/// Whether the bytes are a token (RFC 9110 section 5.6.2): the only thing a header name or method may be.
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| IS_TOKEN[usize::from(b)])
}

/// Whether two names are the same when case is ignored and `-`, `_`, `.` are one.
pub fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| fold(a) == fold(b))
}

/// Whether the name, folded, is one of the framing headers.
pub fn is_framing(name: &[u8]) -> bool {
    FRAMING.iter().any(|known| is_same(known.as_bytes(), name))
}

/// Whether the name, folded, is one of the credential headers.
pub fn is_credential(name: &[u8]) -> bool {
    CREDENTIAL.iter().any(|known| is_same(known.as_bytes(), name))
}

/// A set of header names under folding, asked with the spelling of the wire and without an allocation.
#[derive(Clone, Debug, Default)]
pub struct FieldNameSet {
    /// Sorted by folded spelling.
    sorted: Vec<Box<[u8]>>,
}

impl FieldNameSet {
    /// Whether a name, folded, is in the set.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.sorted.binary_search_by(|known| compare(known, name)).is_ok()
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

impl<N: AsRef<[u8]>> FromIterator<N> for FieldNameSet {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        let mut sorted: Vec<Box<[u8]>> = names.into_iter().map(|name| name.as_ref().into()).collect();
        sorted.sort_by(|a, b| compare(a, b));
        sorted.dedup_by(|a, b| is_same(a, b));
        Self { sorted }
    }
}

fn compare(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().copied().map(fold).cmp(b.iter().copied().map(fold))
}

fn fold(byte: u8) -> u8 {
    match byte {
        b'_' | b'.' => b'-',
        _ => byte.to_ascii_lowercase(),
    }
}

const IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x80 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(b, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_name_are_one() {
        for (a, b) in [("x-role", "X_Role"), ("x.role", "x-role"), ("X__ROLE", "x-.role"), ("te", "TE")] {
            assert!(is_same(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
        for (a, b) in
            [("x-role", "xrole"), ("x-role", "x-roles"), ("x-role", "x--role"), ("a", ""), ("x~a", "x-a")]
        {
            assert!(!is_same(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
    }

    #[test]
    fn names_are_lower_case_tokens() {
        for name in ["x-a", "a", "!#$%&'*+-.^_`|~", "__proto__", "09"] {
            assert_eq!(FieldName::parse(name).map(|n| n.as_str().to_owned()), Ok(name.to_owned()));
        }
        for name in [
            "", " ", "x a", "x:", "x\n", "\u{e9}", "a\0", "(", ")", ",", "/", ";", "@", "[", "\"", "{",
            "\u{7f}",
        ] {
            assert_eq!(FieldName::parse(name), Err(FieldNameError::NotToken), "{name:?}");
        }
        assert_eq!(FieldName::parse("X-a"), Err(FieldNameError::UpperCase));
    }

    #[test]
    fn framing_and_credential_headers_are_found_in_any_spelling() {
        for name in FRAMING.iter().chain(&["Content_Length", "TRANSFER.ENCODING", "keep_alive"]) {
            assert!(is_framing(name.as_bytes()) && !is_credential(name.as_bytes()), "{name}");
        }
        for name in CREDENTIAL.iter().chain(&["X_Api.Key", "Cookie"]) {
            assert!(is_credential(name.as_bytes()) && !is_framing(name.as_bytes()), "{name}");
        }
        for name in ["set-cookie", "hosts", "x-host", "contentlength", "authorizations", ""] {
            assert!(!is_framing(name.as_bytes()) && !is_credential(name.as_bytes()), "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_set_finds_what_a_scan_finds(
            names in proptest::collection::vec("[aAbB_.-]{0,4}", 0..12),
            asked in "[aAbB_.-]{0,4}",
        ) {
            let set: FieldNameSet = names.iter().collect();
            let scan = names.iter().any(|name| is_same(name.as_bytes(), asked.as_bytes()));
            prop_assert_eq!(set.contains(asked.as_bytes()), scan);
        }
    }
}
