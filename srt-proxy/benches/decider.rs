//! The frames of the decider protocol: a usual question, a body of 64 KiB, a verdict.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use srt_shared::decider::{Decision, Edits, ReqRef, Verdict, encode_body, encode_req, parse_from_decider};
use srt_shared::domain::Host;

const HEADERS: [(&[u8], &[u8]); 6] = [
    (b"Host", b"api.example.com"),
    (b"User-Agent", b"curl/8.5.0"),
    (b"Accept", b"application/json"),
    (b"Content-Type", b"application/json"),
    (b"Authorization", b"Bearer 0123456789abcdef0123456789abcdef"),
    (b"Content-Length", b"65536"),
];

fn bench(c: &mut Criterion) {
    let host = Host::from_bare("api.example.com").expect("a host of the bench is valid");
    let req = ReqRef {
        id: 123_456,
        method: "POST",
        host: &host,
        port: 443,
        host_header: Some(b"api.example.com"),
        sni: Some("api.example.com"),
        path: b"/v1/things/42",
        query: Some(b"limit=10&cursor=abc"),
    };
    let mut out = Vec::new();
    c.bench_function("decider: encode req", |b| {
        b.iter(|| {
            out.clear();
            encode_req(&mut out, &req, HEADERS.into_iter())
        });
    });

    let mut group = c.benchmark_group("decider: encode body");
    let body = vec![0x5a; 64 << 10];
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("64 KiB", |b| {
        b.iter(|| {
            out.clear();
            encode_body(&mut out, 123_456, &body, false)
        });
    });
    group.finish();

    let mut frame = Vec::new();
    let verdict = Verdict { id: 123_456, decision: Decision::Allow(Edits::default()) };
    verdict.encode(&mut frame).expect("a verdict of the bench fits");
    c.bench_function("decider: parse verdict", |b| b.iter(|| parse_from_decider(&frame[4..])));
}

criterion_group!(benches, bench);
criterion_main!(benches);
