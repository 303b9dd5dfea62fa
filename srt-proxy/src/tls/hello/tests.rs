use std::sync::Arc;

use proptest::prelude::*;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, pki_types::ServerName, server::Acceptor, version,
};

use super::*;
use crate::tls::provider;

/// What a rustls client sends first.
fn real_hello(name: &str, versions: &[&'static rustls::SupportedProtocolVersion], alpn: &[&[u8]]) -> Vec<u8> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut bytes = Vec::new();
    ClientConnection::new(Arc::new(config), name).unwrap().write_tls(&mut bytes).unwrap();
    bytes
}

fn vector8(contents: &[u8]) -> Vec<u8> {
    [&[contents.len() as u8], contents].concat()
}

fn vector16(contents: &[u8]) -> Vec<u8> {
    [&(contents.len() as u16).to_be_bytes(), contents].concat()
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector16(data)].concat()
}

fn server_name(name: &[u8]) -> Vec<u8> {
    extension(0, &vector16(&[&[0][..], &vector16(name)].concat()))
}

fn alpn(protocols: &[&[u8]]) -> Vec<u8> {
    extension(16, &vector16(&protocols.iter().flat_map(|protocol| vector8(protocol)).collect::<Vec<_>>()))
}

/// signature_algorithms, without which rustls takes no hello.
fn signatures() -> Vec<u8> {
    extension(13, &vector16(&[4, 3, 8, 4]))
}

fn body(extensions: &[u8]) -> Vec<u8> {
    let fixed = [&[3, 3][..], &[7; 32], &vector8(&[9; 32]), &vector16(&[0x13, 1]), &vector8(&[0])].concat();
    [fixed, vector16(extensions)].concat()
}

fn handshake(body: &[u8]) -> Vec<u8> {
    [&[1], &(body.len() as u32).to_be_bytes()[1..], body].concat()
}

fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|fragment| [&[22, 3, 1][..], &vector16(fragment)].concat()).collect()
}

fn hello_with(extensions: &[u8]) -> Vec<u8> {
    records(&handshake(&body(extensions)), 16384)
}

fn sni_of(bytes: &[u8]) -> Option<String> {
    match client_hello(bytes) {
        HelloState::ClientHello(hello) => hello.sni,
        other => panic!("{other:?}"),
    }
}

#[test]
fn hellos_of_a_real_client_are_read() {
    for versions in [&[&version::TLS12][..], &[&version::TLS13], &[&version::TLS13, &version::TLS12]] {
        let bytes = real_hello("Api.Example.com", versions, &[b"h2", b"http/1.1"]);
        let HelloState::ClientHello(hello) = client_hello(&bytes) else { panic!("not read") };
        assert!(hello.sni().is_some_and(|sni| sni.eq_ignore_ascii_case("api.example.com")), "{hello:?}");
        assert_eq!(hello.alpn().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
        let bytes = real_hello("127.0.0.1", versions, &[]);
        assert_eq!(client_hello(&bytes), HelloState::ClientHello(ClientHello::default()));
    }
}

#[test]
fn every_prefix_needs_more_however_the_records_are_cut() {
    let message = handshake(&body(&[server_name(b"a.example"), signatures()].concat()));
    for size in [1, 2, 3, 4, 5, 7, 50, 16384] {
        let bytes = records(&message, size);
        for end in 0..bytes.len() {
            assert_eq!(client_hello(&bytes[..end]), HelloState::NeedMore, "{end} bytes, records of {size}");
        }
        assert_eq!(sni_of(&bytes).as_deref(), Some("a.example"), "records of {size}");
    }
}

#[test]
fn bytes_behind_the_hello_do_not_matter() {
    let mut bytes = hello_with(&server_name(b"a.example"));
    bytes.extend_from_slice(b"\x14\x03\x03\x00\x01\x01 whatever");
    assert_eq!(sni_of(&bytes).as_deref(), Some("a.example"));
}

#[test]
fn other_protocols_are_not_tls() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-x",
        b"\x00",
        b"\x16\x02",
        b"\x16\x01\x03\x00\x05",
        b"\x15\x03\x01\x00\x02\x02\x28",
        // An SSL 2 hello.
        b"\x80\x2e\x01\x03\x01",
    ] {
        assert_eq!(client_hello(bytes), HelloState::NotTls, "{bytes:?}");
    }
}

#[test]
fn a_hello_without_extensions_is_one() {
    let body = body(&[]);
    let without = &body[..body.len() - 2];
    for body in [&body[..], without] {
        let bytes = records(&handshake(body), 16384);
        assert_eq!(client_hello(&bytes), HelloState::ClientHello(ClientHello::default()));
    }
}

#[test]
fn the_server_name_is_told_as_it_was_spelled() {
    for name in ["a.example.", "A.Example", "x_y.example", "127.0.0.1", "[::1]", "a..b", "-"] {
        assert_eq!(sni_of(&hello_with(&server_name(name.as_bytes()))).as_deref(), Some(name));
    }
}

