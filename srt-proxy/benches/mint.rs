//! What a certificate costs. Run with `cargo bench -p srt-proxy --bench mint`.
//!
//! The mint should stay a small part of a handshake, except where the CA signs with RSA.

use std::{hint::black_box, net::IpAddr};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use srt_proxy::{
    dial::{AddressPolicy, Guard},
    tls::{Authority, HelloState, LeafCache, client_hello},
};
use srt_shared::domain::Host;

fn host(text: &str) -> Host {
    Host::from_bare(text).expect("a host")
}

fn mint(c: &mut Criterion) {
    let leaves = LeafCache::new(Authority::generate().expect("a CA"));
    let mut n = 0_u64;
    c.bench_function("mint/new host, P-256 CA", |b| {
        b.iter_batched(
            || {
                n += 1;
                host(&format!("n{n}.example.com"))
            },
            |host| leaves.leaf(&host).expect("a leaf"),
            BatchSize::SmallInput,
        );
    });
    let known = host("known.example.com");
    c.bench_function("mint/known host", |b| b.iter(|| leaves.leaf(&known).expect("a leaf")));
    c.bench_function("mint/CA generated and probed", |b| b.iter(|| Authority::generate().expect("a CA")));
}

/// 512 bytes in one record, as a small client sends them.
fn hello() -> Vec<u8> {
    let name = b"api.example.com";
    let list = [&[0, 0, name.len() as u8][..], name].concat();
    let sni = [&[0, 0, 0, list.len() as u8 + 2, 0, list.len() as u8][..], &list].concat();
    let padding = 512 - 87 - sni.len();
    let padding = [&[0, 21, (padding >> 8) as u8, padding as u8][..], &vec![0; padding]].concat();
    let extensions = [sni, padding].concat();
    let length = (extensions.len() as u16).to_be_bytes();
    let body =
        [&[3, 3][..], &[7; 32], &[32], &[9; 32], &[0, 2, 0x13, 1], &[1, 0], &length, &extensions].concat();
    let message = [&[1, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat();
    [&[22, 3, 1][..], &(message.len() as u16).to_be_bytes(), &message].concat()
}

fn read_hello(c: &mut Criterion) {
    let hello = hello();
    assert!(matches!(client_hello(&hello), HelloState::ClientHello(_)));
    c.bench_function("hello/one record", |b| b.iter(|| client_hello(black_box(&hello))));
}

fn check_address(c: &mut Criterion) {
    let guard = Guard::new(AddressPolicy { deny_private: true, ..AddressPolicy::default() });
    let host = host("api.example.com");
    let addresses = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([198, 51, 100, 1])];
    c.bench_function("guard/two public addresses", |b| {
        b.iter(|| guard.check(&host, 443, black_box(&addresses)))
    });
}

criterion_group!(benches, mint, read_hello, check_address);
criterion_main!(benches);
