//! A component of a path in its smallest parts: characters and percent escapes.

/// One part of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// A wildcard; only in patterns.
    Star,
    /// A character that stands for itself.
    Byte(u8),
    /// `%` and two digits. Their letter case does not count (RFC 3986 section 6.2.2.1).
    Escape(u8),
    /// A `%` without two digits, or a character that no path has (RFC 3986 section 3.3).
    Odd,
}

/// Takes a component as a client spelled it, bytes shown as Latin-1 characters.
pub(super) fn split_units(text: &str) -> Vec<Unit> {
    let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap_or(0)).collect();
    split(&bytes, |byte| if is_path_character(byte) { Unit::Byte(byte) } else { Unit::Odd })
}

/// Takes a component of a pattern, where `*` is the wildcard.
pub(super) fn split_pattern(text: &str) -> Vec<Unit> {
    split(text.as_bytes(), |byte| match byte {
        b'*' => Unit::Star,
        _ if is_path_character(byte) => Unit::Byte(byte),
        _ => Unit::Odd,
    })
}

/// Takes a component of a pattern that is decoded already.
pub(super) fn split_decoded(bytes: &[u8]) -> Vec<Unit> {
    bytes.iter().map(|&byte| if byte == b'*' { Unit::Star } else { Unit::Byte(byte) }).collect()
}

/// Takes a component of a path that is decoded already.
pub(super) fn split_literal(bytes: &[u8]) -> Vec<Unit> {
    bytes.iter().map(|&byte| Unit::Byte(byte)).collect()
}

/// Whether a wildcard of an allow rule may stand for this: a character that every server reads alike.
///
/// Not `;`, behind which some servers see parameters that are no part of the name. Not the escapes of
/// characters that need none, nor of those by which a path is cut or climbs (`/ \ ; ? #`), nor `%25`, which
/// a second decoding would turn into another escape.
pub(super) fn is_usual(unit: Unit) -> bool {
    match unit {
        Unit::Byte(byte) => byte != b';',
        Unit::Escape(byte) => {
            !is_unreserved(byte) && !matches!(byte, b'/' | b'\\' | b';' | b'?' | b'#' | b'%' | 0..0x20 | 0x7f)
        }
        Unit::Star | Unit::Odd => false,
    }
}

/// RFC 3986 section 2.3: an escape of one of these is never needed.
pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Decodes escapes until none is left, as a chain of servers might.
///
/// In one pass, because a client can write `%25252525…`, which takes a second one for every two bytes.
pub(super) fn decode_fully(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        decoded.push(byte);
        while let Some(at) = decoded.len().checked_sub(3)
            && let Some(byte) = escape_at(&decoded, at)
        {
            decoded.truncate(at);
            decoded.push(byte);
        }
    }
    decoded
}

/// Decodes every well-formed escape once.
pub(super) fn decode_once(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match escape_at(bytes, at) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}

fn split(bytes: &[u8], plain: impl Fn(u8) -> Unit) -> Vec<Unit> {
    let mut units = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match escape_at(bytes, at) {
            Some(byte) => {
                units.push(Unit::Escape(byte));
                at += 3;
            }
            None => {
                units.push(plain(bytes[at]));
                at += 1;
            }
        }
    }
    units
}

fn escape_at(bytes: &[u8], at: usize) -> Option<u8> {
    let [b'%', high, low] = *bytes.get(at..at + 3)? else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// `pchar` of RFC 3986 section 3.3, without escapes.
fn is_path_character(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=:@".contains(&byte)
}
