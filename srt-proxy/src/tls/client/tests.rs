use std::time::{Duration, SystemTime};

use rustls::HandshakeKind;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::JoinHandle,
};

use super::*;
use crate::{
    prefixed::Prefixed,
    tls::{
        Authority, ServerTls,
        testing::{KEY_USAGE, Pki, host, to_pem},
    },
};

/// A client that trusts `authority`, whatever the host trusts.
fn trusting(pki: &Pki, authority: &Authority) -> UpstreamTls {
    UpstreamTls::new(&[pki.write("trusted.pem", authority.certificate_pem())]).unwrap()
}

/// Serves one connection with a leaf of `authority` for `name` that was minted at `at`.
fn serve(authority: &Authority, name: &str, at: SystemTime) -> (DuplexStream, JoinHandle<io::Result<()>>) {
    let leaf = authority.mint(&host(name), at).unwrap().certified;
    let (near, far) = duplex(64 * 1024);
    let server = tokio::spawn(async move {
        let mut stream = ServerTls::new().accept(Prefixed::new(Vec::new(), far), leaf).await?;
        stream.write_all(b"hi").await?;
        stream.shutdown().await
    });
    (near, server)
}

async fn fail(
    tls: &UpstreamTls,
    authority: &Authority,
    served: &str,
    asked: &str,
    at: SystemTime,
) -> UpstreamTlsError {
    let (stream, server) = serve(authority, served, at);
    let error = tls.connect(stream, &host(asked)).await.unwrap_err();
    assert!(server.await.unwrap().is_err(), "the server saw no failure");
    error
}

