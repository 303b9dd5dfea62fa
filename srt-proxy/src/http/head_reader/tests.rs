use proptest::prelude::*;

use super::*;

fn request(bytes: &[u8]) -> Result<Option<RequestHead>, HeadError> {
    HeadReader::new().read_request(&mut BytesMut::from(bytes))
}

fn response(bytes: &[u8]) -> Result<Option<ResponseHead>, HeadError> {
    HeadReader::new().read_response(&mut BytesMut::from(bytes))
}

fn pairs(fields: &Fields) -> Vec<(String, String)> {
    fields.iter().map(|f| (f.name.escape_ascii().to_string(), f.value.escape_ascii().to_string())).collect()
}

/// Everything that a head says.
fn shown(head: &RequestHead) -> String {
    format!("{} {} {:?} {:?}", head.method(), head.target(), head.version(), pairs(head.fields()))
}

fn shown_response(head: &ResponseHead) -> String {
    format!(
        "{:?} {} {} {:?}",
        head.version(),
        head.status(),
        head.reason().escape_ascii(),
        pairs(head.fields())
    )
}

#[test]
fn a_request_is_kept_as_it_came() {
    let bytes = b"POST http://Example.com:80/a/../%7e?x=\"<>[]`{}|^\\ HTTP/1.1\r\n\
        x-B: 1\r\nHOST:example.com\r\nX-a: \t two  words\t \r\nx-B: 3\r\n\
        Empty:\r\nBlank: \t \r\n__proto__: caf\xe9 \xe2\x82\xac \x80\r\n!#$%&'*+-.^_`|~: :,;=\r\n\r\nbody";
    let mut buf = BytesMut::from(&bytes[..]);
    let head = HeadReader::new().read_request(&mut buf).unwrap().unwrap();
    assert_eq!(&buf[..], b"body");
    assert_eq!(head.method(), "POST");
    assert_eq!(head.target(), "http://Example.com:80/a/../%7e?x=\"<>[]`{}|^\\");
    assert_eq!(head.version(), Version::Http11);
    let fields: Vec<_> = head.fields().iter().map(|field| (field.name, field.value)).collect();
    assert_eq!(
        fields,
        [
            (&b"x-B"[..], &b"1"[..]),
            (b"HOST", b"example.com"),
            (b"X-a", b"two  words"),
            (b"x-B", b"3"),
            (b"Empty", b""),
            (b"Blank", b""),
            (b"__proto__", b"caf\xe9 \xe2\x82\xac \x80"),
            (b"!#$%&'*+-.^_`|~", b":,;="),
        ]
    );
    assert_eq!(head.fields().values("X-b").collect::<Vec<_>>(), [b"1", b"3"]);
    assert_eq!(head.fields().single("host"), Ok(Some(&b"example.com"[..])));
    assert_eq!(head.fields().single("x-b"), Err(crate::http::RepeatedField));
    assert_eq!(head.fields().single("x.b"), Ok(None));
}

#[test]
fn requests_accepted() {
    for (bytes, want) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "GET / Http11 []"),
        (b"GET / HTTP/1.0\r\n\r\n", "GET / Http10 []"),
        (b"\r\nGET / HTTP/1.1\r\n\r\n", "GET / Http11 []"),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", "OPTIONS * Http11 []"),
        (b"CONNECT a:1 HTTP/1.1\r\n\r\n", "CONNECT a:1 Http11 []"),
        (b"FROBNICATE /#x HTTP/1.1\r\n\r\n", "FROBNICATE /#x Http11 []"),
        (b"M-SEARCH / HTTP/1.1\r\nA:b\r\n\r\n", r#"M-SEARCH / Http11 [("A", "b")]"#),
    ] {
        let head = request(bytes).unwrap().unwrap();
        assert_eq!(shown(&head), want, "{}", bytes.escape_ascii());
    }
}

