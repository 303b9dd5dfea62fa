use proptest::prelude::*;
use serde_json::Value;

use super::*;

const LIMITS: Limits = Limits { max_bytes: 1000, max_depth: 4, null: Null::Refused };

fn fault(text: impl AsRef<[u8]>) -> (String, Fault) {
    let error = check(text.as_ref(), LIMITS).expect_err("refused");
    (error.path, error.fault)
}

#[test]
fn accepts_one_value() {
    for text in
        ["{}", " [ ] ", "0", "-0", "1.5e+3", "\"\"", "true", "false", "{\"a\":{\"a\":[[]]}}", "\r\n\t1\n"]
    {
        assert_eq!(check(text.as_bytes(), LIMITS), Ok(()), "{text}");
    }
}

#[test]
fn refuses_what_two_parsers_read_differently() {
    for (text, path, wanted) in [
        ("{\"a\":1,\"a\":2}", "a", Fault::DuplicateKey),
        ("{\"a\":1,\"\\u0061\":2}", "a", Fault::DuplicateKey),
        ("{\"x\":[{},{\"b c\":1,\"b c\":1}]}", "x[1][\"b c\"]", Fault::DuplicateKey),
        ("{\"\":1,\"\":1}", "[\"\"]", Fault::DuplicateKey),
        ("null", "", Fault::Null),
        ("{\"a\":[1,null]}", "a[1]", Fault::Null),
        ("\"\\ud800\"", "", Fault::LoneSurrogate),
        ("\"\\udc00\\ud800\"", "", Fault::LoneSurrogate),
        ("\"\\ud800\\u0041\"", "", Fault::LoneSurrogate),
        ("{\"\\ud800\":1}", "", Fault::LoneSurrogate),
        ("\u{feff}{}", "", Fault::ByteOrderMark),
        ("{}\u{feff}", "", Fault::TrailingData),
        ("[[[[[]]]]]", "[0][0][0][0]", Fault::TooDeep(4)),
        ("{}{}", "", Fault::TrailingData),
        ("1 2", "", Fault::TrailingData),
        ("{}\0", "", Fault::TrailingData),
        ("", "", Fault::UnexpectedEnd),
        (" \n", "", Fault::UnexpectedEnd),
        ("[1", "", Fault::UnexpectedEnd),
        ("\"a", "", Fault::UnexpectedEnd),
        ("{\"a\"", "", Fault::UnexpectedEnd),
        ("{\"a\":", "a", Fault::UnexpectedEnd),
        ("[1,]", "", Fault::TrailingComma),
        ("[1 , ]", "", Fault::TrailingComma),
        ("{\"a\":1,}", "", Fault::TrailingComma),
        ("[1,,2]", "[1]", Fault::Expected("a value")),
        ("[,]", "[0]", Fault::Expected("a value")),
        ("{a:1}", "", Fault::Expected("a key in double quotes")),
        ("{'a':1}", "", Fault::Expected("a key in double quotes")),
        ("{1:1}", "", Fault::Expected("a key in double quotes")),
        ("{\"a\":'b'}", "a", Fault::Expected("a value; a string has double quotes")),
        ("{\"a\" 1}", "", Fault::Expected("a colon")),
        ("[1 2]", "", Fault::Expected("a comma or the end of the array")),
        ("{\"a\":1 \"b\":2}", "", Fault::Expected("a comma or the end of the object")),
        ("nul", "", Fault::Expected("a value")),
        ("True", "", Fault::Expected("a value")),
        ("NaN", "", Fault::Expected("a value")),
        ("+1", "", Fault::Expected("a value")),
        (".5", "", Fault::Expected("a value")),
        ("// x\n1", "", Fault::Comment),
        ("1 /* x */", "", Fault::Comment),
        ("{// x\n}", "", Fault::Comment),
        ("{\"a\" /**/ : 1}", "", Fault::Comment),
        ("{\"a\": # x\n 1}", "a", Fault::Comment),
        ("[1 // x\n]", "", Fault::Comment),
        ("[1, // x\n]", "[1]", Fault::Comment),
        ("[1 / 2]", "", Fault::Expected("a comma or the end of the array")),
        ("\u{a0}1", "", Fault::Expected("a value")),
        ("01", "", Fault::BadNumber),
        ("-", "", Fault::BadNumber),
        ("-01", "", Fault::BadNumber),
        ("1.", "", Fault::BadNumber),
        ("1e", "", Fault::BadNumber),
        ("1e+", "", Fault::BadNumber),
        ("0x1", "", Fault::TrailingData),
        ("\"\\x\"", "", Fault::BadEscape),
        ("\"\\u12g4\"", "", Fault::BadEscape),
        ("\"\\u+123\"", "", Fault::BadEscape),
        ("\"\\u12\"", "", Fault::BadEscape),
        ("\"a\nb\"", "", Fault::ControlCharacter),
        ("\"12345678\u{1f}\"", "", Fault::ControlCharacter),
    ] {
        assert_eq!(fault(text), (path.to_owned(), wanted), "{text:?}");
    }
    for bytes in [&b"\"\xff\""[..], b"\"\xc0\xaf\"", b"\"\xed\xa0\x80\"", b"\xff"] {
        assert_eq!(fault(bytes), (String::new(), Fault::NotUtf8), "{bytes:?}");
    }
    assert_eq!(fault(" ".repeat(1001)), (String::new(), Fault::TooLong(1000)));
}

