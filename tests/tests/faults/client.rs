//! Clients that misbehave.

use std::io::Read;

use srt_tests::proxy::Conn;

use super::{FLOOD, Fault, Stage};

/// Longer than what the sockets on the way hold, so that it is still under way when the client has read a bit.
const LONG_ANSWER: usize = 16 << 20;

/// Brings a client that just connected to a stage. `base` is what its targets begin with.
pub fn bring_to(client: &mut Conn, base: &str, host: &str, stage: Stage) {
    let post = format!("POST {base}/hash HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000\r\n\r\n");
    match stage {
        Stage::BeforeHead => {}
        Stage::InHead => client.send(&post[..20]).unwrap(),
        Stage::BeforeBody => client.send(post).unwrap(),
        Stage::InBody => client.send(post + &"x".repeat(500)).unwrap(),
        Stage::InAnswer => {
            client
                .send(format!("GET {base}/pattern/{LONG_ANSWER} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
                .unwrap();
            client.read_exact(&mut [0; 1000]).unwrap();
        }
        Stage::Idle => assert_eq!(client.get(&format!("{base}/hello"), host).unwrap().1, b"hello"),
    }
}

/// The proxy must end the connection by itself, after what it still has to say.
pub fn check_end(mut client: Conn, stage: Stage, fault: Fault) {
    // A client that only stalls has minutes. One that floods while its answer waits is held back long before the
    // limit of a head, and has as long as the client of a slow head.
    if fault == Fault::Stall || (fault, stage) == (Fault::Flood, Stage::InAnswer) {
        return;
    }
    let read = client.read_to_close().unwrap();
    assert!(read < LONG_ANSWER + FLOOD);
}
