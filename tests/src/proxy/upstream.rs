use std::fmt;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::{Conn, Message, Pki};

/// A server on a port of its own, a thread for each connection.
pub struct TestUpstream {
    address: SocketAddr,
    seen: Seen,
    stopped: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// The heads of all requests that an upstream has read.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<Message>>>);

impl Seen {
    /// Notes one.
    pub fn add(&self, head: &Message) {
        self.0.lock().unwrap().push(head.clone());
    }

    /// Takes what was noted.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl TestUpstream {
    /// A server without TLS.
    pub fn plain(serve: impl Fn(Conn, &Seen) + Send + Sync + 'static) -> Self {
        Self::start(Some, serve)
    }

    /// A server with a certificate of the upstreams' CA for `name`. Connections without a handshake are dropped.
    pub fn tls(pki: &Pki, name: &str, serve: impl Fn(Conn, &Seen) + Send + Sync + 'static) -> Self {
        let config = pki.upstream_config(&[name]);
        Self::start(move |conn| conn.into_tls_server(&config).ok(), serve)
    }

    fn start(
        handshake: impl Fn(Conn) -> Option<Conn> + Send + Sync + 'static,
        serve: impl Fn(Conn, &Seen) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Seen::default();
        let stopped = Arc::new(AtomicBool::new(false));
        let each = {
            let seen = seen.clone();
            Arc::new(move |socket| {
                if let Some(conn) = Conn::plain(socket).ok().and_then(&handshake) {
                    serve(conn, &seen);
                }
            })
        };
        let accepting = {
            let stopped = Arc::clone(&stopped);
            thread::spawn(move || {
                for socket in listener.incoming().map_while(Result::ok) {
                    if stopped.load(Ordering::Acquire) {
                        return;
                    }
                    let each = Arc::clone(&each);
                    thread::spawn(move || each(socket));
                }
            })
        };
        Self { address, seen, stopped, accepting: Some(accepting) }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What it was asked.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }
}

impl Drop for TestUpstream {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the thread that accepts.
        if TcpStream::connect(self.address).is_ok()
            && let Some(accepting) = self.accepting.take()
        {
            let _ = accepting.join();
        }
    }
}

impl fmt::Debug for TestUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestUpstream").field("address", &self.address).finish_non_exhaustive()
    }
}
