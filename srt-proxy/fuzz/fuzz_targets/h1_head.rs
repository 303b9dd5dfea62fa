//! Heads. However the bytes arrive, the same heads come out; what is accepted is written and read back as
//! itself; what is forwarded has one meaning, the one that was judged.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use srt_proxy::http::{
    BodyFraming, ConnectionOptions, Edits, Field, FramingField, HeadError, HeadReader, PathAndQuery,
    RequestHead, RequestTarget, ResponseHead, Version, forwarded_request_fields, forwarded_response_fields,
    request_framing, response_framing, write_request_head, write_response_head,
};
use srt_shared::field_name::{FieldNameSet, is_framing};

fuzz_target!(|input: &[u8]| {
    let Some((bytes, pieces)) = srt_proxy_fuzz::split(input) else { return };

    let requests = read_all([bytes].into_iter(), HeadReader::read_request, spell_request);
    assert_eq!(requests, read_all(pieces.clone(), HeadReader::read_request, spell_request));
    for spelled in &requests.heads {
        check_request(spelled);
    }

    let responses = read_all([bytes].into_iter(), HeadReader::read_response, spell_response);
    assert_eq!(responses, read_all(pieces, HeadReader::read_response, spell_response));
    for spelled in &responses.heads {
        check_response(spelled);
    }
});

#[derive(Debug, PartialEq)]
struct Heads {
    /// Each spelled out again in full.
    heads: Vec<Vec<u8>>,
    rest: Result<Vec<u8>, HeadError>,
}

fn read_all<'a, H>(
    pieces: impl Iterator<Item = &'a [u8]>,
    read: fn(&mut HeadReader, &mut BytesMut) -> Result<Option<H>, HeadError>,
    spell: fn(&H) -> Vec<u8>,
) -> Heads {
    let (mut reader, mut buf, mut heads) = (HeadReader::new(), BytesMut::new(), Vec::new());
    for piece in pieces {
        buf.extend_from_slice(piece);
        loop {
            match read(&mut reader, &mut buf) {
                Ok(Some(head)) => heads.push(spell(&head)),
                Ok(None) => break,
                Err(error) => return Heads { heads, rest: Err(error) },
            }
        }
    }
    Heads { heads, rest: Ok(buf.to_vec()) }
}

fn version(version: Version) -> &'static str {
    match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

fn spell_fields<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = Field<'a>>) {
    for field in fields {
        out.extend([field.name, b": ", field.value, b"\r\n"].concat());
    }
    out.extend(b"\r\n");
}

fn spell_request(head: &RequestHead) -> Vec<u8> {
    let mut out = format!("{} {} {}\r\n", head.method(), head.target(), version(head.version())).into_bytes();
    spell_fields(&mut out, head.fields().iter());
    out
}

fn spell_response(head: &ResponseHead) -> Vec<u8> {
    let mut out = format!("{} {:03} ", version(head.version()), head.status()).into_bytes();
    out.extend(head.reason());
    out.extend(b"\r\n");
    spell_fields(&mut out, head.fields().iter());
    out
}

fn read_request(bytes: &[u8]) -> RequestHead {
    let mut buf = BytesMut::from(bytes);
    let head = HeadReader::new().read_request(&mut buf).expect("accepted before").expect("complete");
    assert!(buf.is_empty());
    head
}

fn read_response(bytes: &[u8]) -> ResponseHead {
    let mut buf = BytesMut::from(bytes);
    let head = HeadReader::new().read_response(&mut buf).expect("accepted before").expect("complete");
    assert!(buf.is_empty());
    head
}

fn field_of(framing: BodyFraming) -> FramingField {
    match framing {
        BodyFraming::None | BodyFraming::UntilClose => FramingField::Absent,
        BodyFraming::Length(length) => FramingField::Length(length),
        BodyFraming::Chunked => FramingField::Chunked,
    }
}

fn check_request(spelled: &[u8]) {
    let head = read_request(spelled);
    assert_eq!(spell_request(&head), spelled);

    let Ok(target) = head.request_target() else { return };
    let resource = match target {
        RequestTarget::Origin(resource) | RequestTarget::Absolute { resource, .. } => resource,
        RequestTarget::Connect { .. } | RequestTarget::Asterisk => return,
    };
    assert!(resource.as_str().starts_with(resource.path()) && resource.path().starts_with('/'));
    assert!(resource.query().is_none_or(|query| resource.as_str().ends_with(query)));
    // A fragment has been cut off, so that what goes upstream has none.
    assert!(!resource.as_str().contains('#'));
    let again = PathAndQuery::parse(resource.as_str().to_owned().into()).expect("it was read before");
    let parts = |read: &PathAndQuery| {
        (read.as_str().to_owned(), read.path().to_owned(), read.query().map(str::to_owned))
    };
    assert_eq!(parts(&again), parts(&resource));

    let (Ok(framing), Ok(connection)) = (request_framing(&head), ConnectionOptions::parse(head.fields()))
    else {
        return;
    };
    let mut out = BytesMut::new();
    let edits = Edits::default();
    let kept = forwarded_request_fields(head.fields(), &connection, &edits);
    assert!(kept.clone().all(|field| !is_framing(field.name)));
    let count = kept.clone().count();
    write_request_head(&mut out, head.method(), &resource, "host.example", kept, field_of(framing));

    let forwarded = read_request(&out);
    assert_eq!((forwarded.method(), forwarded.target()), (head.method(), resource.as_str()));
    assert_eq!(request_framing(&forwarded), Ok(framing));
    assert_eq!(forwarded.fields().single("Host"), Ok(Some(&b"host.example"[..])));
    assert_eq!(forwarded.fields().len(), 1 + count + usize::from(framing != BodyFraming::None));
}

fn check_response(spelled: &[u8]) {
    let head = read_response(spelled);
    assert_eq!(spell_response(&head), spelled);

    for method in ["GET", "HEAD"] {
        let (Ok(framing), Ok(connection)) =
            (response_framing(&head, method), ConnectionOptions::parse(head.fields()))
        else {
            return;
        };
        let field = framing.declared_length.map_or(field_of(framing.body), FramingField::Length);
        let strip = FieldNameSet::default();
        let kept = forwarded_response_fields(head.fields(), &connection, &strip);
        let mut out = BytesMut::new();
        write_response_head(&mut out, head.status(), head.reason(), kept, field, false);

        let forwarded = read_response(&out);
        assert_eq!((forwarded.status(), forwarded.reason()), (head.status(), head.reason()));
        assert_eq!(response_framing(&forwarded, method), Ok(framing));
    }
}
