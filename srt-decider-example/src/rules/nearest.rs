use strsim::osa_distance;

/// The known word that a mistyped one was likely meant to be: at most a third of its letters changed.
pub(super) fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let most = |known: &str| known.len().max(word.len()).div_ceil(3);
    known
        .iter()
        .map(|known| (osa_distance(word, known), *known))
        .filter(|(distance, known)| *distance <= most(known))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        const KNOWN: &[&str] = &["host", "port", "path", "method", "headers", "action", "need_body"];
        for (word, meant) in [
            ("hots", Some("host")),
            ("hosts", Some("host")),
            ("metod", Some("method")),
            ("header", Some("headers")),
            ("needbody", Some("need_body")),
            ("acton", Some("action")),
            ("banana", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, KNOWN), meant, "{word}");
        }
    }
}
