//! The decider protocol. However the bytes arrive, the same frames come out; a message that is accepted says
//! the same when it is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srt_shared::decider::{
    FromDecider, FromProxy, encode_body, encode_hello,
    frame::{FrameError, FrameReader, Side},
    parse_from_decider, parse_from_proxy,
};

fuzz_target!(|input: &[u8]| {
    let Some((bytes, pieces)) = srt_proxy_fuzz::split(input) else { return };
    for side in [Side::Proxy, Side::Decider] {
        let (frames, end) = frames(side, [bytes].into_iter());
        assert_eq!((frames, end), self::frames(side, pieces.clone()));
    }
    // The payloads themselves are the input here: a length is hard to guess.
    check_from_decider(bytes);
    check_from_proxy(bytes);
});

fn frames<'a>(
    side: Side,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<Vec<u8>>, Result<bool, FrameError>) {
    let (mut reader, mut frames) = (FrameReader::new(side), Vec::new());
    for piece in pieces {
        reader.tail().extend_from_slice(piece);
        loop {
            match reader.next_frame() {
                Ok(Some(payload)) => frames.push(payload.to_vec()),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    let ended = reader.is_between_frames();
    (frames, Ok(ended))
}

/// The payload of the only frame in `written`.
fn payload(written: &[u8]) -> &[u8] {
    let (length, payload) = written.split_first_chunk::<4>().expect("a frame has a length");
    assert_eq!(u32::from_be_bytes(*length) as usize, payload.len());
    payload
}

fn check_from_decider(bytes: &[u8]) {
    let Ok(message) = parse_from_decider(bytes) else { return };
    let mut written = Vec::new();
    let encoded = match &message {
        FromDecider::Hello(hello) => hello.encode(&mut written),
        FromDecider::Verdict(verdict) => verdict.encode(&mut written),
    };
    // Escapes may take more room than they did in the input.
    if encoded.is_ok() {
        assert_eq!(parse_from_decider(payload(&written)).as_ref(), Ok(&message));
    }
}

fn check_from_proxy(bytes: &[u8]) {
    let mut written = Vec::new();
    let message = parse_from_proxy(bytes);
    match &message {
        Ok(FromProxy::Hello) => encode_hello(&mut written),
        Ok(FromProxy::Body(body)) if encode_body(&mut written, body.id, &body.data, body.cut).is_ok() => {}
        // A `req` is written from a request head: nothing to go back to.
        Ok(FromProxy::Body(_) | FromProxy::Req(_)) | Err(_) => return,
    }
    assert_eq!(parse_from_proxy(payload(&written)), message);
}
