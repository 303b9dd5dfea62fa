use std::time::Duration;

use super::*;
use crate::tls::testing::host;

#[test]
fn a_host_shows_the_same_certificate_until_it_is_renewed() {
    let cache = LeafCache::new(Authority::generate().unwrap());
    let now = SystemTime::now();
    let first = cache.leaf_at(&host("a.example"), now).unwrap();
    let again = cache.leaf_at(&host("A.Example."), now + Duration::from_secs(3600)).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    let other = cache.leaf_at(&host("b.example"), now).unwrap();
    assert_ne!(first.cert, other.cert);
    assert!(Arc::ptr_eq(&first.key, &other.key), "one key for all");
    let renewed = cache.leaf_at(&host("a.example"), now + limits::LEAF_VALIDITY / 2).unwrap();
    assert_ne!(first.cert, renewed.cert);
}

#[test]
fn the_host_not_asked_for_longest_is_forgotten() {
    let cache = LeafCache::new(Authority::generate().unwrap());
    let first = cache.leaf(&host("first.example")).unwrap();
    let second = cache.leaf(&host("second.example")).unwrap();
    for n in 0..limits::LEAVES - 1 {
        cache.leaf(&host("first.example")).unwrap();
        cache.leaf(&host(&format!("n{n}.example"))).unwrap();
    }
    assert!(Arc::ptr_eq(&first, &cache.leaf(&host("first.example")).unwrap()));
    assert!(!Arc::ptr_eq(&second, &cache.leaf(&host("second.example")).unwrap()));
    assert_eq!(cache.lock().len(), limits::LEAVES);
}

#[test]
fn threads_that_ask_at_once_get_the_same_certificate() {
    let cache = LeafCache::new(Authority::generate().unwrap());
    let leaves: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| cache.leaf(&host("a.example")).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(leaves.iter().all(|leaf| Arc::ptr_eq(leaf, &leaves[0])));
}
