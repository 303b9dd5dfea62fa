//! The first bytes of a tunnel. More bytes never change an answer once given, and where rustls accepts a
//! ClientHello it reads the same server name and protocols from it.
#![no_main]

use std::io::Cursor;
use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use rustls::server::Acceptor;
use srt_proxy::tls::{ClientHello, HelloState, client_hello};

fuzz_target!(|input: &[u8]| {
    let Some((bytes, pieces)) = srt_proxy_fuzz::split(input) else { return };
    let state = client_hello(bytes);
    let mut seen = 0;
    for piece in pieces {
        seen += piece.len();
        let early = client_hello(&bytes[..seen]);
        assert!(early == HelloState::NeedMore || early == state, "{early:?} became {state:?}");
    }
    if let HelloState::ClientHello(hello) = &state {
        compare_with_rustls(bytes, hello);
    }
});

fn compare_with_rustls(bytes: &[u8], hello: &ClientHello) {
    let mut acceptor = Acceptor::default();
    let mut unread = Cursor::new(bytes);
    let accepted = loop {
        match acceptor.read_tls(&mut unread) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => break accepted,
            Ok(None) => {}
            // rustls looks at more than names, and has the last word.
            Err(_) => return,
        }
    };
    let theirs = accepted.client_hello();
    match theirs.server_name() {
        Some(name) => {
            let ours = hello.sni().expect("rustls reads a server name");
            assert!(
                ours.strip_suffix('.').unwrap_or(ours).eq_ignore_ascii_case(name),
                "{ours:?} is {name:?} to rustls"
            );
        }
        // It passes over addresses.
        None => assert!(hello.sni().is_none_or(|name| name.parse::<IpAddr>().is_ok()), "{:?}", hello.sni()),
    }
    let protocols: Vec<_> = theirs.alpn().into_iter().flatten().collect();
    assert!(hello.alpn().eq(protocols));
}
