use proptest::prelude::*;

use super::*;
use crate::{
    decider::{
        FromProxy, Req,
        frame::{FrameReader, Side},
        parse_from_proxy,
    },
    json,
};

type Headers<'a> = &'a [(&'a [u8], &'a [u8])];

fn plain(host: &Host) -> ReqRef<'_> {
    ReqRef { id: 1, method: "GET", host, port: 443, host_header: None, sni: None, path: b"/", query: None }
}

fn host() -> Host {
    Host::from_bare("example.com").unwrap()
}

fn try_encode(req: &ReqRef<'_>, headers: Headers<'_>) -> Result<String, ReqError> {
    let mut out = b"kept".to_vec();
    match encode_req(&mut out, req, headers.iter().copied()) {
        Ok(()) => {
            assert_eq!(out[4..8], u32::try_from(out.len() - 8).unwrap().to_be_bytes());
            Ok(String::from_utf8(out.split_off(8)).unwrap())
        }
        Err(error) => {
            assert_eq!(out, b"kept");
            Err(error)
        }
    }
}

fn with_headers(headers: Headers<'_>) -> Result<String, ReqError> {
    try_encode(&plain(&host()), headers)
}

fn read(payload: &str) -> Req {
    match parse_from_proxy(payload.as_bytes()) {
        Ok(FromProxy::Req(req)) => *req,
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields_as_documented() {
    let host = host();
    let req = ReqRef {
        id: 7,
        method: "POST",
        host_header: Some(b"Example.com:8443"),
        sni: Some("example.com"),
        port: 8443,
        path: b"/v1/\"things\"",
        query: Some(b"q=\\"),
        ..plain(&host)
    };
    let headers: Headers<'_> =
        &[(b"X-B", b"1"), (b"Host", b"x"), (b"accept", b"caf\xe9\t"), (b"x-b", b"2"), (b"X_B", b"")];
    assert_eq!(
        try_encode(&req, headers).unwrap(),
        "{\"t\":\"req\",\"id\":7,\"method\":\"POST\",\"host\":\"example.com\",\"port\":8443,\
         \"hostHeader\":\"Example.com:8443\",\"sni\":\"example.com\",\"path\":\"/v1/\\\"things\\\"\",\
         \"query\":\"q=\\\\\",\"headers\":{\"x-b\":[\"1\",\"2\"],\"accept\":[\"caf\u{e9}\\u0009\"],\"x_b\":[\"\"]}}"
    );
}

#[test]
fn empty_parts_are_left_out() {
    let host = Host::from_bare("::1").unwrap();
    let req = ReqRef { host_header: Some(b""), sni: Some(""), query: Some(b""), ..plain(&host) };
    assert_eq!(
        try_encode(&req, &[(b"HOST", b"x")]).unwrap(),
        r#"{"t":"req","id":1,"method":"GET","host":"::1","port":443,"path":"/"}"#
    );
}

#[test]
fn values_are_counted_to_190() {
    let header = |name| (name, b"v".as_slice());
    assert!(with_headers(&vec![header(b"x-same".as_slice()); 190]).is_ok());
    assert_eq!(with_headers(&vec![header(b"x-same"); 191]), Err(ReqError::TooManyValues));
    let names: Vec<String> = (0..191).map(|i| format!("x-{i}")).collect();
    let headers: Vec<_> = names.iter().map(|name| header(name.as_bytes())).collect();
    assert!(with_headers(&headers[..190]).is_ok());
    assert_eq!(with_headers(&headers), Err(ReqError::TooManyValues));
    // Host lines are in hostHeader.
    assert!(with_headers(&[&headers[..190], &[header(b"Host")]].concat()).is_ok());
}

#[test]
fn names_and_values_are_counted_in_utf8_and_each_name_once() {
    let long = vec![b'v'; 32768];
    let wide = vec![0xe9; 16384];
    assert!(with_headers(&[(b"x-a", &long[3..]), (b"x-b", &long[3..])]).is_ok());
    assert!(with_headers(&[(b"x-a", &long[3..]), (b"X-A", &long)]).is_ok());
    assert!(with_headers(&[(b"x-a", &wide), (b"x-b", &long[6..])]).is_ok());
    for headers in [
        [(b"x-a", &long[3..]), (b"x-b", &long[2..])],
        [(b"x-a", &long[2..]), (b"X-A", &long)],
        [(b"x-a", &wide), (b"x-b", &long[5..])],
    ] {
        let headers: Vec<(&[u8], &[u8])> =
            headers.iter().map(|(name, value)| (name.as_slice(), *value)).collect();
        assert_eq!(with_headers(&headers), Err(ReqError::HeadersTooLong));
    }
    let long_name = vec![b'n'; MAX_FIELD_BYTES + 1];
    assert_eq!(with_headers(&[(&long_name, b"")]), Err(ReqError::HeadersTooLong));
    assert!(with_headers(&[(&long_name[1..], b"")]).is_ok());
}

#[test]
fn parts_of_the_target_are_counted_to_8_kib() {
    let host = host();
    let (fits, over) = ("a".repeat(8192), "a".repeat(8193));
    let wide = vec![0xe9; 4097];
    let base = plain(&host);
    let fit = ReqRef { path: fits.as_bytes(), host_header: Some(fits.as_bytes()), sni: Some(&fits), ..base };
    assert!(try_encode(&fit, &[]).is_ok());
    assert_eq!(
        try_encode(&ReqRef { path: over.as_bytes(), ..base }, &[]),
        Err(ReqError::FieldTooLong("path"))
    );
    assert_eq!(try_encode(&ReqRef { path: &wide, ..base }, &[]), Err(ReqError::FieldTooLong("path")));
    assert_eq!(try_encode(&ReqRef { sni: Some(&over), ..base }, &[]), Err(ReqError::FieldTooLong("sni")));
    let req = ReqRef { host_header: Some(over.as_bytes()), ..base };
    assert_eq!(try_encode(&req, &[]), Err(ReqError::FieldTooLong("hostHeader")));
}

#[test]
fn the_frame_is_counted_as_it_is_written() {
    let host = host();
    let query = vec![b'\\'; 600_000];
    let too_long = ReqError::FrameTooLong(FrameTooLong { limit: MAX_FRAME });
    assert_eq!(try_encode(&ReqRef { query: Some(&query), ..plain(&host) }, &[]), Err(too_long));
    let empty = try_encode(&ReqRef { query: Some(b"a"), ..plain(&host) }, &[]).unwrap().len();
    let query = vec![b'a'; MAX_FRAME - empty + 2];
    assert_eq!(
        try_encode(&ReqRef { query: Some(&query[1..]), ..plain(&host) }, &[]).unwrap().len(),
        MAX_FRAME
    );
    assert_eq!(try_encode(&ReqRef { query: Some(&query), ..plain(&host) }, &[]), Err(too_long));
}

#[test]
fn what_would_break_the_protocol_is_not_sent() {
    for value in [&b"\0"[..], b"a\x1f", b"\x7f", b"\x80", b"\x9f", "\u{20ac}".as_bytes(), b"a\nb"] {
        assert_eq!(with_headers(&[(b"x-a", value)]), Err(ReqError::ControlCharacter), "{value:?}");
        assert_eq!(with_headers(&[(b"x-a", b"1"), (b"X-A", value)]), Err(ReqError::ControlCharacter));
    }
    for value in [&b""[..], b"\t", b" ", b"\xa0", b"\xff", b"~"] {
        assert!(with_headers(&[(b"x-a", value)]).is_ok(), "{value:?}");
    }
    for name in [&b""[..], b"a b", b"a:", b"\xe9", b"a\0"] {
        assert_eq!(with_headers(&[(name, b"")]), Err(ReqError::BadName), "{name:?}");
    }
}

#[test]
fn a_body_is_shown_with_what_was_cut() {
    let mut out = Vec::new();
    encode_body(&mut out, 3, b"hell", true).unwrap();
    encode_body(&mut out, 4, b"", false).unwrap();
    let mut reader = FrameReader::new(Side::Decider);
    reader.tail().extend_from_slice(&out);
    let payload = reader.next_frame().unwrap().unwrap();
    assert_eq!(payload, br#"{"t":"body","id":3,"data":"aGVsbA==","cut":true}"#);
    let payload = reader.next_frame().unwrap().unwrap();
    assert_eq!(payload, br#"{"t":"body","id":4,"data":""}"#);
}

#[test]
fn the_longest_body_fits_its_frame() {
    let mut out = Vec::new();
    let mut data = vec![0; MAX_NEED_BODY as usize];
    encode_body(&mut out, crate::limits::MAX_ID, &data, true).unwrap();
    assert!(out.len() - 4 <= MAX_BODY_FRAME);
    out.clear();
    data.push(0);
    assert!(encode_body(&mut out, 1, &data, false).is_err());
    assert!(out.is_empty());
}

#[test]
fn the_opening() {
    let mut out = Vec::new();
    encode_hello(&mut out);
    assert_eq!(out, b"\0\0\0\x17{\"t\":\"hello\",\"proto\":1}");
    assert_eq!(parse_from_proxy(&out[4..]), Ok(FromProxy::Hello));
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

proptest! {
    /// Whatever is sent is strict JSON and reads back as the request, with its headers grouped.
    #[test]
    fn a_request_reads_back(
        id in 1..=crate::limits::MAX_ID,
        method in "[A-Za-z]{1,8}",
        port in 1u16..,
        host_header in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)),
        sni in proptest::option::of("[a-z.]{0,10}"),
        path in proptest::collection::vec(any::<u8>(), 0..30),
        query in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..30)),
        headers in proptest::collection::vec(
            ("[abAB_-]{1,2}", proptest::collection::vec(prop_oneof![Just(b'\t'), 0x20..=0x7eu8, 0xa0u8..], 0..6)),
            0..12,
        ),
    ) {
        let host = host();
        let (host_header, sni, query) = (host_header.as_deref(), sni.as_deref(), query.as_deref());
        let req = ReqRef { id, method: &method, host: &host, port, host_header, sni, path: &path, query };
        let pairs: Vec<(&[u8], &[u8])> =
            headers.iter().map(|(name, value)| (name.as_bytes(), value.as_slice())).collect();
        let payload = try_encode(&req, &pairs).unwrap();
        let limits = json::Limits { max_bytes: MAX_FRAME, max_depth: 3, null: json::Null::Refused };
        prop_assert_eq!(json::check(payload.as_bytes(), limits), Ok(()));

        let read = read(&payload);
        let mut grouped: Vec<(String, Vec<String>)> = Vec::new();
        for (name, value) in &headers {
            let (name, value) = (name.to_ascii_lowercase(), latin1(value));
            match grouped.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => grouped.push((name, vec![value])),
            }
        }
        let got: Vec<_> =
            read.headers.into_iter().map(|field| (field.name.as_str().to_owned(), field.values)).collect();
        prop_assert_eq!(got, grouped);
        let text = |bytes: Option<&[u8]>| bytes.filter(|bytes| !bytes.is_empty()).map(latin1);
        prop_assert_eq!((read.id, read.method, read.host, read.port), (id, method.clone(), "example.com".to_owned(), port));
        prop_assert_eq!((read.host_header, read.sni), (text(host_header), text(sni.map(str::as_bytes))));
        prop_assert_eq!((read.path, read.query), (latin1(&path), text(query)));
    }

    #[test]
    fn a_body_reads_back(data in proptest::collection::vec(any::<u8>(), 0..100), cut: bool) {
        let mut out = Vec::new();
        encode_body(&mut out, 9, &data, cut).unwrap();
        let Ok(FromProxy::Body(body)) = parse_from_proxy(&out[4..]) else { panic!("{out:?}") };
        prop_assert_eq!((body.id, body.data, body.cut), (9, data, cut));
    }
}
