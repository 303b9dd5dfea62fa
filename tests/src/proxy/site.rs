//! A well-behaved web site.

use std::io::{self, Read, Write};

use super::{Conn, Message, Seen, sha256};

/// Answers one request whose head was read; its body must be read.
pub trait Site: Fn(&mut Conn, &Message) -> io::Result<()> + Send + Sync + 'static {}

impl<F: Fn(&mut Conn, &Message) -> io::Result<()> + Send + Sync + 'static> Site for F {}

/// Serves connections with `other` for what the following do not answer:
///
/// - `/hello`: `hello`
/// - `/echo`: the method, a blank, and the request's body
/// - `/hash`: the SHA-256 of the request's body in hex, a blank, and its length
/// - `/pattern/N`: N bytes of [`pattern`]
pub fn site(other: impl Site) -> impl Fn(Conn, &Seen) + Send + Sync + 'static {
    move |mut conn, seen| {
        while let Ok(Some(head)) = conn.read_head() {
            seen.add(&head);
            if answer(&mut conn, &head, &other).is_err() {
                return;
            }
        }
    }
}

fn answer(conn: &mut Conn, head: &Message, other: &impl Site) -> io::Result<()> {
    let path = head.target().split('?').next().unwrap_or_default();
    if head.field("expect").is_some() {
        conn.send("HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = match path {
        "/hello" => {
            io::copy(&mut conn.body(head, false), &mut io::sink())?;
            b"hello".to_vec()
        }
        "/echo" => {
            let mut body = format!("{} ", head.method()).into_bytes();
            conn.body(head, false).read_to_end(&mut body)?;
            body
        }
        "/hash" => {
            let (hash, length) = sha256(conn.body(head, false))?;
            format!("{hash} {length}").into_bytes()
        }
        _ => match path.strip_prefix("/pattern/").and_then(|length| length.parse().ok()) {
            Some(length) => {
                conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"))?;
                io::copy(&mut pattern(length), conn)?;
                return conn.flush();
            }
            None => return other(conn, head),
        },
    };
    conn.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes())?;
    conn.send(body)
}

/// So many bytes that repeat with an odd period, so that a piece that is lost, doubled or moved shows in their
/// hash.
pub fn pattern(length: u64) -> impl Read {
    const PERIOD: usize = 64 * 1024 - 17;
    let block: Vec<u8> = (0..PERIOD).map(|i| (i * i / 7) as u8).collect();
    Repeat { block, at: 0 }.take(length)
}

struct Repeat {
    block: Vec<u8>,
    at: usize,
}

impl Read for Repeat {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let rest = &self.block[self.at..];
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        self.at = (self.at + n) % self.block.len();
        Ok(n)
    }
}
