//! Paths: patterns, and which spellings of a path an allow rule takes.

use std::fmt;

use thiserror::Error;

use crate::reach::Reach;

mod spelling;
#[cfg(test)]
mod tests;
mod units;

pub use spelling::{Unusual, check_spelling};
use units::{Unit, decode_fully, is_usual, split_units};

/// A pattern for the path of a target as the client spelled it. `*` stands for characters inside a component,
/// `**` for whole components, also none. Anchored at both ends.
///
/// What a wildcard stands for has to be spelled in the usual way; an escape such as `%2f` is matched only by
/// itself, written out in the pattern. That is how `/@*%2f*` can be allowed for npm while `/a%2f..%2fb` never
/// passes as `/*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: Box<str>,
    narrow: Vec<Component>,
    wide: Vec<Component>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Component {
    AnyDepth,
    Segment(Vec<Unit>),
}

/// Why a text is no path pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathPatternError {
    /// Relative.
    #[error("a path pattern starts with `/`")]
    NoSlash,
    /// It can never match, or would have to match what no allow may.
    #[error("{0}; such a path never matches an allow rule")]
    Unusual(Unusual),
    /// `**` inside a component.
    #[error("`**` stands for whole components: write it between slashes")]
    StarStar,
    /// An escape for what is a plain character.
    #[error("write `{0}` for `%{1:02x}`: the escape of a plain character never matches an allow rule")]
    NeedlessEscape(char, u8),
    /// A `?`.
    #[error("`?` begins the query, which has its own key: query")]
    Query,
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`PathPatternError`] for what could never match, or not mean what its author thinks.
    pub fn parse(text: &str) -> Result<Self, PathPatternError> {
        let Some(rest) = text.strip_prefix('/') else { return Err(PathPatternError::NoSlash) };
        if text.contains('?') {
            return Err(PathPatternError::Query);
        }
        spelling::check_structure(text).map_err(PathPatternError::Unusual)?;
        let narrow = rest.split('/').map(parse_component).collect::<Result<_, _>>()?;
        let decoded = decode_fully(text.as_bytes()).to_ascii_lowercase();
        let wide = wide_segments(&decoded)
            .into_iter()
            .map(|segment| match segment {
                b"**" => Component::AnyDepth,
                _ => Component::Segment(units::split_decoded(segment)),
            })
            .collect();
        Ok(Self { text: text.into(), narrow, wide })
    }

    /// Whether a path matches. Wide compares what is left of both after decoding, with letter case, empty and
    /// dot components and parameters behind `;` out of the way.
    pub fn matches(&self, path: &str, reach: Reach) -> bool {
        match reach {
            Reach::Narrow => {
                let Some(rest) = path.strip_prefix('/') else { return false };
                if spelling::check_structure(path).is_err() {
                    return false;
                }
                let segments: Vec<_> = rest.split('/').map(split_units).collect();
                matches_components(&self.narrow, &segments, is_usual)
            }
            Reach::Wide => {
                let bytes: Vec<u8> = path.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect();
                let decoded = decode_fully(&bytes).to_ascii_lowercase();
                let segments: Vec<_> =
                    wide_segments(&decoded).into_iter().map(units::split_literal).collect();
                matches_components(&self.wide, &segments, |_| true)
            }
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse_component(text: &str) -> Result<Component, PathPatternError> {
    if text == "**" {
        return Ok(Component::AnyDepth);
    }
    if text.contains("**") {
        return Err(PathPatternError::StarStar);
    }
    let units = units::split_pattern(text);
    for unit in &units {
        match *unit {
            Unit::Escape(byte) if units::is_unreserved(byte) => {
                return Err(PathPatternError::NeedlessEscape(byte.into(), byte));
            }
            Unit::Escape(0..0x20 | 0x7f) | Unit::Odd => {
                return Err(PathPatternError::Unusual(Unusual::Character));
            }
            _ => {}
        }
    }
    Ok(Component::Segment(units))
}

/// The components that the most lenient server could see in a decoded path.
fn wide_segments(decoded: &[u8]) -> Vec<&[u8]> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for part in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
        let name = part.split(|&byte| byte == b';').next().unwrap_or(part);
        match name {
            b"" | b"." => {}
            b".." => {
                segments.pop();
            }
            _ => segments.push(name),
        }
    }
    segments
}

/// `reached[n]`: the components so far can stand for the first `n` segments.
fn matches_components(
    components: &[Component],
    segments: &[Vec<Unit>],
    usual: impl Fn(Unit) -> bool + Copy,
) -> bool {
    let mut reached = vec![false; segments.len() + 1];
    reached[0] = true;
    for component in components {
        match component {
            Component::AnyDepth => {
                for n in 0..segments.len() {
                    reached[n + 1] |= reached[n] && segments[n].iter().all(|&unit| usual(unit));
                }
            }
            Component::Segment(pattern) => {
                for n in (0..segments.len()).rev() {
                    reached[n + 1] = reached[n] && matches_segment(pattern, &segments[n], usual);
                }
                reached[0] = false;
            }
        }
    }
    reached[segments.len()]
}

fn matches_segment(pattern: &[Unit], segment: &[Unit], usual: impl Fn(Unit) -> bool) -> bool {
    // `/a/*` is not for `/a/`: what is named there is the directory, not something in it.
    if pattern.is_empty() || segment.is_empty() {
        return pattern.is_empty() && segment.is_empty();
    }
    let mut reached = vec![false; segment.len() + 1];
    reached[0] = true;
    for &unit in pattern {
        if unit == Unit::Star {
            for n in 0..segment.len() {
                reached[n + 1] |= reached[n] && usual(segment[n]);
            }
        } else {
            for n in (0..segment.len()).rev() {
                reached[n + 1] = reached[n] && unit == segment[n];
            }
            reached[0] = false;
        }
    }
    reached[segment.len()]
}
