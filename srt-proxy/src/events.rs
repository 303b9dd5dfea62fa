//! Where events go: JSON lines on a descriptor of the host's choice, packets to the launcher of an attached sandbox.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};

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
    lost: Arc<AtomicU64>,
}

impl Lines {
    fn start(mut file: File) -> Self {
        let (queue, lines) = sync_channel::<Vec<u8>>(limits::EVENTS_QUEUED);
        let ours = Self { queue, lost: Arc::default() };
        let lost = Arc::clone(&ours.lost);
        std::thread::spawn(move || {
            for line in lines {
                let missed = lost.swap(0, Ordering::Relaxed);
                let note = match missed {
                    0 => String::new(),
                    _ => format!("{{\"event\":\"lost\",\"count\":{missed}}}\n"),
                };
                if write_all(&mut file, &line).and_then(|()| write_all(&mut file, note.as_bytes())).is_err() {
                    return;
                }
            }
        });
        ours
    }

    fn send(&self, event: &Event) {
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        if self.queue.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
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
