use proptest::prelude::*;
use srt_shared::field_name::FieldNameSet;

use super::*;
use crate::http::{
    ConnectionOptions, Edits, HeadReader, PathAndQuery, forwarded_request_fields, forwarded_response_fields,
};

#[test]
fn a_request_head() {
    let target = PathAndQuery::parse("/a?b".into()).unwrap();
    let fields = [Field { name: b"X-a", value: b"1" }, Field { name: b"x-A", value: b"" }];
    for (framing, field) in [
        (FramingField::Absent, ""),
        (FramingField::Length(0), "Content-Length: 0\r\n"),
        (FramingField::Length(u64::MAX), "Content-Length: 18446744073709551615\r\n"),
        (FramingField::Chunked, "Transfer-Encoding: chunked\r\n"),
    ] {
        let mut out = BytesMut::from(&b"before"[..]);
        write_request_head(&mut out, "POST", &target, "example.com:81", fields.into_iter(), framing);
        let want =
            format!("beforePOST /a?b HTTP/1.1\r\nHost: example.com:81\r\nX-a: 1\r\nx-A: \r\n{field}\r\n");
        assert_eq!(out, want);
    }
}

#[test]
fn a_response_head() {
    let fields = [Field { name: b"X-a", value: b"caf\xe9" }];
    let mut out = BytesMut::new();
    write_response_head(&mut out, 204, b"Gone \xe9", fields.into_iter(), FramingField::Absent, false);
    assert_eq!(&out[..], b"HTTP/1.1 204 Gone \xe9\r\nX-a: caf\xe9\r\n\r\n");
    out.clear();
    write_response_head(&mut out, 200, b"", std::iter::empty(), FramingField::Length(7), true);
    assert_eq!(&out[..], b"HTTP/1.1 200 \r\nContent-Length: 7\r\nConnection: close\r\n\r\n");
}

#[test]
fn chunks() {
    for (len, line) in [
        (1, "1\r\n"),
        (15, "f\r\n"),
        (16, "10\r\n"),
        (65536, "10000\r\n"),
        (0xabc_def0, "abcdef0\r\n"),
        (usize::MAX, "ffffffffffffffff\r\n"),
    ] {
        assert_eq!(&chunk_header(len)[..], line.as_bytes());
    }
    let mut out = BytesMut::new();
    write_last_chunk(&mut out, [Field { name: b"Grpc-Status", value: b"0" }].into_iter());
    assert_eq!(&out[..], b"0\r\nGrpc-Status: 0\r\n\r\n");
    out.clear();
    write_last_chunk(&mut out, std::iter::empty());
    assert_eq!(&out[..], LAST_CHUNK);
}

fn field() -> impl Strategy<Value = (String, Vec<u8>)> {
    let name = prop_oneof![
        4 => "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}",
        1 => proptest::sample::select(vec![
            "Host", "content-length", "Transfer_Encoding", "TE", "Connection", "X-Deny-Reason", "Authorization",
        ]).prop_map(String::from),
    ];
    let byte = prop_oneof![4 => b' '..=b'~', 1 => 0x80u8.., 1 => Just(b'\t')];
    (name, proptest::collection::vec(byte, 0..20).prop_map(|value| value.trim_ascii().to_vec()))
}

proptest! {
    /// A head that is parsed, edited and written is parsed again as exactly that, however hostile.
    #[test]
    fn what_is_written_is_read_back(
        fields in proptest::collection::vec(field(), 0..70),
        path in "/([!-\"$-.0-\\[\\]-~][!-\"$-~]{0,20})?",
    ) {
        let mut received = format!("PUT {path} HTTP/1.0\r\n").into_bytes();
        for (name, value) in &fields {
            received.extend([name.as_bytes(), b":", value, b"\r\n"].concat());
        }
        received.extend(b"\r\n");
        let head = HeadReader::new().read_request(&mut BytesMut::from(&received[..])).unwrap().unwrap();
        prop_assert_eq!(head.fields().len(), fields.len());
        let connection = ConnectionOptions::parse(head.fields()).unwrap();
        let target = PathAndQuery::parse(path.clone().into()).unwrap();

        let edits = Edits::default();
        let kept: Vec<_> = forwarded_request_fields(head.fields(), &connection, &edits).collect();
        let mut out = BytesMut::new();
        write_request_head(&mut out, head.method(), &target, "h:1", kept.iter().copied(), FramingField::Length(3));
        let again = HeadReader::new().read_request(&mut out).unwrap().unwrap();
        prop_assert!(out.is_empty());
        prop_assert_eq!((again.method(), again.target()), ("PUT", &path[..]));
        let framed = [
            vec![Field { name: b"Host", value: b"h:1" }],
            kept,
            vec![Field { name: b"Content-Length", value: b"3" }],
        ].concat();
        prop_assert_eq!(again.fields().iter().collect::<Vec<_>>(), framed);

        let strip = FieldNameSet::default();
        let kept: Vec<_> = forwarded_response_fields(head.fields(), &connection, &strip).collect();
        write_response_head(&mut out, 201, b"Made", kept.iter().copied(), FramingField::Chunked, true);
        let again = HeadReader::new().read_response(&mut out).unwrap().unwrap();
        prop_assert!(out.is_empty());
        prop_assert_eq!((again.status(), again.reason()), (201, &b"Made"[..]));
        let framed = [
            kept,
            vec![Field { name: b"Transfer-Encoding", value: b"chunked" }, Field { name: b"Connection", value: b"close" }],
        ].concat();
        prop_assert_eq!(again.fields().iter().collect::<Vec<_>>(), framed);
    }
}
