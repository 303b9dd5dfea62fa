//! The process group of the command and the terminal it may share with the caller.
//!
//! The command always has a process group of its own: in the caller's, `kill(0, …)` would reach the other
//! members, which live on the host. Where one of the standard streams is the controlling terminal, the command
//! stays in the caller's session, and both groups act as one job on it (`crate::job`). Otherwise it gets a session of
//! its own, and no terminal can be its.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg, sigprocmask};
use nix::sys::stat::fstat;
use nix::unistd::{Pid, getpgrp, setpgid, setsid, tcgetpgrp, tcsetpgrp};

use super::failure::{During, Failure, Step};
use crate::sys;

/// How the command stands to the caller's terminal.
#[derive(Debug, Clone, Copy)]
pub enum Session {
    /// None is shared.
    Own,
    /// One is.
    Terminal {
        /// A standard stream that is it.
        stream: BorrowedFd<'static>,
        /// Whether the command has it from the start, and not only when it asks for it: a program in the background
        /// shows no progress, but somebody at the other end of a pipe, a pager, may need it more.
        at_once: bool,
    },
}

impl Session {
    /// What the standard streams of this process say.
    pub fn of_caller() -> Self {
        // The call fails on anything but the controlling terminal.
        let find = |stream| tcgetpgrp(stream).ok().map(|group| (stream, group));
        match sys::STANDARD_STREAMS.into_iter().find_map(find) {
            None => Self::Own,
            Some((stream, group)) => {
                let [input, output, _] = sys::STANDARD_STREAMS;
                let at_once = group == getpgrp() && !is_pipe(input) && !is_pipe(output);
                Self::Terminal { stream, at_once }
            }
        }
    }

    /// Moves the calling process, the command to be, into its group.
    pub fn enter(self) -> Result<(), Failure> {
        match self {
            Self::Own => setsid().during(Step::Session, "setsid").map(drop),
            Self::Terminal { at_once, .. } => {
                let me = Pid::from_raw(0);
                setpgid(me, me).during(Step::Session, "setpgid")?;
                if at_once {
                    self.give_terminal(nix::unistd::getpid());
                }
                Ok(())
            }
        }
    }

    /// Whether a terminal is shared.
    pub fn has_terminal(self) -> bool {
        matches!(self, Self::Terminal { .. })
    }

    /// Whether the command has it from the start.
    pub fn lends_at_once(self) -> bool {
        matches!(self, Self::Terminal { at_once: true, .. })
    }

    /// Makes `group` the terminal's foreground group. That it is refused is no failure of ours: the terminal
    /// may be gone.
    pub fn give_terminal(self, group: Pid) {
        let Self::Terminal { stream, .. } = self else { return };
        // From a background group the call would stop us.
        let mask = SigSet::from(Signal::SIGTTOU);
        let mut before = SigSet::empty();
        let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), Some(&mut before));
        let _ = tcsetpgrp(stream, group);
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    }

    /// Whether this process's group is the terminal's foreground group now.
    pub fn in_foreground(self) -> bool {
        matches!(self, Self::Terminal { stream, .. } if tcgetpgrp(stream) == Ok(getpgrp()))
    }

    /// Whether the terminal's foreground group is one of the sandbox; to be asked by its pid 1, in whose
    /// namespace a group outside reads as 0 (`tiocgpgrp`).
    pub fn inside_has_terminal(self) -> bool {
        matches!(self, Self::Terminal { stream, .. } if tcgetpgrp(stream).is_ok_and(|group| group.as_raw() > 0))
    }

    /// Takes the terminal back from a sandbox that has ended, and from nobody else.
    pub fn take_terminal_back(self) {
        let Self::Terminal { stream, .. } = self else { return };
        let Ok(group) = tcgetpgrp(stream) else { return };
        if group != getpgrp() && killpg(group, None) == Err(Errno::ESRCH) {
            self.give_terminal(getpgrp());
        }
    }
}

fn is_pipe(stream: BorrowedFd<'_>) -> bool {
    fstat(stream).is_ok_and(|found| {
        let kind = found.st_mode & libc::S_IFMT;
        kind == libc::S_IFIFO || kind == libc::S_IFSOCK
    })
}
