use proptest::prelude::*;

use super::*;
use crate::json::Fault;

fn parse(text: &str) -> Result<FromDecider, ProtocolError> {
    parse_from_decider(text.as_bytes())
}

fn allow(more: &str) -> String {
    format!(r#"{{"t":"verdict","id":1,"action":"allow"{more}}}"#)
}

fn deny(more: &str) -> String {
    format!(r#"{{"t":"verdict","id":1,"action":"deny","status":403{more}}}"#)
}

fn edits(more: &str) -> Edits {
    match parse(&allow(more)) {
        Ok(FromDecider::Verdict(Verdict { id: 1, decision: Decision::Allow(edits) })) => edits,
        other => panic!("{more}: {other:?}"),
    }
}

fn names(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",")
}

#[test]
fn verdicts_that_are_taken() {
    assert!(edits("").is_empty());
    let edited = edits(
        r#","setHeaders":{"x-a":["1","2\t\u00e9"],"x-b":[],"__proto__":[""]},"removeHeaders":["cookie","x_a"],"cred":"github","credential":"s3cret\"\\""#,
    );
    let set: Vec<_> = edited.set().iter().map(|f| (f.name.as_str(), f.values.len())).collect();
    assert_eq!(set, [("x-a", 2), ("x-b", 0), ("__proto__", 1)]);
    assert_eq!(edited.set()[0].values[1].to_latin1(), Some(b"2\t\xe9".to_vec()));
    assert_eq!(edited.remove().iter().map(FieldName::as_str).collect::<Vec<_>>(), ["cookie", "x_a"]);
    let cred = edited.cred().unwrap();
    assert_eq!((cred.class(), cred.credential().expose()), ("github", &b"s3cret\"\\"[..]));
    assert_eq!(edited.unsendable(), None);

    let denial = parse(&deny(r#","reason":"no\tway €""#)).unwrap();
    let FromDecider::Verdict(Verdict { decision: Decision::Deny(denial), .. }) = denial else { panic!() };
    assert_eq!((denial.status(), denial.reason()), (403, Some("no\tway €")));

    for (max, wanted) in [("1", 1), ("33554432", 33_554_432)] {
        let text = format!(r#"{{"max":{max},"action":"need_body","id":7,"t":"verdict"}}"#);
        let verdict = Verdict { id: 7, decision: Decision::NeedBody(NeedBody::new(wanted).unwrap()) };
        assert_eq!(parse(&text), Ok(FromDecider::Verdict(verdict)));
    }
}

#[test]
fn borders_that_are_taken() {
    let many = names(&(0..190).map(|i| format!("x-{i}")).collect::<Vec<_>>());
    for text in [
        format!("\r\n\t {} \n", allow("")),
        allow("").replace("\"t\"", r#""\u0074""#),
        format!("{}{}", allow(""), " ".repeat(MAX_FRAME - allow("").len())),
        allow("").replace(":1", ":9007199254740991"),
        deny("").replace("403", "400"),
        deny("").replace("403", "599"),
        deny(&format!(r#","reason":"{}""#, "r".repeat(1024))),
        deny(&format!(r#","reason":"{}""#, "\u{e9}".repeat(512))),
        allow(&format!(r#","cred":"api","credential":"{}""#, "~".repeat(8192))),
        allow(&format!(r#","removeHeaders":[{many}]"#)),
        allow(&format!(r#","setHeaders":{{"x-a":["1"{}]}}"#, r#","1""#.repeat(189))),
        allow(&format!(r#","setHeaders":{{"x-a":["{}"]}}"#, "v".repeat(65536 - 3))),
        allow(&format!(r#","removeHeaders":["{}"]"#, "x".repeat(65536))),
        allow(r#","setHeaders":{"x-a":["1"],"x_a":["2"]}"#),
        allow(r#","removeHeaders":["x-a","x_a"]"#),
        allow(r#","removeHeaders":["x-a"],"setHeaders":{"x-a":["1"]}"#),
        allow(r#","removeHeaders":["authorization","proxy-authorization","cookie","x_api.key"]"#),
        allow(r#","cred":"any thing","credential":"x""#),
    ] {
        assert!(parse(&text).is_ok(), "{}: {:?}", &text[..text.len().min(120)], parse(&text).err());
    }
}

/// Every case is one more way in which two readers could take one message for two things.
#[test]
fn verdicts_that_break_the_protocol() {
    let many = names(&(0..191).map(|i| format!("x-{i}")).collect::<Vec<_>>());
    let mut cases = vec![
        "allow 1".to_owned(),
        format!("[{}]", allow("")),
        "1".into(),
        "null".into(),
        "{}".into(),
        allow("").repeat(2),
        format!("{}x", allow("")),
        format!("{}\0", allow("")),
        format!("\u{feff}{}", allow("")),
        allow(","),
        format!("{}{}", allow(""), " ".repeat(MAX_FRAME + 1 - allow("").len())),
        deny(r#","reason":null"#),
        deny(r#","reason":"""#),
        deny(r#","reason":"a\nb""#),
        deny(r#","reason":"a\u009fb""#),
        deny(r#","reason":"a\ud800b""#),
        deny(r#","reason":"\udc00""#),
        deny(r#","reason":7"#),
        deny(&format!(r#","reason":"{}""#, "r".repeat(1025))),
        deny(&format!(r#","reason":"{}""#, "\u{e9}".repeat(513))),
        deny(r#","setHeaders":{"x-a":["1"]}"#),
        deny(r#","removeHeaders":["x-a"]"#),
        deny(r#","cred":"a","credential":"b""#),
        deny(r#","max":1"#),
        deny(r#","status":403"#),
        r#"{"t":"verdict","id":1,"action":"deny"}"#.into(),
        allow(r#","action":"allow""#),
        allow(r#","\u0061ction":"allow""#),
        allow(r#","note":"x""#),
        allow(r#","__proto__":{"x":1}"#),
        allow(r#","T":"verdict""#),
        allow(r#","status":200"#),
        allow(r#","reason":"x""#),
        allow(r#","max":1"#),
        allow(r#","proto":1"#),
        allow(r#","allowedDomains":[]"#),
        allow(r#","data":"""#),
        allow("").replace("verdict", "ping"),
        allow("").replace("verdict", "Verdict"),
        allow("").replace("\"allow\"", "\"maybe\""),
        allow("").replace("\"allow\"", "true"),
        r#"{"id":1,"action":"allow"}"#.into(),
        r#"{"t":"verdict","action":"allow"}"#.into(),
        r#"{"t":"verdict","id":1}"#.into(),
        r#"{"t":"body","id":1,"data":""}"#.into(),
        allow(r#","setHeaders":{}"#),
        allow(r#","setHeaders":false"#),
        allow(r#","setHeaders":[]"#),
        allow(r#","setHeaders":{"x-a":"1"}"#),
        allow(r#","setHeaders":{"x-a":[1]}"#),
        allow(r#","setHeaders":{"x-a":[null]}"#),
        allow(r#","setHeaders":{"x-a":[["1"]]}"#),
        allow(r#","setHeaders":{"x-a":["1"],"x-a":["2"]}"#),
        allow(r#","setHeaders":{"x-a":["1"],"x-\u0061":["2"]}"#),
        allow(r#","setHeaders":{"X-A":["1"]}"#),
        allow(r#","setHeaders":{"x a":["1"]}"#),
        allow(r#","setHeaders":{"":["1"]}"#),
        allow(r#","setHeaders":{"x-é":["1"]}"#),
        allow(r#","setHeaders":{"x-\ud800":["1"]}"#),
        allow(&format!(r#","setHeaders":{{"x-a":["1"{}]}}"#, r#","1""#.repeat(190))),
        allow(&format!(r#","setHeaders":{{{}}}"#, many.replace(',', ":[],") + ":[]")),
        allow(&format!(r#","setHeaders":{{"x-a":["{}"]}}"#, "v".repeat(65536 - 2))),
        allow(&format!(r#","setHeaders":{{"x-a":["{}"]}}"#, "\u{e9}".repeat(32768))),
        allow(r#","removeHeaders":[]"#),
        allow(r#","removeHeaders":"x-a""#),
        allow(r#","removeHeaders":["X-A"]"#),
        allow(r#","removeHeaders":["x-a","x-a"]"#),
        allow(r#","removeHeaders":[1]"#),
        allow(&format!(r#","removeHeaders":[{many}]"#)),
        allow(&format!(r#","removeHeaders":["{}"]"#, "x".repeat(65537))),
        allow(r#","cred":"api""#),
        allow(r#","credential":"x""#),
        allow(r#","cred":"","credential":"x""#),
        allow(r#","cred":"api","credential":"""#),
        allow(r#","cred":"api","credential":"a b""#),
        allow(r#","cred":"api","credential":"a\r\nb""#),
        allow(r#","cred":"api","credential":"é""#),
        allow(r#","cred":"api","credential":"\u007f""#),
        allow(&format!(r#","cred":"api","credential":"{}""#, "a".repeat(8193))),
    ];
    for control in ["\\u0001", "a\\r\\nx-evil: 1", "\\u0000", "\\u007f", "\u{7f}", "\\u0085", "\u{85}"] {
        cases.push(allow(&format!(r#","setHeaders":{{"x-a":["{control}"]}}"#)));
        cases.push(deny(&format!(r#","reason":"{control}""#)));
    }
    for status in
        ["399", "600", "200", "0", "-1", "65939", "\"403\"", "403.5", "403.0", "4.03e2", "true", "null"]
    {
        cases.push(deny("").replace("403", status));
    }
    for max in ["0", "33554433", "-1", "1.5", "1.0", "\"10\"", "4294967297", "99999999999999999999"] {
        cases.push(format!(r#"{{"t":"verdict","id":1,"action":"need_body","max":{max}}}"#));
    }
    cases.push(r#"{"t":"verdict","id":1,"action":"need_body"}"#.into());
    cases.push(r#"{"t":"verdict","id":1,"action":"need_body","max":1,"reason":"x"}"#.into());
    for id in [
        "0",
        "-1",
        "-0",
        "1.0",
        "1e0",
        "1.5",
        "\"1\"",
        "01",
        "9007199254740992",
        "1152921504606846976",
        "true",
        "null",
    ] {
        cases.push(allow("").replace(":1", &format!(":{id}")));
    }
    for framing in [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "keep-alive",
        "proxy-connection",
        "content_length",
        "transfer.encoding",
        "keep_alive",
    ] {
        cases.push(allow(&format!(r#","setHeaders":{{"{framing}":["1"]}}"#)));
        cases.push(allow(&format!(r#","setHeaders":{{"{framing}":[]}}"#)));
        cases.push(allow(&format!(r#","removeHeaders":["{framing}"]"#)));
    }
    for credential in
        ["authorization", "proxy-authorization", "cookie", "x-api-key", "x_api_key", "x.api-key"]
    {
        cases.push(allow(&format!(r#","setHeaders":{{"{credential}":["1"]}}"#)));
        cases.push(allow(&format!(r#","setHeaders":{{"{credential}":[]}}"#)));
    }
    for text in &cases {
        assert!(parse(text).is_err(), "{}", text.chars().take(200).collect::<String>());
    }
    for tail in [&b"\xff\xfe"[..], b"\xc0\xaf", b"\xed\xa0\x80"] {
        let bytes = [deny(r#","reason":""#).trim_end_matches('}').as_bytes(), tail, b"\"}"].concat();
        let error = parse_from_decider(&bytes).unwrap_err();
        assert!(matches!(error, ProtocolError::Json(e) if e.fault == Fault::NotUtf8), "{error}");
    }
}

#[test]
fn hellos() {
    let hello = |allowed: &str, denied: &str| {
        parse(&format!(
            r#"{{"t":"hello","proto":1,"allowedDomains":[{allowed}],"deniedDomains":[{denied}]}}"#
        ))
    };
    assert_eq!(hello("", ""), Ok(FromDecider::Hello(Hello::default())));
    let Ok(FromDecider::Hello(lists)) =
        hello(r#""a.example","*.b.example:443","::1","[::1]""#, r#""a.example""#)
    else {
        panic!()
    };
    assert_eq!((lists.allowed().len(), lists.denied()[0].as_str()), (4, "a.example"));
    for (allowed, denied) in [
        (r#""a.example","a.example""#, ""),
        ("", r#""a.example","b.example","a.example""#),
        (r#""A.example""#, ""),
        (r#""*""#, ""),
        ("", r#""*:22""#),
        ("", r#""a_b.example""#),
        (r#"["a.example"]"#, ""),
        ("1", ""),
        ("null", ""),
    ] {
        assert!(hello(allowed, denied).is_err(), "{allowed} {denied}");
    }
    for text in [
        r#"{"t":"hello","proto":2,"allowedDomains":[],"deniedDomains":[]}"#,
        r#"{"t":"hello","proto":"1","allowedDomains":[],"deniedDomains":[]}"#,
        r#"{"t":"hello","proto":1.0,"allowedDomains":[],"deniedDomains":[]}"#,
        r#"{"t":"hello","allowedDomains":[],"deniedDomains":[]}"#,
        r#"{"t":"hello","proto":1,"allowedDomains":[]}"#,
        r#"{"t":"hello","proto":1,"deniedDomains":[]}"#,
        r#"{"t":"hello","proto":1,"allowedDomains":[],"deniedDomains":null}"#,
        r#"{"t":"hello","proto":1,"allowedDomains":[],"allowedDomains":[],"deniedDomains":[]}"#,
        r#"{"t":"hello","proto":1,"allowedDomains":[],"deniedDomains":[],"name":"x"}"#,
        r#"{"t":"hello","proto":1,"allowedDomains":[],"deniedDomains":[],"id":1}"#,
        r#"{"t":"hello","proto":1,"allowedDomains":[],"deniedDomains":[],"cred":"x"}"#,
        r#"{"t":"hello","proto":1,"allowedDomains":{},"deniedDomains":[]}"#,
        r#"{"t":"hello","proto":1,"allowedDomains":"","deniedDomains":[]}"#,
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_character_above_latin1_is_taken_but_cannot_be_sent() {
    let edits = edits(r#","setHeaders":{"x-a":["é"],"x-b":["1","€"]}"#);
    assert_eq!(edits.unsendable().map(FieldName::as_str), Some("x-b"));
    assert_eq!(edits.set()[1].values[1].to_latin1(), None);
}

#[test]
fn errors_name_the_fault_and_no_value() {
    for (text, wanted) in [
        (
            allow(r#","cred":"api","credential":"hunter2 ""#),
            "allow: the credential is not 1 to 8192 bytes of printable ASCII without blanks",
        ),
        (allow(r#","setHeaders":{"x-a":["hunter2\n"]}"#), "allow: a control character in a header value"),
        (allow(r#","setHeaders":{"Host":["hunter2"]}"#), "setHeaders: \"Host\" is not lower case"),
        (
            allow(r#","setHeaders":{"te":["hunter2"]}"#),
            "allow: te says how the message is framed: only the proxy sets or removes it",
        ),
        (allow(r#","status":1"#), "status does not belong into this message"),
        (allow(r#","cred":"hunter2""#), "credential is missing"),
        (allow(r#","note\n":1"#), "the key \"note\\n\" is in no message"),
        (allow("").replace(":1", ":0"), "id is not an integer from 1 to 2^53 - 1"),
        (deny(r#","reason":null"#), "malformed message: null is not allowed, at byte 60"),
    ] {
        assert_eq!(parse(&text).unwrap_err().to_string(), wanted);
    }
    let edits = edits(r#","setHeaders":{"x-a":["hunter2"]},"cred":"api","credential":"hunter2""#);
    assert!(!format!("{edits:?}").contains("hunter2"));
}

fn arb_edits() -> impl Strategy<Value = Edits> {
    let name = "x[a-z_.-]{0,6}";
    let value = "[\t -~\u{a0}-\u{ff}\u{20ac}\u{1f600}]{0,8}";
    (
        proptest::collection::btree_map(name, proptest::collection::vec(value, 0..4), 0..5),
        proptest::collection::btree_set(name, 0..5),
        proptest::option::of((".{1,8}", "[!-~]{1,20}")),
    )
        .prop_map(|(set, remove, cred)| {
            let name = |text: &str| FieldName::parse(text).unwrap();
            let set = set.iter().map(|(key, values)| SetField {
                name: name(key),
                values: values.iter().map(|value| FieldValue::parse(value).unwrap()).collect(),
            });
            let cred = cred.map(|(class, credential)| Cred::new(&class, credential).unwrap());
            Edits::new(set.collect(), remove.iter().map(|key| name(key)).collect(), cred).unwrap()
        })
}

fn arb_decision() -> impl Strategy<Value = Decision> {
    prop_oneof![
        arb_edits().prop_map(Decision::Allow),
        (400u16..600, proptest::option::of("[\t -~\u{a0}-\u{10ffff}]{1,20}"))
            .prop_map(|(status, reason)| Decision::Deny(Denial::new(status, reason.as_deref()).unwrap())),
        (1u32..=32 << 20).prop_map(|max| Decision::NeedBody(NeedBody::new(max).unwrap())),
    ]
}

proptest! {
    #[test]
    fn what_one_end_writes_the_other_reads(id in 1..=crate::limits::MAX_ID, decision in arb_decision()) {
        let verdict = Verdict { id, decision };
        let mut out = Vec::new();
        verdict.encode(&mut out).unwrap();
        prop_assert_eq!(parse_from_decider(&out[4..]), Ok(FromDecider::Verdict(verdict)));
    }

    #[test]
    fn hellos_read_back(allowed in proptest::collection::btree_set("(\\*\\.)?[a-z]{1,4}\\.[a-z]{2}(:[1-9])?", 0..6)) {
        let allowed: Vec<String> = allowed.into_iter().collect();
        let hello = Hello::new(&allowed, &[]).unwrap();
        let mut out = Vec::new();
        hello.encode(&mut out).unwrap();
        prop_assert_eq!(parse_from_decider(&out[4..]), Ok(FromDecider::Hello(hello)));
    }

    /// A message with any one byte changed is read as something well-formed or refused, never a panic.
    #[test]
    fn a_damaged_message_is_no_panic(at in 0usize..150, byte: u8) {
        let mut bytes = allow(r#","setHeaders":{"x-a":["1"]},"removeHeaders":["x-b"],"cred":"a","credential":"b""#).into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = parse_from_decider(&bytes);
    }
}
