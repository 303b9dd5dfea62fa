use proptest::prelude::*;

use super::*;

/// What became of a body.
#[derive(Debug, PartialEq)]
struct Outcome {
    data: Vec<u8>,
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
    /// What was left in the buffer behind a complete body, or why it is none.
    end: Result<Vec<u8>, BodyError>,
}

/// Feeds `pieces` and then the end of the connection.
fn read(framing: BodyFraming, pieces: &[&[u8]]) -> Outcome {
    let (mut reader, mut buf, mut data) = (BodyReader::new(framing), BytesMut::new(), Vec::new());
    let mut feed = || {
        for piece in pieces {
            buf.extend_from_slice(piece);
            loop {
                match reader.read(&mut buf)? {
                    BodyPiece::Data(bytes) => {
                        assert!(!bytes.is_empty());
                        data.extend_from_slice(&bytes);
                    }
                    BodyPiece::NeedMore => break,
                    BodyPiece::End => break,
                }
            }
        }
        reader.on_eof()
    };
    let end = feed();
    assert_eq!(reader.is_complete(), end.is_ok());
    assert_eq!(reader.has_started(), !data.is_empty());
    if let Err(error) = end {
        assert_eq!(reader.read(&mut buf), Err(error), "an error must stay one");
        assert_eq!(reader.on_eof(), Err(error));
    }
    let trailers = reader.take_trailers().unwrap_or_default();
    let trailers = trailers.iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect();
    Outcome { data, trailers, end: end.map(|()| buf.to_vec()) }
}

fn chunked(bytes: &[u8]) -> Outcome {
    read(BodyFraming::Chunked, &[bytes])
}

#[test]
fn known_lengths() {
    for (length, bytes, data, end) in [
        (0, &b"next"[..], &b""[..], Ok(&b"next"[..])),
        (5, b"hello", b"hello", Ok(b"")),
        (5, b"helloGET", b"hello", Ok(b"GET")),
        (6, b"hello", b"hello", Err(BodyError::Truncated)),
        (i64::MAX as u64, b"hello", b"hello", Err(BodyError::Truncated)),
    ] {
        let outcome = read(BodyFraming::Length(length), &[bytes]);
        assert_eq!((&outcome.data[..], outcome.end), (data, end.map(<[u8]>::to_vec)), "{length}");
    }
    assert_eq!(read(BodyFraming::None, &[b"next"]).end, Ok(b"next".to_vec()));
    assert_eq!(read(BodyFraming::UntilClose, &[b"a", b"bc"]).data, b"abc");
    assert_eq!(read(BodyFraming::UntilClose, &[]).end, Ok(vec![]));
}

#[test]
fn what_is_still_to_come() {
    let mut reader = BodyReader::new(BodyFraming::Length(5));
    assert_eq!((reader.remaining(), reader.has_started()), (Some(5), false));
    let mut buf = BytesMut::from(&b"hel"[..]);
    assert_eq!(reader.read(&mut buf), Ok(BodyPiece::Data(Bytes::from_static(b"hel"))));
    assert_eq!((reader.remaining(), reader.has_started(), reader.is_complete()), (Some(2), true, false));
    assert_eq!(reader.read(&mut buf), Ok(BodyPiece::NeedMore));
    buf.extend_from_slice(b"lo");
    assert_eq!(reader.read(&mut buf), Ok(BodyPiece::Data(Bytes::from_static(b"lo"))));
    assert_eq!((reader.remaining(), reader.is_complete()), (Some(0), true));
    assert_eq!(BodyReader::new(BodyFraming::Chunked).remaining(), None);
    assert_eq!(BodyReader::new(BodyFraming::UntilClose).remaining(), None);
}

/// A piece is a view of the bytes that were read, not a copy.
#[test]
fn pieces_are_not_copied() {
    for (framing, bytes) in
        [(BodyFraming::Length(5), &b"hello"[..]), (BodyFraming::Chunked, b"5\r\nhello\r\n0\r\n\r\n")]
    {
        let mut buf = BytesMut::from(bytes);
        let range = buf.as_ptr_range();
        let Ok(BodyPiece::Data(data)) = BodyReader::new(framing).read(&mut buf) else { panic!("no data") };
        assert!(range.contains(&data.as_ptr()));
    }
}

