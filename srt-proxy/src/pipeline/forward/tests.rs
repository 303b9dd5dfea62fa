use std::io::{Read, Write};
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::{Instant, timeout};

use super::*;
use crate::http::request_framing;
use crate::ingress::{ClientSocket, testing::connection};

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
    let exchange = Exchange::new(&mut client, &mut upstream, &mut body, &head, true, &strip);
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

/// A client that waits for a 100 has its final answer instead, and an upload that resumes in the middle of that must
/// not put a 100 into it.
#[tokio::test]
async fn no_100_comes_after_the_answer_has_begun() {
    let (client, mut theirs) = connection();
    let (upstream, mut server) = connection();
    let mut client = Wire::new(ClientSocket::Tcp(client), BytesMut::new());
    let mut upstream = Wire::new(Upstream::Plain(upstream), BytesMut::new());
    let mut request = BytesMut::from(
        "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    );
    let head = HeadReader::new().read_request(&mut request).unwrap().unwrap();
    let mut body = RequestBody::new(&head, request_framing(&head).unwrap());
    let strip = FieldNameSet::default();
    // More than the sockets hold: the upload cannot begin before the upstream reads.
    let long_head = vec![b'x'; 16 << 20];
    let length = long_head.len();
    upstream.output().front().extend_from_slice(&long_head);

    let peers = tokio::task::spawn_blocking(move || {
        server.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nhe").unwrap();
        let mut seen = vec![0; 12];
        theirs.read_exact(&mut seen).unwrap();
        server.read_exact(&mut vec![0; length]).unwrap();
        server.write_all(b"xyz").unwrap();
        let mut rest = [0; 1];
        while !seen.ends_with(b"xyz") {
            theirs.read_exact(&mut rest).unwrap();
            seen.extend_from_slice(&rest);
        }
        String::from_utf8(seen).unwrap()
    });
    let exchange = Exchange::new(&mut client, &mut upstream, &mut body, &head, true, &strip);
    let completed = exchange.run(&mut Timer::new(limits::IDLE)).await.unwrap();
    assert_eq!(completed.status, 413);
    let seen = peers.await.unwrap();
    assert!(seen.starts_with("HTTP/1.1 413 ") && seen.ends_with("\r\n\r\nhexyz"), "{seen}");
}
