//! What a run ends with, as an exit status.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

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

/// The same for `main`. Statuses are 0 to 255.
pub fn code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(OWN_FAILURE as u8))
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
