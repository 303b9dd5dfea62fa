use crate::limits::MAX_SHOWN_REASON;

/// Makes a reason fit to be shown on one line of a report that a person or a model reads: each run of control
/// or invisible characters becomes one blank, `<` and `>` go (they would open or close the report's own tags),
/// the ends are trimmed, and at most 500 UTF-16 units stay. Where nothing is left it is `fallback`.
///
/// Whoever writes a reason is not always who is believed: bidi controls can show a line as the opposite of
/// what it says.
pub fn clean_reason(reason: &str, fallback: &str) -> String {
    let mut line = String::with_capacity(reason.len());
    let mut in_run = false;
    for c in reason.chars() {
        let is_unseen = is_unseen(c);
        match c {
            '<' | '>' => {}
            _ if is_unseen && in_run => {}
            _ if is_unseen => line.push(' '),
            _ => line.push(c),
        }
        in_run = is_unseen;
    }
    let line = first_units(line.trim(), MAX_SHOWN_REASON);
    if line.is_empty() { fallback.to_owned() } else { line.to_owned() }
}

/// A cleaned reason as the phrase of a status line, where clients disagree on how to read anything but ASCII:
/// every other character becomes `?`.
pub fn status_phrase(cleaned: &str) -> String {
    cleaned.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect()
}

fn first_units(text: &str, units: usize) -> &str {
    let mut left = units;
    for (at, c) in text.char_indices() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

/// Controls (C0, DEL, C1, line and paragraph separator), and characters that show nothing or change how their
/// neighbours are shown: the Unicode general category Cf and the default ignorable characters.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}'
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cleans_as_agreed() {
        for (reason, cleaned) in [
            ("plain", "plain"),
            ("re-run with <host> listed", "re-run with host listed"),
            ("a\r\n\tb", "a b"),
            ("a\u{200b}\u{200d}\u{202e}b", "a b"),
            ("a \n b", "a   b"),
            ("a\n<\nb", "a  b"),
            ("  \n a \0", "a"),
            ("caf\u{e9} \u{1f600}", "caf\u{e9} \u{1f600}"),
            ("\u{85}a\u{9f}", "a"),
            ("a\u{2028}b\u{2029}c", "a b c"),
            ("a\u{e0041}b\u{feff}", "a b"),
            ("</sandbox_violations>", "/sandbox_violations"),
            ("", "fallback"),
            ("<>\n\u{2066}", "fallback"),
        ] {
            assert_eq!(clean_reason(reason, "fallback"), cleaned, "{reason:?}");
        }
    }

    #[test]
    fn cuts_at_500_units_of_utf16_and_never_inside_a_character() {
        assert_eq!(clean_reason(&"a".repeat(501), ""), "a".repeat(500));
        assert_eq!(clean_reason(&"\u{e9}".repeat(501), ""), "\u{e9}".repeat(500));
        assert_eq!(clean_reason(&"\u{1f600}".repeat(251), ""), "\u{1f600}".repeat(250));
        let odd = format!("a{}", "\u{1f600}".repeat(250));
        assert_eq!(clean_reason(&odd, "").encode_utf16().count(), 499);
    }

    #[test]
    fn a_status_phrase_is_ascii() {
        assert_eq!(status_phrase("caf\u{e9} closed \u{1f600}"), "caf? closed ?");
        assert_eq!(status_phrase("~ !"), "~ !");
    }

    proptest! {
        #[test]
        fn nothing_that_shows_nothing_is_left(reason in any::<String>()) {
            let cleaned = clean_reason(&reason, "fallback");
            prop_assert!(!cleaned.is_empty() && cleaned.encode_utf16().count() <= MAX_SHOWN_REASON);
            prop_assert!(!cleaned.chars().any(|c| is_unseen(c) || matches!(c, '<' | '>')));
            prop_assert!(status_phrase(&cleaned).bytes().all(|b| (0x20..0x7f).contains(&b)));
        }
    }
}
