//! What a request head costs: read, judged, edited and written again.

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use srt_proxy::http::{
    BodyFraming, ConnectionOptions, Edits, FramingField, HeadReader, PathAndQuery, RequestHead,
    RequestTarget, forwarded_request_fields, request_framing, write_request_head,
};

/// What a browser-like API client sends.
const USUAL: &[u8] = b"POST /v1/messages?beta=true&stream=1 HTTP/1.1\r\n\
    Host: api.example.com\r\n\
    Connection: keep-alive\r\n\
    Accept: application/json, text/event-stream\r\n\
    Accept-Encoding: gzip, deflate, br\r\n\
    Accept-Language: en-US,en;q=0.9\r\n\
    Content-Type: application/json\r\n\
    Content-Length: 1234\r\n\
    User-Agent: example-client/1.2.3 (Linux x86_64) runtime/22.1.0\r\n\
    X-Request-Id: 7b0a3c2e-9f1d-4c58-8f57-6f3de0a1b2c3\r\n\
    X-Client-Name: example\r\n\
    X-Client-Version: 1.2.3\r\n\
    Authorization: Bearer placeholder-placeholder-placeholder-placeholder\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\r\n";

fn read(buf: &mut BytesMut) -> RequestHead {
    HeadReader::new().read_request(buf).expect("a head").expect("a whole head")
}

fn resource(head: &RequestHead) -> PathAndQuery {
    match head.request_target() {
        Ok(RequestTarget::Origin(resource)) => resource,
        other => panic!("not a path: {other:?}"),
    }
}

fn heads(c: &mut Criterion) {
    let mut group = c.benchmark_group("head");
    group.throughput(Throughput::Bytes(USUAL.len() as u64));
    group.bench_function("read", |b| {
        b.iter_batched_ref(|| BytesMut::from(USUAL), |buf| black_box(read(buf)), BatchSize::SmallInput);
    });
    let head = read(&mut BytesMut::from(USUAL));
    group.bench_function("judge", |b| {
        b.iter(|| {
            let framing = request_framing(black_box(&head));
            assert_eq!(framing, Ok(BodyFraming::Length(1234)));
            black_box((
                resource(&head),
                head.fields().single("Host"),
                ConnectionOptions::parse(head.fields()),
            ))
        });
    });
    let (target, edits) = (resource(&head), Edits::default());
    let connection = ConnectionOptions::parse(head.fields()).expect("few options");
    let mut out = BytesMut::with_capacity(4096);
    group.bench_function("forward", |b| {
        b.iter(|| {
            out.clear();
            let fields = forwarded_request_fields(black_box(head.fields()), &connection, &edits);
            let framing = FramingField::Length(1234);
            write_request_head(&mut out, head.method(), &target, "api.example.com", fields, framing);
            black_box(out.len())
        });
    });
    group.finish();

    let mut group = c.benchmark_group("dribble");
    group.sample_size(10);
    for kib in [64, 2048] {
        let mut bytes = b"GET / HTTP/1.1\r\nA: ".to_vec();
        bytes.resize(kib * 1024 - 4, b'a');
        bytes.extend_from_slice(b"\r\n\r\n");
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        // Per byte the same for both sizes, or something is quadratic.
        group.bench_function(format!("{kib} KiB in pieces of 16 bytes"), |b| {
            b.iter(|| {
                let (mut buf, mut reader) = (BytesMut::with_capacity(bytes.len()), HeadReader::new());
                let mut head = None;
                for piece in bytes.chunks(16) {
                    buf.extend_from_slice(piece);
                    head = reader.read_request(&mut buf).expect("a head");
                }
                head.expect("a whole head")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, heads);
criterion_main!(benches);
