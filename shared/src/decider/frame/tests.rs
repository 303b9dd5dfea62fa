use proptest::prelude::*;

use super::*;

fn frame(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append::<FrameTooLong>(&mut out, limits::MAX_BODY_FRAME, |out| {
        out.extend_from_slice(payload);
        Ok(())
    })
    .unwrap();
    out
}

fn length_alone(side: Side, length: u32) -> Result<Option<Vec<u8>>, FrameError> {
    let mut reader = FrameReader::new(side);
    reader.tail().extend_from_slice(&length.to_be_bytes());
    reader.next_frame().map(|payload| payload.map(<[u8]>::to_vec))
}

#[test]
fn a_wrong_length_is_refused_before_the_payload_comes() {
    assert_eq!(length_alone(Side::Proxy, 0), Err(FrameError::Empty));
    assert_eq!(length_alone(Side::Proxy, 1 << 20), Ok(None));
    for length in [(1 << 20) + 1, u32::MAX] {
        let error = FrameError::TooLong { length: length as usize, limit: 1 << 20 };
        assert_eq!(length_alone(Side::Proxy, length), Err(error));
    }
    assert_eq!(length_alone(Side::Decider, 44_739_302), Ok(None));
    assert!(length_alone(Side::Decider, 44_739_303).is_err());
}

#[test]
fn a_frame_of_the_very_limit_passes() {
    let payload = vec![b' '; limits::MAX_FRAME];
    let mut reader = FrameReader::new(Side::Proxy);
    reader.tail().extend_from_slice(&frame(&payload));
    assert_eq!(reader.next_frame(), Ok(Some(payload.as_slice())));
    assert!(reader.is_between_frames());
}

#[test]
fn a_length_alone_claims_little_memory() {
    let mut reader = FrameReader::new(Side::Decider);
    reader.tail().extend_from_slice(&44_000_000u32.to_be_bytes());
    assert!(reader.tail().capacity() <= 2 * MAX_ROOM);
}

#[test]
fn memory_of_a_long_frame_is_given_back() {
    let mut reader = FrameReader::new(Side::Decider);
    reader.tail().extend_from_slice(&frame(&vec![1; 8 << 20]));
    assert!(reader.next_frame().unwrap().is_some());
    assert!(reader.tail().capacity() <= 2 * READ_ROOM);
}

#[test]
fn what_does_not_fit_leaves_the_buffer_as_it_was() {
    let mut out = b"before".to_vec();
    let too_long = append(&mut out, 3, |out| {
        out.extend_from_slice(b"four");
        Ok::<_, FrameTooLong>(())
    });
    assert_eq!(too_long, Err(FrameTooLong { limit: 3 }));
    assert_eq!(out, b"before");
}

proptest! {
    #[test]
    fn frames_come_out_as_they_went_in_however_the_stream_is_cut(
        payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8),
        cuts in proptest::collection::vec(1usize..40, 1..30),
    ) {
        let stream: Vec<u8> = payloads.iter().flat_map(|payload| frame(payload)).collect();
        let mut reader = FrameReader::new(Side::Proxy);
        let mut read = Vec::new();
        let (mut at, mut cuts) = (0, cuts.iter().cycle());
        while at < stream.len() {
            let to = stream.len().min(at + cuts.next().expect("a cycle has no end"));
            reader.tail().extend_from_slice(&stream[at..to]);
            at = to;
            while let Some(payload) = reader.next_frame().unwrap() {
                read.push(payload.to_vec());
            }
            prop_assert_eq!(reader.is_between_frames(), read.iter().map(|p| p.len() + LENGTH).sum::<usize>() == at);
        }
        prop_assert_eq!(read, payloads);
    }
}
