//! Where events go: JSON lines on a descriptor of the host's choice, packets to the launcher of an attached sandbox.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError, atomic::AtomicU64, atomic::Ordering};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srt_shared::attach::Answer;
use srt_shared::event::{Event, EventKind};

use crate::fds::{FdArg, FdError, PacketSocket, adopt_writable};
use crate::limits;

/// Takes events from all connections of a session. A reader that does not keep up loses events, never holds up
/// requests.
#[derive(Debug, Clone, Default)]
pub struct Events {
    lines: Option<Lines>,
    session: Option<AttachedSession>,
}

/// The launcher of an attached sandbox is told of its refusals.
#[derive(Debug, Clone)]
struct AttachedSession {
    socket: PacketSocket,
    name: Arc<str>,
}

impl Events {
    /// No events.
    pub fn off() -> Self {
        Self::default()
    }

    /// Events to an inherited descriptor, one JSON line each.
    pub fn to_fd(arg: FdArg) -> Result<Self, FdError> {
        Ok(Self { lines: Some(Lines::start(adopt_writable(arg)?)), session: None })
    }

    /// The same, and refusals to the launcher of an attached sandbox.
    pub fn with_session(&self, socket: PacketSocket, name: &str) -> Self {
        Self { lines: self.lines.clone(), session: Some(AttachedSession { socket, name: name.into() }) }
    }

    /// The name of the attached sandbox.
    pub fn session(&self) -> Option<&str> {
        self.session.as_ref().map(|session| &*session.name)
    }

    /// Whether anybody reads events of this kind; building one is not free.
    pub fn wants(&self, kind: EventKind) -> bool {
        self.lines.is_some() || (self.session.is_some() && kind == EventKind::Refused)
    }

    /// Waits until everything sent so far is written: what a process has queued dies with it. `most` at the longest,
    /// for a reader that does not read.
    pub fn flush(&self, most: Duration) {
        if let Some(lines) = &self.lines {
            lines.progress.wait(most);
        }
    }

    /// Writes one event, or loses it.
    pub fn send(&self, event: Event) {
        if let Some(lines) = &self.lines {
            lines.send(&event);
        }
        if let Some(session) = &self.session
            && event.event == EventKind::Refused
            && let Ok(packet) = Answer::Event(Box::new(event)).encode()
        {
            // A launcher that does not read loses the packet.
            let _ = session.socket.send(&packet);
        }
    }
}

/// Lines on a descriptor, written by a thread of their own: it may be a file or a pipe that blocks.
#[derive(Debug, Clone)]
struct Lines {
    queue: SyncSender<Vec<u8>>,
    progress: Arc<Progress>,
}

/// How far the lines have come.
#[derive(Debug, Default)]
struct Progress {
    lost: AtomicU64,
    queued: AtomicU64,
    written: Mutex<u64>,
    more_written: Condvar,
}

impl Progress {
    fn wait(&self, most: Duration) {
        let queued = self.queued.load(Ordering::Acquire);
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        // However it ends: there is nothing more to be done for the lines.
        let _ = self.more_written.wait_timeout_while(written, most, |written| *written < queued);
    }

    fn advance(&self, to: impl FnOnce(u64) -> u64) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        *written = to(*written);
        self.more_written.notify_all();
    }
}

impl Lines {
    fn start(mut file: File) -> Self {
        let (queue, lines) = sync_channel::<Vec<u8>>(limits::EVENTS_QUEUED);
        let ours = Self { queue, progress: Arc::default() };
        let progress = Arc::clone(&ours.progress);
        std::thread::spawn(move || {
            for line in lines {
                let missed = progress.lost.swap(0, Ordering::Relaxed);
                let note = match missed {
                    0 => String::new(),
                    _ => format!("{{\"event\":\"lost\",\"count\":{missed}}}\n"),
                };
                if write_all(&mut file, &line).and_then(|()| write_all(&mut file, note.as_bytes())).is_err() {
                    break;
                }
                progress.advance(|written| written + 1);
            }
            // Nothing will be written any more, and nobody must wait for it.
            progress.advance(|_| u64::MAX);
        });
        ours
    }

    fn send(&self, event: &Event) {
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        match self.queue.try_send(line) {
            Ok(()) => self.progress.queued.fetch_add(1, Ordering::Release),
            Err(_) => self.progress.lost.fetch_add(1, Ordering::Relaxed),
        };
    }
}

/// The descriptor may be shared with somebody who made it non-blocking.
fn write_all(file: &mut File, mut line: &[u8]) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read, pipe};
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use srt_shared::event::{IngressKind, Timestamp};

    use super::*;

    fn events() -> (Events, PipeReader) {
        let (reader, writer) = pipe().unwrap();
        let lines = Lines::start(File::from(OwnedFd::from(writer)));
        (Events { lines: Some(lines), session: None }, reader)
    }

    fn event(path: String) -> Event {
        Event {
            time: Timestamp::now(),
            event: EventKind::Refused,
            session: None,
            ingress: IngressKind::Http,
            host: String::new(),
            port: 0,
            method: None,
            path: Some(path),
            code: None,
            status: None,
            rule: None,
            reason: None,
            bytes_in: 0,
            bytes_out: 0,
            ms: 0.0,
        }
    }

    #[test]
    fn what_was_flushed_is_written() {
        let (events, mut reader) = events();
        for round in 0..20 {
            for at in 0..10 {
                events.send(event(format!("/{round}/{at}")));
            }
            events.flush(Duration::from_secs(60));
            // All of it is in the pipe: one read finds it.
            let mut buffer = vec![0; 1 << 16];
            let n = reader.read(&mut buffer).unwrap();
            assert_eq!(buffer[..n].iter().filter(|byte| **byte == b'\n').count(), 10, "round {round}");
        }
    }

    #[test]
    fn a_reader_that_does_not_read_or_is_gone_holds_nobody_up_for_long() {
        let (events, reader) = events();
        for _ in 0..200 {
            events.send(event("x".repeat(1000)));
        }
        events.flush(Duration::from_millis(10));
        drop(reader);
        let begun = Instant::now();
        events.flush(Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(50));
    }
}
