use proptest::prelude::*;

use super::*;

const REQ: &str = r#"{"t":"req","id":1,"method":"GET","host":"a.example","port":80,"path":"/""#;

#[test]
fn reads_keys_in_any_order() {
    let text = r#" {"path":"/","port":80,"host":"a.example","headers":{"x-a":["1","2"],"x-b":[]},"method":"GET","id":1,"t":"req"} "#;
    let Ok(FromProxy::Req(req)) = parse_from_proxy(text.as_bytes()) else { panic!() };
    assert_eq!(req.headers.len(), 2);
    assert_eq!((req.query, req.sni, req.host_header), (None, None, None));
}

#[test]
fn refuses_what_breaks_the_protocol() {
    let req = |more: &str| format!("{REQ}{more}}}");
    for text in [
        "{}".to_owned(),
        "[]".into(),
        r#"{"t":"verdict","id":1,"action":"allow"}"#.into(),
        r#"{"t":"hello"}"#.into(),
        r#"{"t":"hello","proto":2}"#.into(),
        r#"{"t":"hello","proto":"1"}"#.into(),
        r#"{"t":"hello","proto":1,"id":1}"#.into(),
        r#"{"t":"hello","proto":1,"cut":true}"#.into(),
        r#"{"t":"req","id":1,"method":"GET","host":"a","port":80}"#.into(),
        r#"{"t":"body","id":1}"#.into(),
        r#"{"t":"body","id":1,"data":"","cut":false}"#.into(),
        r#"{"t":"body","id":1,"data":"","path":"/"}"#.into(),
        r#"{"t":"body","id":1,"data":"a"}"#.into(),
        r#"{"t":"body","id":1,"data":"aGVsbA"}"#.into(),
        r#"{"t":"body","id":1,"data":"aGVsbB=="}"#.into(),
        r#"{"t":"body","id":1,"data":"aGVs bA=="}"#.into(),
        r#"{"t":"body","id":0,"data":""}"#.into(),
        req(r#","id":2"#),
        req(r#","proto":1"#),
        req(r#","data":"""#),
        req(r#","scheme":"https""#),
        req(r#","query":"""#),
        req(r#","sni":"""#),
        req(r#","hostHeader":"""#),
        req(r#","query":null"#),
        req(r#","headers":{}"#),
        req(r#","headers":[]"#),
        req(r#","headers":{"X-A":["1"]}"#),
        req(r#","headers":{"host":["1"]}"#),
        req(r#","headers":{"x-a":"1"}"#),
        req(r#","headers":{"x-a":["1"],"x-a":["2"]}"#),
        req(r#","headers":{"x-a":["\u0085"]}"#),
        req(r#","headers":{"x-a":["\n"]}"#),
        req(r#","headers":{"x-a":[null]}"#),
        req(&format!(r#","headers":{{"x-a":["1"{}]}}"#, r#","1""#.repeat(190))),
        req(&format!(r#","headers":{{"x-a":["{}"]}}"#, "v".repeat(65536 - 2))),
        req(&format!(r#","sni":"{}""#, "a".repeat(8193))),
        req(&format!(r#","query":"{}""#, "a".repeat(MAX_FRAME))),
        req("").replace("80", "0"),
        req("").replace("80", "65536"),
        req("").replace("80", "80.0"),
    ] {
        assert!(parse_from_proxy(text.as_bytes()).is_err(), "{}", text.chars().take(200).collect::<String>());
    }
    assert!(parse_from_proxy(req("").as_bytes()).is_ok());
}

#[test]
fn only_a_body_may_be_longer_than_a_frame() {
    let body = format!(r#"{{"t":"body","id":1,"data":"{}"}}"#, "AAAA".repeat(MAX_FRAME / 4));
    assert!(parse_from_proxy(body.as_bytes()).is_ok());
    let padded = format!("{REQ}}}{}", " ".repeat(MAX_FRAME));
    assert_eq!(parse_from_proxy(padded.as_bytes()), Err(ProtocolError::TooLong));
}

#[test]
fn what_may_hold_a_credential_is_not_printed() {
    let req = format!(r#"{REQ},"query":"hunter2","headers":{{"authorization":["hunter2"]}}}}"#);
    let body = r#"{"t":"body","id":1,"data":"aHVudGVyMg=="}"#;
    for text in [req.as_str(), body] {
        let printed = format!("{:?}", parse_from_proxy(text.as_bytes()).unwrap());
        assert!(!printed.contains("hunter2") && !printed.contains("104, 117"), "{printed}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = parse_from_proxy(&bytes);
    }
}
