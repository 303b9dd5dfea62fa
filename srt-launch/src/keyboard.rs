//! What is typed at the terminal while the command's group has it: a process of pid 1's in that group reads which signals
//! the terminal sends it. Pid 1 cannot do so itself: a pid namespace whose first process is a member of another one's group
//! never ends, as that group's number is never free.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, pipe2, setpgid};

use crate::apply::{During, Failure, Step};
use crate::exit;
use crate::job::is_typed;
use crate::limits::KEYBOARD_PATIENCE;
use crate::sys;

/// Signals that keys send.
const KEYS: [Signal; 3] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP];

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

/// That process, as pid 1 sees it.
#[derive(Debug)]
pub struct Keyboard {
    /// A byte for each signal, and [`ANSWER`].
    typed: File,
    questions: File,
}

/// That all which was typed has been told.
const ANSWER: u8 = 0;

impl Keyboard {
    /// Starts the process, and lets the command go on. All signals must be blocked.
    pub fn of(command: Pid, gate: Gate) -> Result<Self, Failure> {
        let pipe = || pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).during(Step::Session, "pipe2");
        let ((typed, told), (asked, questions)) = (pipe()?, pipe()?);
        // Whoever of both is first makes the group.
        let _ = setpgid(command, command);
        sys::clone_child(CloneFlags::empty(), || {
            let joined = setpgid(Pid::from_raw(0), command);
            gate.open();
            sys::close_all_but_here(&[told.as_raw_fd(), asked.as_raw_fd()]);
            if joined.is_ok() {
                tell(&File::from(told), &File::from(asked));
            }
            exit::OWN_FAILURE
        })
        .during(Step::Session, "clone")?;
        Ok(Self { typed: typed.into(), questions: questions.into() })
    }

    /// Readable when something was typed, or nobody is left to tell.
    pub fn source(&self) -> BorrowedFd<'_> {
        self.typed.as_fd()
    }

    /// What was typed. `None` when nobody is left to tell.
    pub fn read(&self) -> Option<Vec<i32>> {
        self.read_bytes().map(signals)
    }

    /// All that was typed until now, to which the command may have stopped or ended, which may be known before.
    pub fn ask(&self) -> Vec<i32> {
        let mut bytes = Vec::new();
        if (&self.questions).write_all(b"?").is_ok() {
            let deadline = Instant::now() + KEYBOARD_PATIENCE;
            while !bytes.contains(&ANSWER) {
                let left = deadline.saturating_duration_since(Instant::now());
                let patience = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
                let mut fds = [PollFd::new(self.source(), PollFlags::POLLIN)];
                // The command may have stopped that process, or killed it.
                if poll(&mut fds, patience) == Ok(0) {
                    break;
                }
                let Some(more) = self.read_bytes() else { break };
                bytes.extend(more);
            }
        }
        signals(bytes)
    }

    fn read_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = [0; 64];
        match (&self.typed).read(&mut bytes) {
            Ok(0) => None,
            Ok(length) => Some(bytes[..length].to_vec()),
            Err(_) => Some(Vec::new()),
        }
    }
}

fn signals(bytes: Vec<u8>) -> Vec<i32> {
    bytes.into_iter().filter(|byte| *byte != ANSWER).map(i32::from).collect()
}

fn tell(mut told: &File, mut asked: &File) {
    let keys: SigSet = KEYS.into_iter().collect();
    let Ok(signals) = SignalFd::with_flags(&keys, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK) else {
        return;
    };
    loop {
        let mut fds = [signals.as_fd(), asked.as_fd()].map(|source| PollFd::new(source, PollFlags::POLLIN));
        let _ = poll(&mut fds, PollTimeout::NONE);
        let mut bytes = Vec::new();
        let mut questions = [0; 8];
        let question = match asked.read(&mut questions) {
            // Pid 1 is dead.
            Ok(0) => return,
            result => result.is_ok(),
        };
        while let Ok(Some(info)) = signals.read_signal() {
            if is_typed(&info) {
                bytes.push(info.ssi_signo as u8);
            }
        }
        if question {
            bytes.push(ANSWER);
        }
        if told.write_all(&bytes).is_err() {
            return;
        }
    }
}
