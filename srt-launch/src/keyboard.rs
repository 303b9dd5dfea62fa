//! What is typed at the terminal while the command's group has it: a process of pid 1's in that group reads which signals
//! the terminal sends it. Pid 1 cannot do so itself: a pid namespace whose first process is a member of another one's group
//! never ends, as that group's number is never free.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, pipe2, setpgid};

use crate::apply::{During, Failure, Step};
use crate::exit;
use crate::job::is_typed;
use crate::limits::TYPED_PATIENCE;
use crate::sys;

/// Signals that keys send.
pub const KEYS: [Signal; 3] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP];

/// Before which the command waits for that process to be there.
#[derive(Debug)]
pub struct Gate {
    inside: File,
    outside: File,
}

impl Gate {
    /// Makes a closed one.
    pub fn make() -> Result<Self, Failure> {
        let (inside, outside) = pipe2(OFlag::O_CLOEXEC).during(Step::Session, "pipe2")?;
        Ok(Self { inside: inside.into(), outside: outside.into() })
    }

    /// In the command to be: waits until it is open.
    pub fn wait(&self) {
        let _ = (&self.inside).read(&mut [0]);
    }

    fn open(&self) {
        let _ = (&self.outside).write(&[0]);
    }
}

/// Where that process tells of them, a byte each.
#[derive(Debug)]
pub struct Keyboard(File);

impl Keyboard {
    /// Starts the process, and lets the command go on. All signals must be blocked.
    pub fn of(command: Pid, gate: Gate) -> Result<Self, Failure> {
        let (typed, told) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).during(Step::Session, "pipe2")?;
        // Whoever of both is first makes the group.
        let _ = setpgid(command, command);
        sys::clone_child(CloneFlags::empty(), || {
            let joined = setpgid(Pid::from_raw(0), command);
            gate.open();
            sys::close_all_but_here(&[told.as_raw_fd()]);
            if joined.is_ok() {
                tell(&File::from(told));
            }
            exit::OWN_FAILURE
        })
        .during(Step::Session, "clone")?;
        Ok(Self(typed.into()))
    }

    /// Readable when something was typed, or nobody is left to tell.
    pub fn source(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// What was typed. `None` when nobody is left to tell.
    pub fn read(&self) -> Option<Vec<i32>> {
        let mut bytes = [0; 64];
        match (&self.0).read(&mut bytes) {
            Ok(0) => None,
            Ok(length) => Some(bytes[..length].iter().map(|byte| i32::from(*byte)).collect()),
            Err(_) => Some(Vec::new()),
        }
    }

    /// Waits a moment for what was typed. The terminal sends to a whole group at once, but that the command has stopped or
    /// died of it may be known before.
    pub fn wait(&self) {
        let mut fds = [PollFd::new(self.source(), PollFlags::POLLIN)];
        let patience = PollTimeout::try_from(TYPED_PATIENCE).unwrap_or(PollTimeout::ZERO);
        let _ = poll(&mut fds, patience);
    }
}

fn tell(mut told: &File) {
    let Ok(signals) = SignalFd::with_flags(&KEYS.into_iter().collect::<SigSet>(), SfdFlags::SFD_CLOEXEC)
    else {
        return;
    };
    while let Ok(Some(info)) = signals.read_signal() {
        // A command that has filled the pipe by any means loses its own keys.
        if is_typed(&info) && told.write_all(&[info.ssi_signo as u8]).is_err() {
            return;
        }
    }
}