#[test]
fn what_has_two_readings_is_malformed() {
    let a = server_name(b"a.example");
    let two_names = vector16(&[&[0][..], &vector16(b"a"), &[0], &vector16(b"b")].concat());
    let other_type = vector16(&[&[1][..], &vector16(b"a")].concat());
    for (what, extensions) in [
        ("two server names", [a.clone(), server_name(b"b.example")].concat()),
        ("the same server name twice", [a.clone(), a.clone()].concat()),
        ("two names in one extension", extension(0, &two_names)),
        ("a name of another type", extension(0, &other_type)),
        ("an empty list of names", extension(0, &vector16(&[]))),
        ("an empty extension", extension(0, &[])),
        ("an empty name", server_name(b"")),
        ("a name with a NUL", server_name(b"a.example\0.evil.example")),
        ("a name with a blank", server_name(b"a example")),
        ("a name that is not ASCII", server_name("ä.example".as_bytes())),
        (
            "bytes behind the list of names",
            extension(0, &[&vector16(&[&[0][..], &vector16(b"a")].concat())[..], b"x"].concat()),
        ),
        ("two lists of protocols", [alpn(&[b"h2"]), alpn(&[b"http/1.1"])].concat()),
        ("no protocol", alpn(&[])),
        ("an empty protocol", alpn(&[b""])),
        ("an extension cut short", a[..a.len() - 1].to_vec()),
        ("a lone byte", vec![0]),
    ] {
        assert_eq!(client_hello(&hello_with(&extensions)), HelloState::Malformed, "{what}");
    }
}

#[test]
fn broken_framing_is_malformed() {
    let message = handshake(&body(&server_name(b"a.example")));
    let trailing = [body(&[]), vec![0]].concat();
    for (what, bytes) in [
        ("an empty record", b"\x16\x03\x01\x00\x00".to_vec()),
        ("a record over 2^14 bytes", b"\x16\x03\x01\x40\x01\x01".to_vec()),
        ("another handshake message", records(&[2, 0, 0, 1, 0], 16384)),
        (
            "an alert in between",
            [records(&message[..20], 20), b"\x15\x03\x01\x00\x02\x02\x28".to_vec()].concat(),
        ),
        (
            "a record of another version in between",
            [records(&message[..20], 20), b"\x16\x02\x01\x00\x01\x00".to_vec()].concat(),
        ),
        ("two messages in one record", records(&[message.clone(), message.clone()].concat(), 16384)),
        ("bytes behind the extensions", records(&handshake(&trailing), 16384)),
        ("nothing inside", records(&handshake(&[]), 16384)),
        ("a length over the limit", records(&[1, 2, 0, 0, 3, 3], 16384)),
    ] {
        assert_eq!(client_hello(&bytes), HelloState::Malformed, "{what}");
    }
}

#[test]
fn a_hello_over_the_limit_is_malformed_before_it_is_complete() {
    let message = handshake(&vec![0; limits::CLIENT_HELLO]);
    let bytes = records(&message, 100);
    assert_eq!(client_hello(&bytes[..limits::CLIENT_HELLO - 200]), HelloState::NeedMore);
    assert_eq!(client_hello(&bytes[..limits::CLIENT_HELLO + 200]), HelloState::Malformed);
}

#[test]
fn a_name_is_compared_without_case_but_with_its_final_dot() {
    let hello = |sni: Option<&str>| ClientHello { sni: sni.map(str::to_owned), alpn: Vec::new() };
    let name = Host::from_bare("api.example.com").unwrap();
    let v4 = Host::from_bare("127.0.0.1").unwrap();
    let v6 = Host::from_bare("::1").unwrap();
    for (sni, host, expected) in [
        (None, &name, true),
        (None, &v4, true),
        (Some("api.example.com"), &name, true),
        (Some("API.example.COM"), &name, true),
        (Some("api.example.com."), &name, false),
        (Some("example.com"), &name, false),
        (Some("x.api.example.com"), &name, false),
        (Some("api_example.com"), &name, false),
        (Some("127.0.0.1"), &name, false),
        (Some("127.0.0.1"), &v4, true),
        (Some("127.0.0.2"), &v4, false),
        (Some("127.1"), &v4, false),
        (Some("api.example.com"), &v4, false),
        (Some("::1"), &v6, true),
        (Some("[::1]"), &v6, false),
    ] {
        assert_eq!(hello(sni).names(host), expected, "{sni:?} for {host}");
    }
}

/// What rustls makes of the same bytes: the server name, or that it needs more, or an error.
fn ask_rustls(bytes: &[u8]) -> Result<Option<Option<String>>, rustls::Error> {
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    loop {
        let read = acceptor.read_tls(&mut rest).map_err(|_| rustls::Error::HandshakeNotComplete)?;
        match acceptor.accept() {
            Err((error, _)) => return Err(error),
            Ok(Some(accepted)) => return Ok(Some(accepted.client_hello().server_name().map(str::to_owned))),
            Ok(None) if read == 0 => return Ok(None),
            Ok(None) => {}
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        client_hello(&bytes);
        client_hello(&[&[22, 3, 1][..], &bytes].concat());
        client_hello(&records(&handshake(&bytes), 16384));
        client_hello(&hello_with(&bytes));
    }

    /// Whatever rustls would shake hands over was read here with the same name, or refused.
    #[test]
    fn rustls_never_sees_another_name(
        name in "[a-zA-Z0-9._-]{1,20}",
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        size in 1usize..400,
    ) {
        let mut message = handshake(&body(&[server_name(name.as_bytes()), alpn(&[b"h2"]), signatures()].concat()));
        if let Some((at, byte)) = damage {
            let at = at.index(message.len());
            message[at] = byte;
        }
        let bytes = records(&message, size);
        if let Ok(Some(theirs)) = ask_rustls(&bytes) {
            let ours = match client_hello(&bytes) {
                HelloState::ClientHello(ours) => ours,
                // Refusing more is fine: rustls skips names of unknown types, for one.
                HelloState::Malformed => return Ok(()),
                other => panic!("{other:?}, while rustls reads {theirs:?}"),
            };
            let ours = ours.sni.map(|sni| sni.strip_suffix('.').unwrap_or(&sni).to_ascii_lowercase());
            // rustls takes an address for no name at all.
            prop_assert!(theirs == ours || theirs.is_none() && ours.is_some_and(|sni| sni.parse::<std::net::IpAddr>().is_ok()));
        }
    }
}
