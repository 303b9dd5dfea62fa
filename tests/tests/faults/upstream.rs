//! Upstreams that misbehave.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use srt_tests::proxy::{Conn, TestUpstream, site};

use super::{Fault, Stage, commit};

/// What the client gets of an exchange with such an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A 502 of the proxy's.
    BadGateway,
    /// The head of the answer, and not all of its body.
    Cut,
    /// All of the answer.
    Whole,
    /// No more, as long as the upstream stalls.
    Nothing,
}

/// What the client must get.
pub fn expected(stage: Stage, fault: Fault, tls: bool) -> Outcome {
    match (stage, fault) {
        (_, Fault::Stall) => Outcome::Nothing,
        (Stage::BeforeHead | Stage::InHead, _) => Outcome::BadGateway,
        // The answer was complete; the next one comes on another connection.
        (Stage::Idle, _) => Outcome::Whole,
        // What is too much does not belong to the answer.
        (_, Fault::Flood) => Outcome::Whole,
        (_, Fault::Garbage) if !tls => Outcome::Whole,
        _ => Outcome::Cut,
    }
}

/// The next connection's stage and fault, and the word to go from the one to the other. Without a plan a
/// connection is served well.
pub type Plan = Arc<Mutex<Option<(Stage, Fault, Receiver<()>)>>>;

/// What an upstream tells the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It has done its fault.
    Done,
    /// The proxy has let go of it.
    Released,
}

/// An upstream that follows `plan`.
pub fn start(plan: &Plan, tls: Option<Arc<ServerConfig>>, steps: Sender<Step>) -> TestUpstream {
    let plan = Arc::clone(plan);
    let serve = site(|_, _| Ok(()));
    TestUpstream::plain(move |conn, seen| {
        let planned = plan.lock().unwrap().take();
        match planned {
            None => {
                if let Some(conn) = with_tls(conn, &tls) {
                    serve(conn, seen);
                }
            }
            Some((stage, fault, go)) => {
                // With TLS this is before the handshake. A stall there has a deadline of its own, which another
                // test waits for.
                let conn = match (stage, fault) {
                    (Stage::BeforeHead, Fault::Reset | Fault::Flood | Fault::Garbage | Fault::HalfClose) => {
                        conn
                    }
                    _ => answer_up_to(with_tls(conn, &tls).unwrap(), stage),
                };
                go.recv().unwrap();
                let held = commit(conn, fault);
                steps.send(Step::Done).unwrap();
                if let Some(mut held) = held {
                    held.read_to_close().unwrap();
                }
                steps.send(Step::Released).unwrap();
            }
        }
    })
}

fn with_tls(conn: Conn, tls: &Option<Arc<ServerConfig>>) -> Option<Conn> {
    match tls {
        Some(config) => conn.into_tls_server(config).ok(),
        None => Some(conn),
    }
}

/// Whether the answer's head is out at this stage.
pub fn has_answered(stage: Stage) -> bool {
    !matches!(stage, Stage::BeforeHead | Stage::InHead)
}

fn answer_up_to(mut conn: Conn, stage: Stage) -> Conn {
    conn.read_head().unwrap().expect("a request");
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    let half = "x".repeat(500);
    let sent = match stage {
        Stage::BeforeHead => String::new(),
        Stage::InHead => head[..14].to_owned(),
        Stage::BeforeBody => head.to_owned(),
        // The same, but for a request that is itself not complete.
        Stage::InBody | Stage::InAnswer => head.to_owned() + &half,
        Stage::Idle => head.to_owned() + &half + &half,
    };
    conn.send(sent).unwrap();
    conn
}
