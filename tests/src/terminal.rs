//! Programs on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::sys::start_on_terminal;

const DEADLINE: Duration = Duration::from_secs(20);

/// Keys that send signals.
pub const CTRL_C: &str = "\x03";
/// See [`CTRL_C`].
pub const CTRL_Z: &str = "\x1a";

/// A program in Python that deals with Ctrl-C. No shell: one that is just about to read deals with it afterwards.
pub const COPING: &str = "
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
os.write(1, b'up')
signal.sigwait({signal.SIGINT})
os.write(1, b'caught')
os.read(0, 1)
os._exit(3)
";

/// A program on a terminal, and somebody who sits at it.
pub struct Terminal {
    /// The program.
    pub child: Child,
    /// The other end of its terminal.
    pub keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
    shown: String,
}

impl Terminal {
    /// Starts a program on a terminal of its own.
    pub fn start(mut command: Command) -> Self {
        let (child, keyboard) = start_on_terminal(&mut command);
        // Its own copies of the terminal's other end.
        drop(command);
        let mut output = keyboard.try_clone().unwrap();
        let (send, screen) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 1024];
            // An error is the end: nobody holds the other end any more.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                if send.send(bytes[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, screen, seen: String::new(), shown: String::new() }
    }

    /// Types.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen shows this, after whatever was waited for before.
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            match self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => {
                    self.seen.push_str(&String::from_utf8_lossy(&bytes));
                    self.shown.push_str(&String::from_utf8_lossy(&bytes));
                }
                Err(why @ (RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) => {
                    let _ = self.child.kill();
                    panic!("{text:?} does not come ({why}): {:?}, {:?}", self.seen, self.child.wait());
                }
            }
        }
    }

    /// All that the screen has shown, as far as it was waited for.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The exit status.
    pub fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}
