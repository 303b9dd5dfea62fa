use super::document::DocumentError;

/// The parts of a document, as far as they matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    /// One of `! $ & ( ) : = @ [ ] { | }`.
    Punctuator(u8),
    Spread,
    /// A string or a number.
    Value,
}

/// Cuts a document into tokens (GraphQL specification of October 2021, section 2.1).
///
/// Stricter than the specification where implementations differ, or did: no block strings, no carriage return
/// alone, nothing but printable ASCII outside strings, also in comments, since some end a comment at U+2028.
///
/// # Errors
/// The first thing that is no token.
pub(super) fn tokenize(text: &str) -> Result<Vec<Token<'_>>, DocumentError> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b',' => at += 1,
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => at += 2,
            b'#' => at = comment_end(bytes, at)?,
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
                let end = end_of(bytes, at, |b| b.is_ascii_alphanumeric() || b == b'_');
                tokens.push(Token::Name(&text[at..end]));
                at = end;
            }
            b'.' if bytes[at..].starts_with(b"...") => {
                tokens.push(Token::Spread);
                at += 3;
            }
            b'0'..=b'9' | b'-' => {
                tokens.push(Token::Value);
                at = end_of(bytes, at + 1, |b| {
                    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-' | b'_')
                });
            }
            b'"' => {
                tokens.push(Token::Value);
                at = string_end(bytes, at)?;
            }
            b'!' | b'$' | b'&' | b'(' | b')' | b':' | b'=' | b'@' | b'[' | b']' | b'{' | b'|' | b'}' => {
                tokens.push(Token::Punctuator(byte));
                at += 1;
            }
            _ => return Err(DocumentError::Character(at)),
        }
    }
    Ok(tokens)
}

fn comment_end(bytes: &[u8], from: usize) -> Result<usize, DocumentError> {
    let end = end_of(bytes, from, |b| matches!(b, b' '..=b'~' | b'\t'));
    match &bytes[end..] {
        [] | [b'\n', ..] | [b'\r', b'\n', ..] => Ok(end),
        _ => Err(DocumentError::Character(end)),
    }
}

fn string_end(bytes: &[u8], from: usize) -> Result<usize, DocumentError> {
    if bytes[from..].starts_with(b"\"\"\"") {
        return Err(DocumentError::BlockString);
    }
    let mut at = from + 1;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') if matches!(bytes.get(at + 1), Some(b' '..=b'~')) => at += 2,
            Some(b' '..=b'[' | b']'..=b'~' | b'\t' | 0x80..) => at += 1,
            _ => return Err(DocumentError::Character(at)),
        }
    }
}

fn end_of(bytes: &[u8], from: usize, belongs: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|&b| !belongs(b)).map_or(bytes.len(), |length| from + length)
}
