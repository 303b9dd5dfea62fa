//! The launcher while the sandbox runs: passes signals on, keeps the terminal's manners, waits for the end.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, SigmaskHow, kill, raise, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::apply::{During, Failure, Session, Step};
use crate::channel::{Order, Outside, Report};
use crate::exit;
use crate::limits::GRACE;
use crate::sys::{self, Child};

/// Signals that are passed on. The first four ask the command to end.
const FORWARDED: [Signal; 6] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Signals of this process while a sandbox is built and runs. They are read, not handled, so that none is lost
/// between the steps; when this goes they are as before.
pub struct Signals {
    fd: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Takes over what is to be passed on. A signal that was ignored stays so, for the command too: `nohup`.
    pub fn take() -> Result<Self, Failure> {
        let mask: SigSet = FORWARDED.into_iter().filter(|signal| !sys::is_ignored(*signal)).collect();
        let fd = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .during(Step::Launch, "signalfd")?;
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), Some(&mut before))
            .during(Step::Launch, "sigprocmask")?;
        Ok(Self { fd, before })
    }

    /// The mask this process was given, which is the command's.
    pub fn before(&self) -> &SigSet {
        &self.before
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None);
    }
}

/// Waits for the sandbox to end and returns its exit status. `guard` becomes readable when the process that
/// keeps the placeholders has ended, without which denies no longer hold.
pub fn watch(
    child: &Child,
    channel: &mut Outside,
    signals: &Signals,
    session: Session,
    guard: Option<BorrowedFd<'_>>,
    warn: &mut dyn FnMut(&str),
) -> Result<i32, Failure> {
    let mut failure = None;
    let mut deadline: Option<Instant> = None;
    let mut reporting = true;
    loop {
        let mut fds = vec![
            PollFd::new(child.pidfd.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.fd.as_fd(), PollFlags::POLLIN),
        ];
        let reports = channel.reports();
        if reporting {
            fds.push(PollFd::new(reports.as_fd(), PollFlags::POLLIN));
        }
        if let Some(guard) = guard {
            fds.push(PollFd::new(guard, PollFlags::POLLIN));
        }
        let timeout = match deadline {
            None => PollTimeout::NONE,
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                // One more millisecond, so as not to wake up just before.
                PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
            }
        };
        let _ = poll(&mut fds, timeout);
    }
}
