/// The known word that a mistyped one was likely meant to be: at most a third of its letters changed.
pub(super) fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let most = |known: &str| known.len().max(word.len()).div_ceil(3);
    known
        .iter()
        .map(|known| (distance(word, known), *known))
        .filter(|(distance, known)| *distance <= most(known))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// How many characters have to be inserted, removed or replaced, or neighbours swapped (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