#[test]
fn requests_refused() {
    use HeadError::*;

    for (bytes, why) in [
        // Line ends.
        (&b"GET / HTTP/1.1\nHost: a\n\n"[..], BareLf),
        (b"GET / HTTP/1.1\nHost: a\r\n\r\n", BareLf),
        (b"GET / HTTP/1.1\r\nX-A: one\nX-B: two\r\n\r\n", BareLf),
        (b"GET / HTTP/1.1\r\nX-A: one\r\n\n", BareLf),
        (b"GET / HTTP/1.1\r\nX-A: one\n\r\n\r\n", BareLf),
        (b"GET /\nX HTTP/1.1\r\n\r\n", BareLf),
        (b"GET / HTTP/1.1\r\nX-A: one\rX-B: two\r\n\r\n", FieldValue),
        (b"GET / HTTP/1.1\r\nX-A: one\r\r\n\r\n", FieldValue),
        (b"GET / HTTP/1.1\r\nX-A\r: one\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\r\n\r\n", RequestLine),
        (b"GET /\r HTTP/1.1\r\n\r\n", RequestLine),
        (b"\nGET / HTTP/1.1\r\n\r\n", RequestLine),
        (b"\r\n\r\nGET / HTTP/1.1\r\n\r\n", RequestLine),
        (b"\r\n\r\n", RequestLine),
        (b"\rGET / HTTP/1.1\r\n\r\n", RequestLine),
        // The request line.
        (b" GET / HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET  / HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET /  HTTP/1.1\r\n\r\n", Version),
        (b"GET / HTTP/1.1 \r\n\r\n", RequestLine),
        (b"GET\t/ HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET /\tHTTP/1.1\r\n\r\n", RequestLine),
        (b"GET /a b HTTP/1.1\r\n\r\n", Version),
        (b"GET /a\tb HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET /a\0b HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET /a\x01b HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET /a\x7fb HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET /caf\xe9 HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET /caf\xc3\xa9 HTTP/1.1\r\n\r\n", TargetNotAscii),
        (b"GET  HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET /\r\n\r\n", RequestLine),
        (b"GET\r\n\r\n", RequestLine),
        (b"G(T / HTTP/1.1\r\n\r\n", RequestLine),
        (b"G\xc9T / HTTP/1.1\r\n\r\n", RequestLine),
        (b"GET: / HTTP/1.1\r\n\r\n", RequestLine),
        (b"get / HTTP/1.1\r\n\r\n", LowerCaseMethod),
        (b"Get / HTTP/1.1\r\n\r\n", LowerCaseMethod),
        (b"pATCH / HTTP/1.1\r\n\r\n", LowerCaseMethod),
        (b"\x16\x03\x01\x02\x00", RequestLine),
        (b"\x00\x01\x02 not http", RequestLine),
        // Versions.
        (b"GET / HTTP/1.2\r\n\r\n", Version),
        (b"GET / HTTP/2.0\r\n\r\n", Version),
        (b"GET / HTTP/0.9\r\n\r\n", Version),
        (b"GET / HTTP/1.1x\r\n\r\n", RequestLine),
        (b"GET / HTTP/1.10\r\n\r\n", RequestLine),
        (b"GET / HTTP/1\r\n\r\n", Version),
        (b"GET / HTTP/11\r\n\r\n", Version),
        (b"GET / HTTP/01.1\r\n\r\n", Version),
        (b"GET / http/1.1\r\n\r\n", Version),
        (b"GET / HTTPS/1.1\r\n\r\n", Version),
        (b"GET / ICAP/1.0\r\n\r\n", Version),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Version),
        // Field lines.
        (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nX-A: one\r\n two\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nX-A: one\r\n\ttwo\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nX-A:\r\n \r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding:\r\n chunked\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nContent-Length\t: 5\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nX-A\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\n: x\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\n:\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nX A: 1\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nX(A): 1\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nX-\xe9: 1\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nX\0: 1\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\n\0: 1\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\n\"X\": 1\r\n\r\n", FieldName),
        (b"GET / HTTP/1.1\r\nX-A: a\0b\r\n\r\n", FieldValue),
        (b"GET / HTTP/1.1\r\nX-A: a\x01b\r\n\r\n", FieldValue),
        (b"GET / HTTP/1.1\r\nX-A: a\x7fb\r\n\r\n", FieldValue),
        (b"GET / HTTP/1.1\r\nX-A: a\x1b[31m\r\n\r\n", FieldValue),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", FieldValue),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\x0c\r\n\r\n", FieldValue),
    ] {
        assert_eq!(
            request(bytes).map(|head| head.map(|head| shown(&head))),
            Err(why),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn incomplete_requests() {
    for bytes in [
        &b""[..],
        b"\r",
        b"\r\n",
        b"G",
        b"SSH-2.0-x\r\n",
        b"GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nA: b\r\n\r",
    ] {
        assert!(matches!(request(bytes), Ok(None)), "{}", bytes.escape_ascii());
    }
}

/// So that `buf.is_empty()` tells an idle connection from one that stopped inside a head.
#[test]
fn an_empty_line_alone_is_no_beginning() {
    let mut buf = BytesMut::from(&b"\r\n"[..]);
    let mut reader = HeadReader::new();
    assert!(reader.read_request(&mut buf).unwrap().is_none());
    assert!(buf.is_empty());
    buf.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
    assert!(reader.read_request(&mut buf).unwrap().is_some());
}

#[test]
fn pipelined_requests_come_one_by_one() {
    let mut buf = BytesMut::from(
        &b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nA: b\r\n\r\n\r\nGET /3 HTTP/1.1\r\n\r\n"[..],
    );
    let mut reader = HeadReader::new();
    for target in ["/1", "/2", "/3"] {
        assert_eq!(reader.read_request(&mut buf).unwrap().unwrap().target(), target);
    }
    assert!(buf.is_empty());
}

#[test]
fn responses_accepted() {
    for (bytes, want) in [
        (&b"HTTP/1.1 200 OK\r\n\r\n"[..], "Http11 200 OK []"),
        (b"HTTP/1.0 404 Not  here \r\nA: b\r\n\r\n", r#"Http10 404 Not  here  [("A", "b")]"#),
        (b"HTTP/1.1 200 \r\n\r\n", "Http11 200  []"),
        (b"HTTP/1.1 200\r\n\r\n", "Http11 200  []"),
        (b"HTTP/1.1 200 caf\xe9\r\n\r\n", "Http11 200 caf\\xe9 []"),
        (b"HTTP/1.1 999 Nope\r\n\r\n", "Http11 999 Nope []"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "Http11 100 Continue []"),
    ] {
        let head = response(bytes).unwrap().unwrap();
        assert_eq!(shown_response(&head), want, "{}", bytes.escape_ascii());
    }
}

#[test]
fn responses_refused() {
    use HeadError::*;

    for (bytes, why) in [
        (&b"SSH-2.0-x\r\n\r\n"[..], StatusLine),
        (b"S", StatusLine),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", StatusLine),
        (b"\x15\x03\x01\x00\x02\x02\x46", StatusLine),
        (b"HTTP/1.1 200 OK\n\n", BareLf),
        (b"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", BareLf),
        (b"HTTP/1.1 200 a\rb\r\n\r\n", StatusLine),
        (b"HTTP/1.1 200 a\0b\r\n\r\n", StatusLine),
        (b"HTTP/1.1  200 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 20 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 2000 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 099 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 +20 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1\t200 OK\r\n\r\n", Version),
        (b"HTTP/2.0 200 OK\r\n\r\n", Version),
        (b"HTTP/1.2 200 OK\r\n\r\n", Version),
        (b"HTTP/2 200 OK\r\n\r\n", Version),
        (b"HTTPS/1.1 200 OK\r\n\r\n", Version),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", FieldName),
        (b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n", FieldName),
        (b"HTTP/1.1 200 OK\r\n A: b\r\n\r\n", FieldName),
        (b"HTTP/1.1 200 OK\r\nA\r\n\r\n", FieldName),
        (b"HTTP/1.1 200 OK\r\n: a\r\n\r\n", FieldName),
        (b"HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", FieldValue),
        (b"HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", FieldValue),
    ] {
        let read = response(bytes).map(|head| head.map(|head| shown_response(&head)));
        assert_eq!(read, Err(why), "{}", bytes.escape_ascii());
    }
}

/// A request whose head is `len` bytes long.
fn sized(len: usize) -> Vec<u8> {
    let mut bytes = b"GET / HTTP/1.1\r\nA: ".to_vec();
    bytes.resize(len - 4, b'a');
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

#[test]
fn the_size_is_bounded_exactly() {
    let mut longest = sized(limits::HEAD_MAX);
    longest.extend_from_slice(b"a body behind it");
    assert!(request(&longest).unwrap().is_some());
    assert!(matches!(request(&sized(limits::HEAD_MAX + 1)), Err(HeadError::TooLong)));
    // Before its end is there, too.
    let endless = &sized(limits::HEAD_MAX + 100)[..limits::HEAD_MAX + 1];
    assert!(matches!(request(endless), Err(HeadError::TooLong)));
    assert!(matches!(request(&endless[..limits::HEAD_MAX]), Ok(None)));
}

#[test]
fn the_number_of_fields_is_bounded_exactly() {
    let lines = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a:\r\n".repeat(count));
    // Around the number of slots on the stack as well.
    for count in [0, 1, 63, 64, 65, 66, limits::FIELDS_MAX] {
        assert_eq!(request(lines(count).as_bytes()).unwrap().unwrap().fields().len(), count);
    }
    assert!(matches!(request(lines(limits::FIELDS_MAX + 1).as_bytes()), Err(HeadError::TooManyFields)));
}

/// Two million reads of one byte: with a rescan from the start of the head, or of the long line, this would
/// be 2 * 10^12 steps.
#[test]
fn a_dribbling_head_is_scanned_once() {
    let bytes = sized(limits::HEAD_MAX);
    let mut buf = BytesMut::with_capacity(bytes.len());
    let mut reader = HeadReader::new();
    for (at, byte) in bytes.iter().enumerate() {
        buf.extend_from_slice(&[*byte]);
        assert_eq!(reader.read_request(&mut buf).unwrap().is_some(), at + 1 == bytes.len());
    }
}

#[test]
fn nothing_secret_is_shown() {
    let head = request(b"GET /?token=hunter2 HTTP/1.1\r\nAuthorization: hunter2\r\n\r\n").unwrap().unwrap();
    let shown = format!("{head:?}");
    assert!(shown.contains("Authorization") && !shown.contains("hunter2"), "{shown}");
}

/// Bytes that are nearly a head.
fn near_head() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => Just(&b"\r\n"[..]),
        4 => Just(&b"A: b\r\n"[..]),
        2 => Just(&b"GET / HTTP/1.1\r\n"[..]),
        1 => Just(&b"HTTP/1.1 200 OK\r\n"[..]),
        1 => proptest::sample::select(vec![&b"\n"[..], b"\r", b":", b" ", b"\t", b"x", b"\0", b"\xff", b"a: \t\r\n"]),
    ];
    let start = proptest::sample::select(vec![
        &b""[..],
        b"\r\n",
        b"GET / HTTP/1.1\r\n",
        b"POST http://a/?b HTTP/1.0\r\n",
        b"HTTP/1.1 200 OK\r\n",
    ]);
    (start, proptest::collection::vec(part, 0..12))
        .prop_map(|(start, parts)| [start, &parts.concat()].concat())
}

proptest! {
    /// However the bytes are cut into reads, the same heads come out, with the same rest or error.
    #[test]
    fn splits_change_nothing(bytes in near_head(), cuts in proptest::collection::vec(1usize..20, 0..20)) {
        type Read<T> = fn(&mut HeadReader, &mut BytesMut) -> Result<Option<T>, HeadError>;

        fn run<T>(pieces: &[&[u8]], read: Read<T>, shown: fn(&T) -> String) -> (Vec<String>, Result<Vec<u8>, HeadError>) {
            let (mut reader, mut buf, mut heads) = (HeadReader::new(), BytesMut::new(), Vec::new());
            for piece in pieces {
                buf.extend_from_slice(piece);
                loop {
                    match read(&mut reader, &mut buf) {
                        Ok(Some(head)) => heads.push(shown(&head)),
                        Ok(None) => break,
                        Err(error) => return (heads, Err(error)),
                    }
                }
            }
            (heads, Ok(buf.to_vec()))
        }

        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces.push(rest);
        prop_assert_eq!(
            run(&[&bytes], HeadReader::read_request, shown),
            run(&pieces, HeadReader::read_request, shown)
        );
        prop_assert_eq!(
            run(&[&bytes], HeadReader::read_response, shown_response),
            run(&pieces, HeadReader::read_response, shown_response)
        );
    }

    /// Whatever is accepted holds no byte that could end a line or a part early.
    #[test]
    fn accepted_parts_are_clean(bytes in near_head()) {
        if let Ok(Some(head)) = request(&bytes) {
            prop_assert!(head.target().bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert!(!head.method().is_empty());
            for field in head.fields().iter() {
                prop_assert!(is_token(field.name));
                prop_assert!(!field.value.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t'));
                prop_assert_eq!(field.value.trim_ascii(), field.value);
            }
        }
    }
}
