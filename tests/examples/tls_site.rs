//! The web site of the proxy's demonstration: tells everybody what it was asked and with which credential.
//!
//! It takes a folder, puts certificates into it, and prints its port:
//!
//! - `proxy-ca.pem`: a CA with its key, for the proxy to mint with
//! - `client-ca.pem`: that CA's certificate, for clients to trust
//! - `site-ca.pem`: the CA of the site, for the proxy to trust
//!
//! It ends when its input does.

use std::io::{self, Read};
use std::path::PathBuf;
use std::{env, fs};

use srt_tests::proxy::{Pki, TestUpstream, site};

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from).ok_or(io::Error::other("a folder is missing"))?;
    let pki = Pki::new();
    fs::write(folder.join("proxy-ca.pem"), pki.proxy_ca_text())?;
    fs::copy(pki.proxy_ca_file(), folder.join("client-ca.pem"))?;
    fs::copy(pki.upstream_ca_file(), folder.join("site-ca.pem"))?;
    let site = TestUpstream::tls(
        &pki,
        "api.example.test",
        site(|conn, head| {
            let credential = head.field("authorization").unwrap_or("none");
            let text = format!("the site was asked: {}, with the credential: {credential}\n", head.method());
            conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()))
        }),
    );
    println!("{}", site.port());
    // Whoever started it holds the other end: nothing is left behind when it goes.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
