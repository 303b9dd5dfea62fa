//! Whether a path is spelled so that every server sees the same components in it.

use thiserror::Error;

use super::units::{Unit, decode_once, is_unreserved, is_usual, split_units};

/// Why a path matches no wildcard of an allow rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unusual {
    /// `*`, or an absolute form.
    #[error("the path does not start with `/`")]
    NoSlash,
    /// `//`.
    #[error("the path has an empty component")]
    EmptyComponent,
    /// `.`, `..`, also with parameters behind them.
    #[error("the path has a dot component")]
    DotComponent,
    /// `\`, a blank, non-ASCII, a `%` without two digits, escaped control characters and broken UTF-8.
    #[error("the path has a character that paths do not have")]
    Character,
    /// `%61` for `a`.
    #[error("the path has an escape of a character that needs none")]
    NeedlessEscape,
    /// `%2f`, `%5c`, `%3b`, `%3f`, `%23`, `%25`.
    #[error("the path has an escape that some servers decode before they split it")]
    SplittingEscape,
    /// `;`.
    #[error("the path has parameters behind a `;`")]
    Parameters,
}

/// Says what is unusual about a path, if anything is.
///
/// # Errors
/// The first thing found.
pub fn check_spelling(path: &str) -> Result<(), Unusual> {
    check_structure(path)?;
    match path.split('/').flat_map(split_units).find(|&unit| !is_usual(unit)) {
        None => Ok(()),
        Some(Unit::Byte(_)) => Err(Unusual::Parameters),
        Some(Unit::Escape(byte)) if is_unreserved(byte) => Err(Unusual::NeedlessEscape),
        Some(Unit::Escape(byte)) if !byte.is_ascii_control() => Err(Unusual::SplittingEscape),
        Some(_) => Err(Unusual::Character),
    }
}

/// What no pattern can make good, however it is written: the components themselves are in doubt.
pub(super) fn check_structure(path: &str) -> Result<(), Unusual> {
    let Some(rest) = path.strip_prefix('/') else { return Err(Unusual::NoSlash) };
    let mut components = rest.split('/').peekable();
    while let Some(component) = components.next() {
        let is_last = components.peek().is_none();
        let bytes: Vec<u8> = component.chars().map(|c| u8::try_from(c).unwrap_or(0)).collect();
        let decoded = decode_once(&bytes);
        // Overlong UTF-8 (`%c0%ae`) is a dot to some; C1 controls (`%c2%85`) end a line for some.
        let text = std::str::from_utf8(&decoded).map_err(|_| Unusual::Character)?;
        if text.chars().any(char::is_control) {
            return Err(Unusual::Character);
        }
        if component.is_empty() && is_last {
            continue;
        }
        // An escaped slash can be allowed by writing it out; what stands between two must still be a name.
        for part in text.split(['/', '\\']) {
            match part.split([';', '?', '#']).next().unwrap_or(part) {
                "." | ".." => return Err(Unusual::DotComponent),
                "" => return Err(Unusual::EmptyComponent),
                _ => {}
            }
        }
    }
    Ok(())
}
