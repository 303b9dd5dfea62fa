use super::*;
use crate::{
    event::{EventKind, IngressKind},
    json::Fault,
};

fn parse(text: &str) -> Result<Attach, AttachError> {
    Attach::parse(text.as_bytes())
}

#[test]
fn a_request_reads_back() {
    let text = r#"{"t":"attach","proto":1,"name":"build-42","listeners":["proxy","transparent","dns-udp","dns-tcp"],"allowedDomains":["registry.example.org","*.cdn.example.org:443"]}"#;
    let attach = parse(text).unwrap();
    assert_eq!(attach.name(), "build-42");
    use ListenerKind::*;
    assert_eq!(attach.listeners(), [Proxy, Transparent, DnsUdp, DnsTcp]);
    assert_eq!(attach.allowed_domains()[1].as_str(), "*.cdn.example.org:443");
    assert_eq!(attach.encode().unwrap(), text.as_bytes());
}

#[test]
fn the_shortest_request() {
    let text = r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy"]}"#;
    assert_eq!(parse(text).unwrap().encode().unwrap(), text.as_bytes());
}

#[test]
fn refuses_what_is_no_request() {
    let long_name =
        format!(r#"{{"t":"attach","proto":1,"name":"{}","listeners":["proxy"]}}"#, "n".repeat(129));
    for text in [
        "",
        "{}",
        "[]",
        r#"{"t":"attached","proto":1,"name":"x","listeners":["proxy"]}"#,
        r#"{"t":"attach","proto":2,"name":"x","listeners":["proxy"]}"#,
        r#"{"t":"attach","proto":"1","name":"x","listeners":["proxy"]}"#,
        r#"{"t":"attach","proto":1,"listeners":["proxy"]}"#,
        r#"{"t":"attach","proto":1,"name":"","listeners":["proxy"]}"#,
        r#"{"t":"attach","proto":1,"name":"a\nb","listeners":["proxy"]}"#,
        r#"{"t":"attach","proto":1,"name":"a\u009bb","listeners":["proxy"]}"#,
        r#"{"t":"attach","proto":1,"name":"x"}"#,
        r#"{"t":"attach","proto":1,"name":"x","listeners":[]}"#,
        r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy","proxy"]}"#,
        r#"{"t":"attach","proto":1,"name":"x","listeners":["Proxy"]}"#,
        r#"{"t":"attach","proto":1,"name":"x","listeners":["dns"]}"#,
        r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy"],"allowedDomains":["*"]}"#,
        r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy"],"allowedDomains":["::1"]}"#,
        r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy"],"allowedDomains":null}"#,
        r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy"],"credentials":{}}"#,
        r#"{"t":"attach","proto":1,"name":"x","name":"y","listeners":["proxy"]}"#,
        r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy"]}{}"#,
        &long_name,
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    let padded = format!(
        r#"{{"t":"attach","proto":1,"name":"x","listeners":["proxy"]{}}}"#,
        " ".repeat(MAX_ATTACH_PACKET)
    );
    assert!(matches!(parse(&padded), Err(AttachError::TooLong)));
    let entries = vec![DomainPattern::parse_hello(&format!("{}.example", "a".repeat(63))).unwrap(); 1000];
    let attach = Attach::new("x".into(), vec![ListenerKind::Proxy], entries).unwrap();
    assert!(matches!(attach.encode(), Err(AttachError::TooLong)));
}

#[test]
fn answers_read_back() {
    let event = Event {
        time: "2026-11-29T12:00:00.123Z".parse().unwrap(),
        event: EventKind::Refused,
        session: None,
        ingress: IngressKind::Http,
        host: "example.com".into(),
        port: 80,
        method: None,
        path: None,
        code: None,
        status: None,
        rule: None,
        reason: None,
        bytes_in: 1,
        bytes_out: 2,
        ms: 0.5,
    };
    for answer in [
        Answer::Attached { ca_pem: None },
        Answer::Attached { ca_pem: Some("-----BEGIN CERTIFICATE-----\n".into()) },
        Answer::Refused { reason: "no \"proxy\" listener".into() },
        Answer::Event(Box::new(event)),
    ] {
        assert_eq!(Answer::parse(&answer.encode().unwrap()).unwrap(), answer);
    }
}

#[test]
fn refuses_what_is_no_answer() {
    for text in [
        "{}",
        r#"{"t":"attach","proto":1,"name":"x","listeners":["proxy"]}"#,
        r#"{"t":"attached"}"#,
        r#"{"t":"attached","proto":2}"#,
        r#"{"t":"attached","proto":1,"reason":"x"}"#,
        r#"{"t":"attached","proto":1,"caPem":null}"#,
        r#"{"t":"refused"}"#,
        r#"{"t":"refused","reason":"x","proto":1}"#,
        r#"{"t":"refused","reason":"x","t":"attached"}"#,
        r#"{"event":"refused"}"#,
    ] {
        assert!(Answer::parse(text.as_bytes()).is_err(), "{text}");
    }
    let error = Answer::parse(br#"{"t":"refused","t":"attached"}"#).unwrap_err();
    assert!(matches!(error, AttachError::Json(JsonError { fault: Fault::DuplicateKey, .. })));
}