#[test]
fn chunks_accepted() {
    for (bytes, data, rest) in [
        (&b"0\r\n\r\n"[..], &b""[..], &b""[..]),
        (b"5\r\nhello\r\n0\r\n\r\nGET /", b"hello", b"GET /"),
        (b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", b"abc", b""),
        (b"00\r\n\r\n", b"", b""),
        (b"0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n", b"hello", b""),
        (b"a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n", b"0123456789abcdefghij", b""),
        (b"5;a=b\r\nhello\r\n0;c\r\n\r\n", b"hello", b""),
        (b"5;a=\"x;y\" ; \tz\xe9\r\nhello\r\n0\r\n\r\n", b"hello", b""),
        (b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n", b""),
        (b"5\r\n0\r\n\r\n\r\n0\r\n\r\n", b"0\r\n\r\n", b""),
    ] {
        let outcome = chunked(bytes);
        assert_eq!((&outcome.data[..], outcome.end), (data, Ok(rest.to_vec())), "{}", bytes.escape_ascii());
    }
}

#[test]
fn chunks_refused() {
    use BodyError::*;

    for (bytes, why) in [
        (&b"zz\r\nhello\r\n0\r\n\r\n"[..], ChunkSize),
        (b"-5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"+5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"0x5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5h\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5_0\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b";a=b\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b" 5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"\t5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5 \r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5\t\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5 ;a=b\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5,5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5\x0b\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5\xa0\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"\xd9\xa5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"\nhello", ChunkSize),
        (b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"10000000000000005\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"00000000000000005\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (b"5;a=b\nc\r\nhello\r\n0\r\n\r\n", ChunkLine),
        (b"5;a=b\n", ChunkLine),
        (b"5;a=b\0\r\nhello", ChunkLine),
        (b"5;a=b\x7f\r\nhello", ChunkLine),
        (b"5;a=b\rc\r\nhello", ChunkLine),
        (b"5\rhello", ChunkLine),
        (b"5\r\r\nhello", ChunkLine),
        (b"5\r\nhelloXX0\r\n\r\n", ChunkEnd),
        (b"5\r\nhello0\r\n\r\n", ChunkEnd),
        (b"5\r\nhello\n0\r\n\r\n", ChunkEnd),
        (b"5\r\nhello\rX0\r\n\r\n", ChunkEnd),
        (b"5\r\nhello!\r\n0\r\n\r\n", ChunkEnd),
        (b"", Truncated),
        (b"5", Truncated),
        (b"5\r", Truncated),
        (b"5\r\n", Truncated),
        (b"5\r\nhell", Truncated),
        (b"5\r\nhello", Truncated),
        (b"5\r\nhello\r", Truncated),
        (b"5\r\nhello\r\n", Truncated),
        (b"5\r\nhello\r\n0", Truncated),
        (b"5\r\nhello\r\n0\r\n", Truncated),
        (b"5\r\nhello\r\n0\r\n\r", Truncated),
        (b"0\r\nA: b\r\n", Truncated),
        (b"ffffffffffffffff\r\nhello", Truncated),
        (b"0\n\n", ChunkSize),
        (b"0\r\n\n", Trailers),
        (b"0\r\nA: b\n\r\n", Trailers),
        (b"0\r\nA: b\r\n\n", Trailers),
        (b"0\r\nA: b\rC: d\r\n\r\n", Trailers),
        (b"0\r\nA\r\n\r\n", Trailers),
        (b"0\r\n: b\r\n\r\n", Trailers),
        (b"0\r\nA : b\r\n\r\n", Trailers),
        (b"0\r\n A: b\r\n\r\n", Trailers),
        (b"0\r\nA: b\r\n c\r\n\r\n", Trailers),
        (b"0\r\nA: \0\r\n\r\n", Trailers),
        (b"0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Trailers),
        (b"0\r\n\rX", Truncated),
    ] {
        assert_eq!(chunked(bytes).end, Err(why), "{}", bytes.escape_ascii());
    }
}

#[test]
fn trailers_are_kept() {
    let outcome = chunked(b"3\r\nabc\r\n0\r\nGrpc-Status: 0\r\nx-a:\t\xe9 \r\nx-A:\r\n\r\nnext");
    assert_eq!(outcome.end, Ok(b"next".to_vec()));
    let want: [(&[u8], &[u8]); 3] = [(b"Grpc-Status", b"0"), (b"x-a", b"\xe9"), (b"x-A", b"")];
    assert_eq!(outcome.trailers, want.map(|(name, value)| (name.to_vec(), value.to_vec())));
}

#[test]
fn lines_and_trailers_are_bounded_exactly() {
    let line = |len: usize| [b"1;", &vec![b'a'; len - 3][..], b"\r\nx\r\n0\r\n\r\n"].concat();
    assert_eq!(chunked(&line(limits::CHUNK_LINE_MAX)).end, Ok(vec![]));
    assert_eq!(chunked(&line(limits::CHUNK_LINE_MAX + 1)).end, Err(BodyError::ChunkLineTooLong));
    assert_eq!(chunked(&line(100 * limits::CHUNK_LINE_MAX)[..2000]).end, Err(BodyError::ChunkLineTooLong));

    let fields = |count: usize| format!("0\r\n{}\r\n", "a:\r\n".repeat(count));
    assert_eq!(
        chunked(fields(limits::TRAILER_FIELDS_MAX).as_bytes()).trailers.len(),
        limits::TRAILER_FIELDS_MAX
    );
    assert_eq!(
        chunked(fields(limits::TRAILER_FIELDS_MAX + 1).as_bytes()).end,
        Err(BodyError::TrailersTooLarge)
    );

    let long = |len: usize| format!("0\r\na:{}\r\n\r\n", "b".repeat(len - 6));
    assert_eq!(chunked(long(limits::TRAILERS_MAX).as_bytes()).end, Ok(vec![]));
    assert_eq!(chunked(long(limits::TRAILERS_MAX + 1).as_bytes()).end, Err(BodyError::TrailersTooLarge));
    let endless = &long(limits::TRAILERS_MAX + 100).into_bytes()[..limits::TRAILERS_MAX + 4];
    assert_eq!(chunked(endless).end, Err(BodyError::TrailersTooLarge));
}

/// The plainest decoder there is: it has all bytes, may copy, and knows only the grammar.
fn reference(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 2..]))
    }
    let (mut data, mut rest) = (Vec::new(), bytes);
    loop {
        let (size, behind) = line(rest)?;
        let size = usize::from_str_radix(size.split(';').next()?, 16).ok()?;
        rest = behind;
        if size == 0 {
            break;
        }
        data.extend_from_slice(rest.get(..size)?);
        rest = rest[size..].strip_prefix(b"\r\n")?;
    }
    loop {
        let (field, behind) = line(rest)?;
        rest = behind;
        if field.is_empty() {
            return Some((data, rest));
        }
    }
}

/// Bytes that are nearly a chunked body.
fn near_chunks() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 1..40)
            .prop_map(|data| [format!("{:x}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat()),
        2 => Just(b"0\r\n\r\n".to_vec()),
        1 => Just(b"0\r\nA: b\r\n\r\n".to_vec()),
        1 => Just(b"3;x=y\r\nabc\r\n".to_vec()),
        1 => proptest::sample::select(vec![&b"\r\n"[..], b"\n", b"\r", b" ", b"5", b";", b"+", b"0x", b"\0", b"\xff"])
            .prop_map(<[u8]>::to_vec),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn never_more_than_the_reference(bytes in near_chunks()) {
        let outcome = chunked(&bytes);
        if let Ok(rest) = &outcome.end {
            let (data, reference_rest) = reference(&bytes).expect("complete, though the reference says it is not");
            prop_assert_eq!(&outcome.data, &data);
            prop_assert_eq!(&rest[..], reference_rest);
        }
    }

    #[test]
    fn splits_change_nothing(
        bytes in near_chunks(),
        length in 0u64..60,
        cuts in proptest::collection::vec(1usize..12, 0..20),
    ) {
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces.push(rest);
        for framing in [BodyFraming::Chunked, BodyFraming::Length(length), BodyFraming::UntilClose, BodyFraming::None] {
            prop_assert_eq!(read(framing, &[&bytes]), read(framing, &pieces));
        }
    }

    #[test]
    fn written_chunks_read_back(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..300), 0..6)) {
        use crate::http::{CHUNK_END, LAST_CHUNK, chunk_header};

        let mut bytes = Vec::new();
        for chunk in &chunks {
            bytes.extend_from_slice(&chunk_header(chunk.len()));
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(CHUNK_END);
        }
        bytes.extend_from_slice(LAST_CHUNK);
        prop_assert_eq!(chunked(&bytes), Outcome { data: chunks.concat(), trailers: vec![], end: Ok(vec![]) });
    }
}
