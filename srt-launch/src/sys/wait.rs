//! Waiting for processes. `nix` has names for signals, and an error for a process that a real-time signal ended, though
//! it has reaped it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::errno::Errno;
use nix::sys::wait::WaitPidFlag;
use nix::unistd::Pid;

/// `waitpid`, for any child without `pid`. `None` where `WNOHANG` finds nothing new.
pub fn wait(pid: Option<Pid>, options: WaitPidFlag) -> nix::Result<Option<(Pid, ExitStatus)>> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let found = unsafe { libc::waitpid(pid.map_or(-1, Pid::as_raw), &raw mut status, options.bits()) };
    let found = Errno::result(found)?;
    Ok((found != 0).then(|| (Pid::from_raw(found), ExitStatus::from_raw(status))))
}
