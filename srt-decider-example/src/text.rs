//! Texts with wildcards.

use std::fmt;

use crate::reach::Reach;

/// A text in which `*` stands for any characters, also none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPattern(Box<str>);

impl TextPattern {
    /// Takes a pattern. Every text is one.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether the whole text matches; letter case counts unless the reach is wide.
    pub fn matches(&self, text: &str, reach: Reach) -> bool {
        let same = |a: u8, b: u8| match reach {
            Reach::Narrow => a == b,
            Reach::Wide => a.eq_ignore_ascii_case(&b),
        };
        matches_stars(self.0.as_bytes(), text.as_bytes(), same)
    }
}

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Goes back only to the last star: an earlier one cannot do better than the first place where the text
/// between the two fits.
fn matches_stars(pattern: &[u8], text: &[u8], same: impl Fn(u8, u8) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                retry = Some((p, t));
            }
            Some(&byte) if same(byte, text[t]) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star, from)) = retry else { return false };
                retry = Some((star, from + 1));
                p = star;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a/b", true),
            ("gpt-*", "gpt-4o", true),
            ("gpt-*", "GPT-4o", false),
            ("gpt-*", "xgpt-4o", false),
            ("*-mini", "gpt-4o-mini", true),
            ("*-mini", "gpt-4o-mini-x", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a**b", "ab", true),
            ("exact", "exact", true),
            ("exact", "exac", false),
        ] {
            assert_eq!(TextPattern::new(pattern).matches(text, Reach::Narrow), expected, "{pattern} {text}");
        }
        assert!(TextPattern::new("gpt-*").matches("GPT-4o", Reach::Wide));
    }
}
