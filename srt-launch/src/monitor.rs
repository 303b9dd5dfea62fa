//! The launcher while the sandbox runs: passes signals on, keeps the terminal's manners, waits for the end.

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, raise, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::sys::wait::WaitPidFlag;

use crate::apply::{During, Failure, Session, Step, set_position};
use crate::channel::{Order, Outside, Report};
use crate::exit::{self, End};
use crate::job::{self, Job, Verdict};
use crate::limits::GRACE;
use crate::placeholders::Keeper;
use crate::proxy::News;
use crate::sys::{self, Child};

/// Signals that are passed on.
const FORWARDED: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Signals of the terminal.
const OF_TERMINAL: [Signal; 5] =
    [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU, Signal::SIGWINCH, Signal::SIGCONT];

/// Signals of this process while a sandbox is built and runs. They are read, not handled, so that none is lost
/// between the steps; when this goes they are as before.
pub struct Signals {
    fd: SignalFd,
    before: Given,
}

/// What the caller gave this process of signals, and the command is given.
pub struct Given {
    mask: SigSet,
    /// Then nobody would learn of the end of a child.
    ignores_children: bool,
}

impl Given {
    /// Makes it so in the calling process.
    pub fn restore(&self) -> nix::Result<()> {
        if self.ignores_children {
            sys::ignore(Signal::SIGCHLD)?;
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None)
    }
}

impl Signals {
    /// Takes over what is to be passed on. A signal that was ignored stays so, for the command too: `nohup`.
    pub fn take(session: Session) -> Result<Self, Failure> {
        let of_terminal = OF_TERMINAL.into_iter().filter(|_| session.has_terminal());
        let mask: SigSet =
            FORWARDED.into_iter().chain(of_terminal).filter(|signal| !sys::is_ignored(*signal)).collect();
        let fd = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .during(Step::Launch, "signalfd")?;
        let mut before = Given { mask: SigSet::empty(), ignores_children: sys::is_ignored(Signal::SIGCHLD) };
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), Some(&mut before.mask))
            .during(Step::Launch, "sigprocmask")?;
        sys::restore_default(Signal::SIGCHLD).during(Step::Launch, "signal")?;
        Ok(Self { fd, before })
    }

    /// The next one that has come.
    fn next(&self) -> Option<siginfo> {
        self.fd.read_signal().ok().flatten()
    }

    /// Forgets those that this process has sent its own group: they would end it once they are no longer blocked.
    fn forget_own(&self) {
        let others: Vec<_> = std::iter::from_fn(|| self.next()).filter(|info| !job::is_own(info)).collect();
        for signal in others.iter().filter_map(|info| Signal::try_from(info.ssi_signo as i32).ok()) {
            let _ = raise(signal);
        }
    }

    /// What this process was given.
    pub fn before(&self) -> &Given {
        &self.before
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.before.restore();
    }
}

/// Waits for the sandbox to end and says how it did. Without the keeper of its placeholders denies no longer
/// hold, so it must not outlive that one.
pub fn watch(
    child: &Child,
    channel: &mut Outside,
    signals: &Signals,
    mut job: Job,
    mut keeper: Option<&Keeper>,
    news: &mut News,
    warn: &mut dyn FnMut(&str),
) -> Result<End, Failure> {
    let mut failure = None;
    let mut killed = false;
    let mut deadline: Option<Instant> = None;
    loop {
        let ready = wait(child, channel, signals, keeper, news, deadline);
        // Before reports: who stops with the command must know whether it was continued meanwhile.
        if ready.signals || ready.reports {
            while let Some(info) = signals.next() {
                let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else { continue };
                match job.judge(signal, &info) {
                    Verdict::Drop => continue,
                    Verdict::Pass => {}
                    Verdict::End => {
                        deadline.get_or_insert_with(|| Instant::now() + GRACE);
                    }
                }
                // One that is lost is followed by the end of the patience, if it was to end the command.
                let _ = channel.send(Order::Signal(signal));
            }
        }
        if ready.reports {
            for report in channel.receive() {
                match report {
                    Report::Stopped { signal, foreground } => {
                        job.command_stopped(signal, foreground, channel)
                    }
                    Report::Connected => news.begin(),
                    other => note(other, &mut job, &mut failure, warn),
                }
            }
        }
        if ready.news {
            news.read();
        }
        if ready.keeper && keeper.is_some_and(Keeper::is_done) {
            keeper = None;
        } else if ready.keeper {
            failure = Err::<(), _>(Errno::ECHILD)
                .during(Step::Placeholders, "the process that keeps them ended")
                .err();
            killed = kill_all(child);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            killed = kill_all(child);
            deadline = None;
        }
        if ready.ended {
            channel.receive_rest().into_iter().for_each(|report| note(report, &mut job, &mut failure, warn));
            let status =
                sys::wait(Some(child.pid), WaitPidFlag::empty()).ok().flatten().map(|(_, status)| status);
            if let Some(signal) = status.and_then(|status| status.signal())
                && !killed
            {
                failure.get_or_insert_with(|| Failure::killed(signal));
            }
            signals.forget_own();
            let end = job.end(status.and_then(exit::status).unwrap_or(exit::OWN_FAILURE));
            return failure.map_or(Ok(end), Err);
        }
    }
}

/// Takes note of a report. That the command was stopped counts for nothing once it has ended.
fn note(report: Report, job: &mut Job, failure: &mut Option<Failure>, warn: &mut dyn FnMut(&str)) {
    match report {
        Report::Failed(why) => *failure = Some(why),
        Report::Warning(text) => warn(&text),
        Report::Position(stream, position) => set_position(stream, position),
        Report::Typed(signal) => job.typed_inside(signal),
        Report::Killed(signal) => job.command_killed(signal),
        Report::Stopped { .. } | Report::Connected => {}
    }
}

#[derive(Default)]
struct Ready {
    ended: bool,
    signals: bool,
    reports: bool,
    keeper: bool,
    news: bool,
}

fn wait(
    child: &Child,
    channel: &Outside,
    signals: &Signals,
    keeper: Option<&Keeper>,
    news: &News,
    deadline: Option<Instant>,
) -> Ready {
    let timeout = deadline.map_or(PollTimeout::NONE, |deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        // One more millisecond, so as not to wake up just before.
        PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
    });
    let (keeper, news) = (keeper.map(Keeper::ended), news.source());
    let ended = child.pidfd.as_fd();
    // What is missing watches what is watched anyway.
    let sources =
        [ended, signals.fd.as_fd(), channel.reports(), keeper.unwrap_or(ended), news.unwrap_or(ended)];
    let mut fds = sources.map(|source| PollFd::new(source, PollFlags::POLLIN));
    if poll(&mut fds, timeout).is_err() {
        return Ready::default();
    }
    let [ended, signals, reports, kept, told] = fds.map(|fd| fd.any().unwrap_or(true));
    Ready { ended, signals, reports, keeper: kept && keeper.is_some(), news: told && news.is_some() }
}

/// Kills pid 1, and with it everything inside. Whether that will be its end.
fn kill_all(child: &Child) -> bool {
    kill(child.pid, Signal::SIGKILL).is_ok()
}
