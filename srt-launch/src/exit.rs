//! What a run ends with, as an exit status.

use std::process::ExitCode;

use nix::sys::wait::WaitStatus;

/// We failed: the command was not started, or did not run as asked.
pub const OWN_FAILURE: i32 = 125;
/// The command was found but cannot be executed.
pub const NOT_EXECUTABLE: i32 = 126;
/// The command was not found.
pub const NOT_FOUND: i32 = 127;

/// The exit status of a process that ended: its own, or 128 and the number of the signal that ended it, as
/// shells have it. `None` while it goes on.
pub fn status(wait: WaitStatus) -> Option<i32> {
    match wait {
        WaitStatus::Exited(_, code) => Some(code),
        WaitStatus::Signaled(_, signal, _) => Some(128 + signal as i32),
        _ => None,
    }
}

/// The same for `main`. Statuses are 0 to 255.
pub fn code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(OWN_FAILURE as u8))
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::Signal;
    use nix::unistd::Pid;

    use super::*;

    #[test]
    fn as_shells_have_it() {
        let pid = Pid::from_raw(7);
        for (wait, want) in [
            (WaitStatus::Exited(pid, 0), Some(0)),
            (WaitStatus::Exited(pid, 255), Some(255)),
            (WaitStatus::Signaled(pid, Signal::SIGKILL, false), Some(137)),
            (WaitStatus::Signaled(pid, Signal::SIGSEGV, true), Some(139)),
            (WaitStatus::Stopped(pid, Signal::SIGTSTP), None),
            (WaitStatus::Continued(pid), None),
            (WaitStatus::StillAlive, None),
        ] {
            assert_eq!(status(wait), want, "{wait:?}");
        }
    }
}
