//! Chunked bodies. However the bytes arrive, the same body comes out, and never more of it than the plainest
//! decoder finds; what was read is written and read back as itself.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use srt_proxy::http::{
    BodyError, BodyFraming, BodyPiece, BodyReader, CHUNK_END, chunk_header, forwarded_trailers,
    write_last_chunk,
};
use srt_shared::field_name::FieldNameSet;

fuzz_target!(|input: &[u8]| {
    let Some((bytes, pieces)) = srt_proxy_fuzz::split(input) else { return };
    let body = read([bytes].into_iter());
    assert_eq!(body, read(pieces));
    if let Ok(rest) = &body.rest {
        assert_eq!(reference(bytes), Some((body.data.clone(), &rest[..])));
        check_written(&body);
    }
});

#[derive(Debug, PartialEq)]
struct Body {
    data: Vec<u8>,
    /// The trailers that may be passed on, as lines.
    trailers: BytesMut,
    /// What stands behind the body, or why there is none.
    rest: Result<Vec<u8>, BodyError>,
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Body {
    let (mut reader, mut buf, mut data) =
        (BodyReader::new(BodyFraming::Chunked), BytesMut::new(), Vec::new());
    let mut feed = || {
        for piece in pieces {
            buf.extend_from_slice(piece);
            while let BodyPiece::Data(bytes) = reader.read(&mut buf)? {
                assert!(!bytes.is_empty());
                data.extend_from_slice(&bytes);
            }
        }
        reader.on_eof()
    };
    let rest = feed().map(|()| buf.to_vec());
    assert_eq!(reader.is_complete(), rest.is_ok());
    let mut trailers = BytesMut::new();
    if let Some(fields) = reader.take_trailers() {
        write_last_chunk(&mut trailers, forwarded_trailers(&fields, &FieldNameSet::default()));
    } else {
        write_last_chunk(&mut trailers, [].into_iter());
    }
    Body { data, trailers, rest }
}

fn check_written(body: &Body) {
    let mut written = Vec::new();
    for chunk in body.data.chunks(7) {
        written.extend([&chunk_header(chunk.len()), chunk, CHUNK_END].concat());
    }
    written.extend_from_slice(&body.trailers);
    let again = read([&written[..]].into_iter());
    assert_eq!(
        (again.data, again.trailers, again.rest),
        (body.data.clone(), body.trailers.clone(), Ok(vec![]))
    );
}

/// Has all bytes, may copy, and knows only the grammar.
fn reference(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut data, mut rest) = (Vec::new(), bytes);
    loop {
        let (line, behind) = line(rest)?;
        let digits = line.split(|&byte| byte == b';').next()?;
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        rest = behind;
        if size == 0 {
            break;
        }
        data.extend_from_slice(rest.get(..size)?);
        rest = rest[size..].strip_prefix(b"\r\n")?;
    }
    loop {
        let (line, behind) = line(rest)?;
        rest = behind;
        if line.is_empty() {
            return Some((data, rest));
        }
    }
}

fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}