#[tokio::test]
async fn a_certificate_for_the_host_is_accepted() {
    let pki = Pki::new();
    let authority = Authority::generate().unwrap();
    let tls = trusting(&pki, &authority);
    tls.client_config().await.unwrap();
    for name in ["a.example", "x_y.example", "127.0.0.1", "::1"] {
        let (stream, server) = serve(&authority, name, SystemTime::now());
        let mut stream = tls.connect(stream, &host(name)).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hi", "{name}");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        server.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn every_other_certificate_is_refused_by_its_class() {
    let pki = Pki::new();
    let authority = Authority::generate().unwrap();
    let tls = trusting(&pki, &authority);
    let rogue = Authority::generate().unwrap();
    let now = SystemTime::now();
    let error = fail(&tls, &rogue, "a.example", "a.example", now).await;
    assert!(matches!(error, UpstreamTlsError::Untrusted), "{error:?}");
    for (served, asked) in [
        ("b.example", "a.example"),
        ("example", "a.example"),
        ("a.example", "b.a.example"),
        ("127.0.0.1", "127.0.0.2"),
        ("a.example", "127.0.0.1"),
        ("127.0.0.1", "a.example"),
        ("::1", "127.0.0.1"),
    ] {
        let error = fail(&tls, &authority, served, asked, now).await;
        assert!(matches!(error, UpstreamTlsError::NameMismatch), "{served} for {asked}: {error:?}");
    }
}

#[tokio::test]
async fn dates_are_told_apart_from_distrust() {
    let pki = Pki::new();
    // openssl's x509 makes a CA that began long ago.
    pki.make_ca("ca", "P-256", "/CN=Test CA", &[KEY_USAGE]);
    let authority = pki.authority("ca");
    let tls = trusting(&pki, &authority);
    let later = SystemTime::now() + Duration::from_secs(2 * 24 * 3600);
    let error = fail(&tls, &authority, "a.example", "a.example", later).await;
    assert!(matches!(error, UpstreamTlsError::Expired), "{error:?}");
}

#[tokio::test]
async fn a_chain_through_an_unknown_ca_of_the_same_name_is_untrusted() {
    let pki = Pki::new();
    pki.make_ca("ca", "P-256", "/CN=Same", &[KEY_USAGE]);
    pki.make_ca("rogue", "P-256", "/CN=Same", &[KEY_USAGE]);
    let tls = trusting(&pki, &pki.authority("ca"));
    let error = fail(&tls, &pki.authority("rogue"), "a.example", "a.example", SystemTime::now()).await;
    assert!(matches!(error, UpstreamTlsError::Untrusted), "{error:?}");
}

/// What the other side does instead of a handshake.
async fn answer(bytes: Option<&[u8]>) -> UpstreamTlsError {
    let pki = Pki::new();
    let tls = trusting(&pki, &Authority::generate().unwrap());
    tls.client_config().await.unwrap();
    let (stream, mut far) = duplex(64 * 1024);
    let host = host("a.example");
    let connect = tls.connect(stream, &host);
    let upstream = async {
        match bytes {
            Some(bytes) => {
                far.write_all(bytes).await.unwrap();
                drop(far);
            }
            // Waits as long as the client does.
            None => drop(far.read_to_end(&mut Vec::new()).await),
        }
    };
    tokio::join!(connect, upstream).0.unwrap_err()
}

#[tokio::test]
async fn an_upstream_without_tls_is_told_from_one_that_closes() {
    for (bytes, expected) in [
        (&b""[..], "Closed"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "Protocol"),
        (b"SSH-2.0-OpenSSH_9\r\n", "Protocol"),
        // handshake_failure, unrecognized_name
        (b"\x15\x03\x03\x00\x02\x02\x28", "Refused"),
        (b"\x15\x03\x03\x00\x02\x02\x70", "Refused"),
        (b"\x16\x03\x03\x00\x10", "Closed"),
    ] {
        let error = answer(Some(bytes)).await;
        assert_eq!(format!("{error:?}"), expected, "{bytes:?}");
        assert!(!error.is_timeout());
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_upstream_is_a_timeout() {
    let error = answer(None).await;
    assert!(matches!(error, UpstreamTlsError::Timeout), "{error:?}");
    assert!(error.is_timeout());
}

#[tokio::test]
async fn a_name_that_no_certificate_has_is_not_asked_for() {
    let pki = Pki::new();
    let tls = trusting(&pki, &Authority::generate().unwrap());
    let (stream, mut far) = duplex(1024);
    let error = tls.connect(stream, &host("a-.example")).await.unwrap_err();
    assert!(matches!(error, UpstreamTlsError::Unverifiable), "{error:?}");
    assert_eq!(far.read(&mut [0; 10]).await.unwrap(), 0, "bytes were sent");
}

#[tokio::test]
async fn sessions_are_resumed() {
    let pki = Pki::new();
    let authority = Authority::generate().unwrap();
    let tls = trusting(&pki, &authority);
    let leaf = authority.mint(&host("a.example"), SystemTime::now()).unwrap().certified;
    let mut resolver = rustls::server::ResolvesServerCertUsingSni::new();
    resolver.add("a.example", rustls::sign::CertifiedKey::clone(&leaf)).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    for expected in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
        let (near, far) = duplex(64 * 1024);
        let server = async {
            let mut stream = acceptor.accept(far).await.unwrap();
            stream.write_all(b"hi").await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let client = async {
            let mut stream = tls.connect(near, &host("a.example")).await.unwrap();
            stream.read_to_end(&mut Vec::new()).await.unwrap();
            stream.get_ref().1.handshake_kind()
        };
        assert_eq!(tokio::join!(client, server).0, Some(expected));
    }
}

#[test]
fn a_file_that_adds_no_root_is_an_error() {
    let pki = Pki::new();
    let broken = to_pem(b"no certificate");
    for (name, text) in [
        ("empty.pem", ""),
        ("text.pem", "hello\n"),
        ("cut.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n"),
        ("broken.pem", broken.as_str()),
    ] {
        let path = pki.write(name, text);
        let error = UpstreamTls::new(std::slice::from_ref(&path)).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    let error = UpstreamTls::new(&[pki.path("absent.pem")]).unwrap_err();
    assert!(error.to_string().contains("absent.pem"), "{error}");
}

#[test]
fn a_private_key_beside_the_certificate_is_ignored() {
    let pki = Pki::new();
    pki.make_ca("ca", "P-256", "/CN=Test CA", &[KEY_USAGE]);
    let path = pki.write("both.pem", pki.ca_text("ca"));
    UpstreamTls::new(&[path]).unwrap();
}

/// Run by the next test in a process of its own, since the environment belongs to all threads.
#[tokio::test]
#[ignore = "run by the_environment_names_the_roots"]
async fn report_loaded_roots() {
    let outcome = UpstreamTls::new(&[]).unwrap().client_config().await;
    println!("outcome: {}", outcome.map_or_else(|error| error.to_string(), |_| "loaded".to_owned()));
}

#[test]
fn the_environment_names_the_roots() {
    let pki = Pki::new();
    pki.make_ca("ca", "P-256", "/CN=Test CA", &[KEY_USAGE]);
    pki.write("empty.pem", "");
    for (file, expected) in [
        ("ca.pem", "outcome: loaded"),
        ("empty.pem", "outcome: no trusted CA certificates on this host"),
        ("absent.pem", "outcome: no trusted CA certificates on this host ("),
    ] {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--nocapture", "--exact", "tls::client::tests::report_loaded_roots"])
            .env("SSL_CERT_FILE", pki.path(file))
            .env_remove("SSL_CERT_DIR")
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains(expected), "{file}: {stdout}");
    }
}
