use proptest::prelude::*;

use super::*;

fn reader(text: &str) -> Reader<'_> {
    Reader::new(text.as_bytes(), 3).unwrap()
}

#[test]
fn only_digits_are_an_integer() {
    for (text, value) in [("0", 0), ("1", 1), (" -7", -7), ("9223372036854775807", i64::MAX)] {
        assert_eq!(reader(text).integer(), Ok(value), "{text}");
    }
    for text in ["1.0", "-0", "1e0", "1E2", "0.5", "\"1\"", "true", "[]", "9223372036854775808"] {
        let error = reader(text).integer().unwrap_err();
        assert_eq!(error.fault, Fault::Expected("an integer"), "{text}");
    }
    assert_eq!(reader("01").integer().unwrap_err().fault, Fault::BadNumber);
    assert_eq!(reader("").integer().unwrap_err().fault, Fault::UnexpectedEnd);
}

#[test]
fn escapes_are_read() {
    for (text, wanted) in [
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
        (r#""\u0041\u00e9\u20AC\ud83d\uDE00""#, "A\u{e9}\u{20ac}\u{1f600}"),
        (r#""plain\u0000""#, "plain\0"),
        (r#""\u0061 long plain run follows \u0062""#, "a long plain run follows b"),
    ] {
        assert_eq!(reader(text).string().as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn strings_without_escapes_are_borrowed() {
    assert!(matches!(reader("\"abc\u{e9}defghijkl\"").string(), Ok(Cow::Borrowed("abc\u{e9}defghijkl"))));
}

#[test]
fn null_is_said_to_be_null() {
    assert_eq!(reader("null").string().unwrap_err().fault, Fault::Null);
    assert_eq!(reader(" null").object(|_, _| Ok::<_, ReadError>(())).unwrap_err().fault, Fault::Null);
    assert_eq!(reader("nul").string().unwrap_err().fault, Fault::Expected("a string"));
}

proptest! {
    /// The eight-at-a-time scan stops where a scan byte by byte does.
    #[test]
    fn finds_the_end_of_the_plain_part(text in "[a!#\\[\\]\u{7f}\u{80}\u{e9}\u{20ac}\"\\\\\u{1f}\u{0}\u{20}]{0,40}") {
        let slow = text.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(text.len());
        prop_assert_eq!(string::plain_prefix(text.as_bytes()), slow);
    }
}
