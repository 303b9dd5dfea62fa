//! What a body costs beside moving its bytes.

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use srt_proxy::http::{BodyFraming, BodyPiece, BodyReader, CHUNK_END, LAST_CHUNK, chunk_header};

const BODY: usize = 1024 * 1024;

/// A body of 1 MiB in chunks of `size`.
fn chunked(size: usize) -> BytesMut {
    let mut bytes = BytesMut::new();
    let mut left = BODY;
    while left > 0 {
        let len = size.min(left);
        bytes.extend_from_slice(&chunk_header(len));
        bytes.resize(bytes.len() + len, b'x');
        bytes.extend_from_slice(CHUNK_END);
        left -= len;
    }
    bytes.extend_from_slice(LAST_CHUNK);
    bytes
}

fn drain(framing: BodyFraming, buf: &mut BytesMut) -> usize {
    let (mut reader, mut len) = (BodyReader::new(framing), 0);
    while let BodyPiece::Data(data) = reader.read(buf).expect("a body") {
        len += black_box(data).len();
    }
    assert!(reader.is_complete());
    len
}

fn bodies(c: &mut Criterion) {
    let mut group = c.benchmark_group("body");
    group.throughput(Throughput::Bytes(BODY as u64));
    for size in [64, 1024, 16 * 1024] {
        let bytes = chunked(size);
        group.bench_function(format!("chunks of {size}"), |b| {
            let run = |buf: &mut BytesMut| assert_eq!(drain(BodyFraming::Chunked, buf), BODY);
            b.iter_batched_ref(|| bytes.clone(), run, BatchSize::LargeInput);
        });
    }
    group.bench_function("known length", |b| {
        let run = |buf: &mut BytesMut| assert_eq!(drain(BodyFraming::Length(BODY as u64), buf), BODY);
        b.iter_batched_ref(|| BytesMut::zeroed(BODY), run, BatchSize::LargeInput);
    });
    group.finish();
}

criterion_group!(benches, bodies);
criterion_main!(benches);
