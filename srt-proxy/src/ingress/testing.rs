//! What unit tests of connections share.

use std::net::{TcpListener, TcpStream};

/// Both ends of a connection; ours for the event loop.
pub(crate) fn connection() -> (tokio::net::TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    (tokio::net::TcpStream::from_std(ours).unwrap(), theirs)
}