#[test]
fn null_is_passed_to_a_caller_who_wants_it() {
    let limits = Limits { null: Null::Passed, ..LIMITS };
    assert_eq!(check(b"{\"a\":null}", limits), Ok(()));
    assert!(check(b"{\"a\":nul}", limits).is_err());
}

#[test]
fn an_error_names_the_place() {
    let text = "{\n  \"network\": {\n    \"d\u{e9}f\": 1, \"d\u{e9}f\": 2\n  }\n}";
    let error = check(text.as_bytes(), LIMITS).unwrap_err();
    assert_eq!(error.to_string(), "network[\"d\u{e9}f\"]: the key is there twice (line 3, column 21)");
    let error = check(b"[", LIMITS).unwrap_err();
    assert_eq!(error.to_string(), "[0]: the text ends too early (line 1, column 2)");
}

/// A value that the strict reader takes: no null, and keys cannot repeat in a map.
fn arb_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

const WIDE: Limits = Limits { max_bytes: usize::MAX, max_depth: 100, null: Null::Passed };

proptest! {
    #[test]
    fn takes_whatever_serde_json_writes(value in arb_value()) {
        prop_assert_eq!(check(&serde_json::to_vec(&value).unwrap(), WIDE), Ok(()));
        prop_assert_eq!(check(&serde_json::to_vec_pretty(&value).unwrap(), WIDE), Ok(()));
    }

    /// On short texts over the characters of JSON: the same are valid, but for the repeated keys.
    #[test]
    fn agrees_with_serde_json(text in "[\\[\\]{}:,\"aud01.eE+\\\\ \n-]{0,14}|([\\[{]?\"(a|\\\\u00[0-9]{2}|\\\\ud8[0-9]{2}|\\\\udc00|\\\\[a-z])\"[:,]?(1|null|true|[0-9.eE+-]{1,5}|\\{\\})?[\\]}]?)") {
        let ours = check(text.as_bytes(), WIDE);
        match serde_json::from_str::<Value>(&text) {
            Ok(_) => prop_assert!(
                matches!(&ours, Ok(()) | Err(JsonError { fault: Fault::DuplicateKey, .. })),
                "{}: {:?}", text, ours
            ),
            // It computes the number, we only read it.
            Err(error) if error.to_string().contains("out of range") => {}
            Err(error) => prop_assert!(ours.is_err(), "{}: {}", text, error),
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = check(&bytes, WIDE);
    }
}
