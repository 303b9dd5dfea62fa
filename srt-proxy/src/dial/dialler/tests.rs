use std::sync::Arc;

use srt_shared::{domain::DomainPattern, lists::Lists};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::{
    dial::AddressPolicy,
    prefixed::Prefixed,
    tls::{Authority, LeafCache, ServerTls},
};

fn host(text: &str) -> Host {
    Host::from_bare(text).unwrap()
}

/// A dialler for which every name used here is this machine, and the CA that it trusts.
fn dialler() -> (Dialler, Authority, TempDir) {
    let authority = Authority::generate().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let trusted = dir.path().join("ca.pem");
    std::fs::write(&trusted, authority.certificate_pem()).unwrap();
    let overrides =
        ["a.example=127.0.0.1", "b.example=127.0.0.1", "c.example=::1"].map(|text| text.parse().unwrap());
    let resolver = Resolver::with_files(overrides, "/nonexistent", "/nonexistent");
    (Dialler::new(resolver, UpstreamTls::new(&[trusted]).unwrap()), authority, dir)
}

/// Loopback only at that port.
fn guard(port: u16) -> Guard {
    let exempt = DomainPattern::parse_hello(&format!("127.0.0.1:{port}")).unwrap();
    let lists = Arc::new(Lists::new(vec![exempt], vec![]));
    Guard::new(AddressPolicy { lists, ..AddressPolicy::default() })
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[tokio::test]
async fn a_plain_connection_leads_to_the_address_that_passed() {
    let (dialler, _, _dir) = dialler();
    let (listener, port) = listen().await;
    let mut upstream = dialler.dial(&host("a.example"), port, false, &guard(port)).await.unwrap();
    let (mut served, client) = listener.accept().await.unwrap();
    assert_eq!(upstream.tcp().local_addr().unwrap(), client);
    assert!(upstream.tcp().nodelay().unwrap() && upstream.is_write_vectored());
    assert_eq!(upstream.alpn(), None);
    upstream.write_all(b"ping").await.unwrap();
    upstream.shutdown().await.unwrap();
    let mut got = String::new();
    served.read_to_string(&mut got).await.unwrap();
    assert_eq!(got, "ping");
}

#[tokio::test]
async fn tls_is_verified_for_the_name_that_was_asked_for() {
    let (dialler, authority, _dir) = dialler();
    let (listener, port) = listen().await;
    let leaves = LeafCache::new(authority);
    let leaf = leaves.leaf(&host("a.example")).unwrap();
    let server = tokio::spawn(async move {
        let tls = ServerTls::new();
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = tls.accept(Prefixed::new(Vec::new(), client), Arc::clone(&leaf)).await
            else {
                continue;
            };
            stream.write_all(b"hi").await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    let mut upstream = dialler.dial(&host("a.example"), port, true, &guard(port)).await.unwrap();
    assert_eq!(upstream.alpn(), Some(&b"http/1.1"[..]));
    let mut got = String::new();
    upstream.read_to_string(&mut got).await.unwrap();
    assert_eq!(got, "hi");
    let error = dialler.dial(&host("b.example"), port, true, &guard(port)).await.unwrap_err();
    assert!(
        matches!(error, DialError::Failed(DialFailure::Tls(UpstreamTlsError::NameMismatch))),
        "{error:?}"
    );
    server.abort();
}

#[tokio::test]
async fn a_refused_address_is_not_dialled() {
    let (dialler, _, _dir) = dialler();
    let (listener, port) = listen().await;
    // Exempt for another port.
    for name in ["a.example", "c.example", "127.0.0.1"] {
        let error = dialler.dial(&host(name), port, false, &guard(port ^ 1)).await.unwrap_err();
        assert!(matches!(error, DialError::Refused(_)), "{name}: {error:?}");
        assert_eq!(error.to_string(), "resolved to a loopback address");
    }
    listener.into_std().unwrap().accept().expect_err("a connection was made");
}

#[tokio::test]
async fn a_failure_tells_what_failed() {
    let (dialler, _, _dir) = dialler();
    let (listener, port) = listen().await;
    drop(listener);
    for tls in [false, true] {
        let error = dialler.dial(&host("a.example"), port, tls, &guard(port)).await.unwrap_err();
        let DialError::Failed(failure) = error else { panic!("{error:?}") };
        assert_eq!(failure.to_string(), "the upstream refused the connection");
        assert!(!failure.is_timeout());
    }
}
