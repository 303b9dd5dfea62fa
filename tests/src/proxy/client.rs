//! Clients: raw connections to the proxy, and what other programs need to know to use it.

use std::io;
use std::net::TcpStream;

use super::{Conn, Message, Pki, TestProxy};
use crate::program::Program;

/// A connection to the proxy.
pub fn connect(proxy: &TestProxy) -> Conn {
    Conn::plain(TcpStream::connect(proxy.address()).unwrap()).unwrap()
}

/// A terminated tunnel to `host:port`.
///
/// # Panics
/// When the CONNECT is refused or the handshake fails.
pub fn connect_tunnel(proxy: &TestProxy, pki: &Pki, host: &str, port: u16) -> Conn {
    let (conn, answer) = try_tunnel(proxy, host, port).unwrap();
    assert_eq!(answer.status(), 200, "{answer:?}");
    conn.into_tls_client(&pki.client_config(), host).unwrap()
}

/// Sends a CONNECT and reads the head of its answer.
pub fn try_tunnel(proxy: &TestProxy, host: &str, port: u16) -> io::Result<(Conn, Message)> {
    let mut conn = connect(proxy);
    conn.send(format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"))?;
    let answer = conn.read_head()?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((conn, answer))
}

/// Points a program at the proxy and at its CA, through the variables that the common runtimes read.
pub fn programs_env(program: Program, proxy: &TestProxy, pki: &Pki) -> Program {
    let url = format!("http://{}", proxy.address());
    let ca = pki.proxy_ca_file();
    let program = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"]
        .into_iter()
        .fold(program, |program, name| program.env(name, &url));
    let program =
        ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"]
            .into_iter()
            .fold(program, |program, name| program.env(name, &ca));
    // Node reads the proxy variables only when told to.
    program.env("NODE_USE_ENV_PROXY", "1")
}
