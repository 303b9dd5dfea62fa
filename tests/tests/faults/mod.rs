//! What can go wrong with a peer, and when.

pub mod client;
pub mod decider;
pub mod upstream;

use std::io::Write;
use std::time::Duration;

use srt_tests::proxy::{Conn, PATIENCE};

/// What a peer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It ends the connection with a reset.
    Reset,
    /// It neither sends nor reads, and stays.
    Stall,
    /// It sends without end what fits to what it sent so far.
    Flood,
    /// It sends bytes that mean nothing; with TLS, beneath it.
    Garbage,
    /// It ends its sending side and goes on reading.
    HalfClose,
}

/// When it does so. For an upstream and a decider these are stages of their answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before the first byte of its message.
    BeforeHead,
    /// Within the message's head.
    InHead,
    /// After the head.
    BeforeBody,
    /// Within the body.
    InBody,
    /// While the answer to a request is under way.
    InAnswer,
    /// After a complete exchange.
    Idle,
}

/// All faults.
pub const FAULTS: [Fault; 5] = [Fault::Reset, Fault::Stall, Fault::Flood, Fault::Garbage, Fault::HalfClose];

/// All stages.
pub const STAGES: [Stage; 6] =
    [Stage::BeforeHead, Stage::InHead, Stage::BeforeBody, Stage::InBody, Stage::InAnswer, Stage::Idle];

/// A flood is over when the other side has taken nothing for so long: it is held back, as it should be.
const HELD_BACK: Duration = Duration::from_millis(100);

/// More than any limit that a flood runs into.
const FLOOD: usize = 8 << 20;

/// Does it; gives the connection back if there still is one.
pub fn commit(mut conn: Conn, fault: Fault) -> Option<Conn> {
    match fault {
        Fault::Reset => {
            conn.reset();
            return None;
        }
        Fault::Stall => {}
        Fault::Flood => {
            conn.set_patience(HELD_BACK).unwrap();
            flood(&mut conn);
            conn.set_patience(PATIENCE).unwrap();
        }
        // The proxy may have seen enough before the end of either.
        Fault::Garbage => drop(conn.send_raw(&garbage())),
        Fault::HalfClose => drop(conn.end_sending()),
    }
    Some(conn)
}

/// Writes lines until the other side takes no more. They are no end of a head, nor of anything else.
fn flood(to: &mut impl Write) {
    let lines = "x: y\r\n".repeat(8 * 1024);
    let mut written = 0;
    while written < FLOOD {
        match to.write(lines.as_bytes()) {
            Ok(n) => written += n,
            // Held back, or cut off.
            Err(_) => return,
        }
    }
}

/// The same bytes each time, with an end of a head at their end.
fn garbage() -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    let mut bytes: Vec<u8> = (0..128 * 1024).map(|_| next()).collect();
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}
