//! The sandbox's port, led to some other proxy of the host by threads of the process outside.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::sys;

/// Connections relayed at once. Each takes two threads, so this is a bound on memory.
const CONNECTIONS: usize = 512;
/// A client must say its first byte, where that decides which proxy is meant.
const FIRST_BYTE: Duration = Duration::from_secs(300);
/// After a failed accept; trying again at once would fail at once.
const BACKOFF: Duration = Duration::from_millis(50);

const SOCKS5: u8 = 5;

/// Where a proxy of the host listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelayTarget {
    /// `HOST:PORT`, resolved by the system at each connection.
    Tcp(String),
    /// A unix socket.
    Unix(PathBuf),
}

/// Which proxies the sandbox's port leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relay {
    /// For HTTP, and for SOCKS5 too where there is no other.
    pub http: RelayTarget,
    /// For connections that begin as SOCKS5 does.
    pub socks: Option<RelayTarget>,
}

impl Relay {
    /// Serves `listener` from threads until the process ends.
    ///
    /// # Errors
    /// There cannot be even one.
    pub fn serve(self, listener: OwnedFd) -> io::Result<()> {
        sys::use_own_name_services();
        let relay = Arc::new(self);
        let listener = TcpListener::from(listener);
        let open = Arc::new(AtomicUsize::new(0));
        let accepting = move || {
            loop {
                match listener.accept() {
                    Ok((client, _)) if open.load(Ordering::Relaxed) < CONNECTIONS => {
                        let (relay, counted) = (Arc::clone(&relay), Counted::new(&open));
                        // A client whose proxy is not there sees its connection end, as it would outside; and so does one
                        // for which no thread is left.
                        let served = start(move || {
                            let _counted = counted;
                            relay.connect(client)
                        });
                        if served.is_err() {
                            thread::sleep(BACKOFF);
                        }
                    }
                    Ok((refused, _)) => drop(refused),
                    Err(_) => thread::sleep(BACKOFF),
                }
            }
        };
        start(accepting).map(drop)
    }

    fn connect(&self, client: TcpStream) -> io::Result<()> {
        match self.target(&client)? {
            RelayTarget::Tcp(address) => {
                let server = TcpStream::connect(address)?;
                server.set_nodelay(true)?;
                client.set_nodelay(true)?;
                pass_both(client, server)
            }
            RelayTarget::Unix(path) => pass_both(client, UnixStream::connect(path)?),
        }
    }

    fn target(&self, client: &TcpStream) -> io::Result<&RelayTarget> {
        let Some(socks) = &self.socks else { return Ok(&self.http) };
        let mut first = [0];
        client.set_read_timeout(Some(FIRST_BYTE))?;
        let read = client.peek(&mut first)?;
        client.set_read_timeout(None)?;
        Ok(if read == 1 && first[0] == SOCKS5 { socks } else { &self.http })
    }
}

/// Starts a thread, or says that it cannot: `thread::spawn` panics then. Where memory is limited (`ulimit -v`) the last of
/// it is not for a thread's stack: whoever needs a few bytes next, the launcher's other work, would have to abort.
fn start<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    Vec::<u8>::new().try_reserve_exact(STACK + SPARE).map_err(|_| io::ErrorKind::OutOfMemory)?;
    thread::Builder::new().stack_size(STACK).spawn(body)
}

/// Of a thread, as the standard library has it.
const STACK: usize = 2 << 20;
/// What has to be left, in bytes.
const SPARE: usize = 4 << 20;

/// One of the open connections, for as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream with two directions that end apart.
trait Duplex: Read + Write + Send + Sized + 'static {
    fn second(&self) -> io::Result<Self>;
    fn end_writing(&self) -> io::Result<()>;
}

impl Duplex for TcpStream {
    fn second(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn end_writing(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Duplex for UnixStream {
    fn second(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn end_writing(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

fn pass_both<A: Duplex, B: Duplex>(client: A, server: B) -> io::Result<()> {
    let (client_in, server_out) = (client.second()?, server.second()?);
    let up = start(move || pass(client_in, server_out))?;
    let down = pass(server, client);
    let up = up.join().unwrap_or(Ok(()));
    down.and(up)
}

/// Passes bytes, and then the end of the stream.
fn pass(mut from: impl Duplex, mut to: impl Duplex) -> io::Result<()> {
    let copied = io::copy(&mut from, &mut to);
    // The other direction may still be under way.
    let ended = to.end_writing();
    copied.and(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proxy that answers with its name and what it was sent, once the client has ended.
    fn echo(name: &'static str) -> RelayTarget {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let mut got = name.as_bytes().to_vec();
                client.read_to_end(&mut got).unwrap();
                client.write_all(&got).unwrap();
            }
        });
        RelayTarget::Tcp(address)
    }

    fn ask(relay: Relay, request: &[u8]) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        relay.serve(listener.into()).unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_first_byte_tells_socks_from_http_and_half_closes_pass() {
        let both = Relay { http: echo("http:"), socks: Some(echo("socks:")) };
        assert_eq!(ask(both.clone(), b"GET /"), b"http:GET /");
        assert_eq!(ask(both, b"\x05\x01\x00"), b"socks:\x05\x01\x00");
        let one = Relay { http: echo("http:"), socks: None };
        assert_eq!(ask(one, b"\x05\x01\x00"), b"http:\x05\x01\x00");
    }

    #[test]
    fn without_the_proxy_there_is_nothing() {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let relay = Relay { http: RelayTarget::Tcp(gone), socks: None };
        assert_eq!(ask(relay, b""), b"");
    }
}
