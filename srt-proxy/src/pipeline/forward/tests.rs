use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::{Instant, timeout};

use super::*;
use crate::http::request_framing;
use crate::ingress::ClientSocket;

/// Both ends of a connection; ours for the event loop.
fn connection() -> (tokio::net::TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    (tokio::net::TcpStream::from_std(ours).unwrap(), theirs)
}

/// Runs a GET to an upstream that never answers, for an hour at the most.
async fn wait_for_silence(client: tokio::net::TcpStream) -> Option<Result<Completed, Broken>> {
    let (upstream, _silent) = connection();
    let mut client = Wire::new(ClientSocket::Tcp(client), BytesMut::new());
    let mut upstream = Wire::new(Upstream::Plain(upstream), BytesMut::new());
    let mut request = BytesMut::from("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let head = HeadReader::new().read_request(&mut request).unwrap().unwrap();
    let mut body = RequestBody::new(&head, request_framing(&head).unwrap());
    let strip = FieldNameSet::default();
    upstream.output().front().extend_from_slice(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let exchange = Exchange::new(&mut client, &mut upstream, &mut body, &head, &strip);
    timeout(Duration::from_secs(3600), exchange.run(&mut Timer::new(limits::IDLE))).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_there_waits_for_its_answer_without_limit() {
    let (client, _theirs) = connection();
    assert!(wait_for_silence(client).await.is_none());
}

/// It may have closed its socket: the same FIN says so.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_ended_its_side_waits_for_minutes() {
    let (client, theirs) = connection();
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    let begun = Instant::now();
    assert!(matches!(wait_for_silence(client).await, Some(Err(Broken::Stalled))));
    assert!(begun.elapsed() >= limits::IDLE);
}
