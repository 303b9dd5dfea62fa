//! Asking the allow and deny lists: the cost must not grow with their length.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use srt_shared::domain::{DomainPattern, Host};
use srt_shared::lists::Lists;

fn lists(length: usize) -> Lists {
    let entry = |n: usize| match n % 3 {
        0 => format!("host-{n}.example.com"),
        1 => format!("*.zone-{n}.example.org:443"),
        _ => format!("198.51.{}.{}", n / 256 % 256, n % 256),
    };
    let parse = |n| DomainPattern::parse_hello(&entry(n)).expect("an entry of the bench is valid");
    let patterns: Vec<_> = (0..length).map(parse).collect();
    Lists::new(patterns.clone(), patterns.into_iter().skip(length / 2).collect())
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("list check");
    for length in [10, 1_000, 10_000] {
        let lists = lists(length);
        for (name, host) in [("listed", "a.b.zone-1.example.org"), ("not listed", "a.b.c.elsewhere.example")]
        {
            let host = Host::from_bare(host).expect("a host of the bench is valid");
            group.bench_with_input(BenchmarkId::new(name, length), &host, |b, host| {
                b.iter(|| lists.check(host, 443));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
