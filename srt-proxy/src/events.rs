//! Where events go: one JSON line each, on a descriptor of the host's choice.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srt_shared::event::Event;

use crate::fds::{FdArg, FdError, adopt_file};
use crate::limits;

/// Takes events from all connections; a reader that does not keep up loses events, never holds up requests.
#[derive(Debug, Clone, Default)]
pub struct Events {
    queue: Option<SyncSender<Vec<u8>>>,
    lost: Arc<AtomicU64>,
}

impl Events {
    /// No events.
    pub fn off() -> Self {
        Self::default()
    }

    /// Events to an inherited descriptor, written by a thread of its own: the descriptor may be a file or a pipe
    /// that blocks.
    pub fn to_fd(arg: FdArg) -> Result<Self, FdError> {
        let file = adopt_file(arg)?;
        let (queue, lines) = sync_channel::<Vec<u8>>(limits::EVENTS_QUEUED);
        let events = Self { queue: Some(queue), lost: Arc::default() };
        let lost = Arc::clone(&events.lost);
        std::thread::spawn(move || {
            let mut file = file;
            for line in lines {
                if write_line(&mut file, &line).is_err() {
                    return;
                }
                let missed = lost.swap(0, Ordering::Relaxed);
                if missed > 0 {
                    let note = format!("{{\"event\":\"lost\",\"count\":{missed}}}\n");
                    if write_line(&mut file, note.as_bytes()).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(events)
    }

    /// Whether anybody reads events; building one is not free.
    pub fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Writes one event, or counts it as lost.
    pub fn send(&self, event: &Event) {
        let Some(queue) = &self.queue else { return };
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        if queue.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The descriptor may be shared with somebody who made it non-blocking.
fn write_line(file: &mut File, mut line: &[u8]) -> io::Result<()> {
    while !line.is_empty() {
        match file.write(line) {
            Ok(n) => line = &line[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
                poll(&mut fds, PollTimeout::NONE)?;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
