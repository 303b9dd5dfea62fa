//! Tells a typo from a key of another release.

use strsim::levenshtein;

/// The known key that `key` was probably meant to be: it differs in case, or by at most two edits (one for a
/// very short key, which everything else is near to).
pub(super) fn nearest(key: &str, known: &[&'static str]) -> Option<&'static str> {
    known
        .iter()
        .map(|&candidate| (levenshtein(&key.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|&(distance, candidate)| distance <= 2.min(candidate.len() / 3))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, want) in [
            ("", "", 0),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("denyRead", "denyReads", 1),
            ("ab", "ba", 2),
        ] {
            assert_eq!(levenshtein(a, b), want, "{a} {b}");
            assert_eq!(levenshtein(b, a), want, "{b} {a}");
        }
    }

    #[test]
    fn typos_are_told_from_other_keys() {
        let known = ["denyRead", "denyWrite", "allowRead", "git"];
        for (key, meant) in [
            ("denyread", Some("denyRead")),
            ("DENYWRITE", Some("denyWrite")),
            ("denyReads", Some("denyRead")),
            ("dnyRaed", None),
            ("deny_read", Some("denyRead")),
            ("alowRead", Some("allowRead")),
            ("gitt", Some("git")),
            ("dir", None),
            ("limits", None),
            ("", None),
        ] {
            assert_eq!(nearest(key, &known), meant, "{key}");
        }
    }
}
