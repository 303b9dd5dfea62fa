//! What a run ends with, as an exit status.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use nix::sys::prctl;
use nix::sys::signal::{Signal, raise};

use crate::sys;

/// We failed: the command was not started, or did not run as asked.
pub const OWN_FAILURE: i32 = 125;
/// The command was found but cannot be executed.
pub const NOT_EXECUTABLE: i32 = 126;
/// The command was not found.
pub const NOT_FOUND: i32 = 127;

/// The exit status of a process that ended: its own, or 128 and the number of the signal that ended it, as
/// shells have it. `None` while it goes on.
pub fn status(wait: ExitStatus) -> Option<i32> {
    wait.code().or_else(|| wait.signal().map(|signal| 128 + signal))
}

/// How a program of ours ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this exit status, 0 to 255.
    Status(i32),
    /// As the command did, of a key that was pressed at the terminal. A shell goes on with its script after a program
    /// that has dealt with Ctrl-C and exited, so the status would not do.
    Interrupted(Signal),
}

impl End {
    /// As a shell has it.
    pub fn status(self) -> i32 {
        match self {
            Self::Status(status) => status,
            Self::Interrupted(signal) => 128 + signal as i32,
        }
    }
}

impl From<i32> for End {
    fn from(status: i32) -> Self {
        Self::Status(status)
    }
}

/// The same for `main`, which may find itself ended by it.
pub fn code(end: impl Into<End>) -> ExitCode {
    let end = end.into();
    if let End::Interrupted(signal) = end {
        // What the launcher holds in memory is for no core dump, which Ctrl-\ would leave.
        let _ = prctl::set_dumpable(false);
        let _ = sys::restore_default(signal).and_then(|()| raise(signal));
    }
    ExitCode::from(u8::try_from(end.status()).unwrap_or(OWN_FAILURE as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_shells_have_it() {
        for (wait, want) in [
            (0, Some(0)),
            (0xff00, Some(255)),
            (libc::SIGKILL, Some(137)),
            // With a core dump.
            (0x80 | libc::SIGSEGV, Some(139)),
            (64, Some(192)),
            (libc::SIGTSTP << 8 | 0x7f, None),
            // Continued.
            (0xffff, None),
        ] {
            assert_eq!(status(ExitStatus::from_raw(wait)), want, "{wait:x}");
        }
    }
}
