//! `/dev/srt/connect HOST PORT`: what `ssh` runs as its `ProxyCommand` inside a sandbox. A CONNECT to the sandbox's own
//! port, then standard input and output.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::process::ExitCode;
use std::thread;

use crate::proxy::PROXY_PORT;
use crate::say;

/// The name this program goes by inside.
pub const NAME: &str = "connect";

/// Bytes of the answer's head; a refusal's reason is at most 500 characters.
const HEAD: u64 = 64 * 1024;

/// Runs it to its end.
pub fn run(host: &str, port: &str) -> ExitCode {
    match connect(host, port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            say::err(format_args!("sandbox proxy: {host}:{port}: {e}"));
            ExitCode::FAILURE
        }
    }
}

fn connect(host: &str, port: &str) -> io::Result<()> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    stream.set_nodelay(true)?;
    let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    write!(&stream, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")?;
    let mut answer = BufReader::new((&stream).take(HEAD));
    let mut status = String::new();
    answer.read_line(&mut status)?;
    let status = status.trim_end().split_once(' ').map_or("", |(_, status)| status).to_owned();
    loop {
        let mut line = String::new();
        if answer.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
    }
    if !status.starts_with("200") {
        return Err(io::Error::other(status));
    }
    // What came behind the head is the server's already.
    let mut out = io::stdout().lock();
    out.write_all(answer.buffer())?;
    out.flush()?;

    let mut up = stream.try_clone()?;
    thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut up);
        // The end of our input is the end of the request, not of the answer.
        let _ = up.shutdown(Shutdown::Write);
    })?;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match (&stream).read(&mut buffer)? {
            0 => return Ok(()),
            n => {
                out.write_all(&buffer[..n])?;
                out.flush()?;
            }
        }
    }
}
