use std::{net::SocketAddr, sync::Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UnixListener, UnixStream},
};

use super::*;
use crate::tls::{
    Authority, HelloState, LeafCache, UpstreamTls, client_hello,
    testing::{KEY_USAGE, Pki, host},
};

/// What a tunnel does: looks at the hello, shakes hands, greets.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    tls: &ServerTls,
    leaf: Arc<CertifiedKey>,
    mut client: S,
) -> io::Result<(super::super::ClientHello, ClientStream<S>)> {
    let mut seen = Vec::new();
    let hello = loop {
        match client_hello(&seen) {
            HelloState::ClientHello(hello) => break hello,
            HelloState::NeedMore => {
                assert_ne!(client.read_buf(&mut seen).await?, 0, "the client left");
            }
            other => panic!("{other:?}"),
        }
    };
    let mut stream = tls.accept(Prefixed::new(seen, client), leaf).await?;
    stream.write_all(b"greetings").await?;
    stream.shutdown().await?;
    Ok((hello, stream))
}

type Seen = Arc<Mutex<Vec<io::Result<Option<String>>>>>;

/// Greets every client on a loopback port; notes the server name or the error of each.
async fn listen(authority: Authority, name: &'static str) -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let notes = Arc::clone(&seen);
    tokio::spawn(async move {
        let (tls, leaves) = (ServerTls::new(), LeafCache::new(authority));
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let served = serve(&tls, leaves.leaf(&host(name)).unwrap(), client).await;
            notes.lock().unwrap().push(served.map(|(hello, _)| hello.sni().map(str::to_owned)));
        }
    });
    (address, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn openssl_shakes_hands_strictly_with_every_kind_of_ca() {
    let pki = Pki::new();
    for kind in ["rsa:2048", "P-256", "P-384"] {
        pki.make_ca("ca", kind, "/DC=org/DC=example/CN=Test CA", &[KEY_USAGE]);
        let (address, seen) = listen(pki.authority("ca"), "a.example").await;
        for (version, cipher) in
            [("tls1_2", "ECDHE-ECDSA-AES128-GCM-SHA256"), ("tls1_3", "TLS_AES_128_GCM_SHA256")]
        {
            // openssl asks for AES-256 first.
            let output = pki.openssl(&format!(
                "s_client -connect {address} -servername a.example -verify_hostname a.example -CAfile ca.pem \
                 -x509_strict -verify_return_error -{version} -alpn h2,http/1.1 -ign_eof"
            ));
            for expected in ["Verification: OK", cipher, "ALPN protocol: http/1.1", "greetings"] {
                assert!(output.contains(expected), "{kind} {version}: {expected} is not in {output}");
            }
            assert!(!output.contains("New Session Ticket"), "{output}");
            assert_eq!(seen.lock().unwrap().pop().unwrap().unwrap().as_deref(), Some("a.example"));
        }
        let output = pki.run("openssl", format!("s_client -connect {address} -tls1_1").split(' '));
        assert!(!output.status.success(), "TLS 1.1 was accepted");
    }
}

/// The flags of Python 3.13's default context, which older ones have too.
const PYTHON: &str = "
import socket, ssl, sys
context = ssl.create_default_context(cafile='ca.pem')
context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as plain:
    with context.wrap_socket(plain, server_hostname=sys.argv[2]) as tls:
        print(tls.recv(99).decode(), tls.version(), tls.getpeercert()['subjectAltName'])
";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn python_shakes_hands_strictly() {
    let pki = Pki::new();
    for kind in ["rsa:2048", "P-256", "P-384"] {
        pki.make_ca("ca", kind, "/O=Example/OU=one/OU=two", &[KEY_USAGE]);
        for name in ["a.example", "127.0.0.1"] {
            let (address, seen) = listen(pki.authority("ca"), name).await;
            let output = pki.run("python3", ["-c", PYTHON, &address.port().to_string(), name]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{kind}: {stderr}");
            assert!(stdout.starts_with("greetings TLSv1.3") && stdout.contains(name), "{stdout}");
            let sni = seen.lock().unwrap().pop().unwrap().unwrap();
            assert_eq!(sni.as_deref(), (name == "a.example").then_some(name), "an address is no server name");
        }
        let (address, seen) = listen(pki.authority("ca"), "other.example").await;
        let output = pki.run("python3", ["-c", PYTHON, &address.port().to_string(), "a.example"]);
        assert!(!output.status.success(), "a certificate for another host was accepted");
        drop(seen);
    }
}

#[tokio::test]
async fn rustls_shakes_hands_over_a_unix_socket() {
    let pki = Pki::new();
    let authority = Authority::generate().unwrap();
    let ca = pki.write("ca.pem", authority.certificate_pem());
    let roots = UpstreamTls::new(&[ca]).unwrap();
    // The path of a socket has room for a hundred bytes, which that of TMPDIR may be.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let leaf = LeafCache::new(authority).leaf(&host("::1")).unwrap();
    let server = tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        serve(&ServerTls::new(), leaf, client).await.unwrap()
    });
    let client = UnixStream::connect(socket).await.unwrap();
    let mut stream = roots.connect(client, &host("::1")).await.unwrap();
    let mut greeting = String::new();
    stream.read_to_string(&mut greeting).await.unwrap();
    assert_eq!(greeting, "greetings");
    let (hello, served) = server.await.unwrap();
    assert_eq!(hello.sni(), None);
    assert_eq!(served.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn a_client_that_offers_only_other_protocols_is_refused() {
    let (address, _) = listen(Authority::generate().unwrap(), "a.example").await;
    let pki = Pki::new();
    let output = tokio::task::spawn_blocking(move || {
        pki.run("openssl", format!("s_client -connect {address} -servername a.example -alpn smtp").split(' '))
    });
    let output = output.await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("no application protocol"), "{stderr}");
}
