//! Pid 1 of the sandbox: starts the command, reaps what is left to it, passes signals on, and ends everything
//! when the command has ended or the launcher has died.
//!
//! It is under the same filter as the command and without capabilities, and it cannot be traced: it holds the
//! launcher's memory and the pipe that keeps the sandbox alive.

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::WaitPidFlag;
use nix::unistd::{Pid, getpid, setpgid};

use crate::apply::{Command, During, Failure, Session, Step, close_all_but, positions};
use crate::channel::{Inside, Order, Report};
use crate::exit;
use crate::keyboard::{Gate, Keyboard};
use crate::monitor::Given;
use crate::placeholders::Bell;
use crate::plan::Plan;
use crate::sys::{self, wait};

/// Runs the command and returns the exit status of the sandbox. `signals` is what the launcher was given; `bell` rings
/// when the command and all it has started are dead.
pub fn run(
    plan: &Plan,
    command: &Command,
    session: Session,
    signals: &Given,
    channel: &Inside,
    bell: Option<&Bell>,
) -> Result<i32, Failure> {
    // Blocked signals wait unread, stop signals of the terminal included.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).during(Step::Init, "sigprocmask")?;
    let children = SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), SfdFlags::SFD_CLOEXEC)
        .during(Step::Init, "signalfd")?;
    if getpid() != FIRST {
        // Only in a test without a pid namespace.
        prctl::set_child_subreaper(true).during(Step::Init, "prctl(PR_SET_CHILD_SUBREAPER)")?;
    }
    let before = positions();
    // Nothing is started before the launcher says that whoever must know of this sandbox does.
    if channel.receive() != Some(Order::Go) {
        return Ok(exit::OWN_FAILURE);
    }
    let shared = session.has_terminal() && plan.isolation.process_group;
    let gate = shared.then(Gate::make).transpose()?;
    if shared {
        // Out of the caller's group. When the launcher signals that, the kernel would, for the sake of a member that cannot
        // see the launcher, leave out for all of them who has sent it; and the launcher must know its own.
        let me = Pid::from_raw(0);
        setpgid(me, me).during(Step::Session, "setpgid")?;
    }
    let body = || {
        gate.iter().for_each(Gate::wait);
        let failure = become_command(plan, command, session, signals);
        channel.send(&Report::Failed(failure.clone()));
        failure.exit_status()
    };
    let command = match session {
        Session::Own => sys::start_program(body),
        // Ctrl-Z may stop it before it has become the command.
        Session::Terminal { .. } => sys::clone_child(CloneFlags::empty(), body).map(|child| child.pid),
    };
    let command = command.during(Step::Init, "clone")?;

    let keyboard = gate.map(|gate| Keyboard::of(command, gate)).transpose()?;

    let mut init =
        Init { command, keyboard, own_group: plan.isolation.process_group, session, channel, bell };
    let status = init.watch(&children);
    for (stream, (before, after)) in before.into_iter().zip(positions()).enumerate() {
        if let Some(after) = after.filter(|_| before != after) {
            channel.send(&Report::Position(stream, after));
        }
    }
    Ok(status)
}

const FIRST: Pid = Pid::from_raw(1);

/// What `kill` says when there is nobody to be killed.
const NOBODY: nix::Result<()> = Err(Errno::ESRCH);

/// In the new process: the last steps, then the command. Returns only if one of them fails.
fn become_command(plan: &Plan, command: &Command, session: Session, signals: &Given) -> Failure {
    let steps = || {
        if plan.isolation.process_group {
            session.enter()?;
        }
        if plan.isolation.close_descriptors {
            close_all_but(&plan.pass_fds)?;
        }
        // The standard library ignores it in every program; the command must not inherit that.
        sys::restore_default(Signal::SIGPIPE).during(Step::Init, "signal")?;
        signals.restore().during(Step::Init, "sigprocmask")
    };
    match steps() {
        Ok(()) => command.execute(),
        Err(failure) => failure,
    }
}

struct Init<'a> {
    command: Pid,
    own_group: bool,
    session: Session,
    keyboard: Option<Keyboard>,
    channel: &'a Inside,
    bell: Option<&'a Bell>,
}

impl Init<'_> {
    fn watch(&mut self, children: &SignalFd) -> i32 {
        loop {
            let orders = self.channel.orders();
            // What is missing watches what is watched anyway.
            let typed = self.keyboard.as_ref().map_or(orders, Keyboard::source);
            let mut fds =
                [children.as_fd(), orders, typed].map(|source| PollFd::new(source, PollFlags::POLLIN));
            if poll(&mut fds, PollTimeout::NONE).is_err() {
                continue;
            }
            let [ended, ordered, typed] = fds.map(|fd| fd.any().unwrap_or(true));
            if typed {
                self.tell_typed();
            }
            if ended {
                let _ = children.read_signal();
                if let Some(status) = self.reap() {
                    return self.end(status);
                }
            }
            if ordered {
                match self.channel.receive() {
                    Some(order) => self.obey(order),
                    // The launcher is dead.
                    None => return self.end(exit::OWN_FAILURE),
                }
            }
        }
    }

    /// Tells what was typed.
    fn tell_typed(&mut self) {
        match self.keyboard.as_ref().map(Keyboard::read) {
            Some(Some(typed)) => self.tell(typed),
            // The command has killed that process, and goes without.
            Some(None) => self.keyboard = None,
            None => {}
        }
    }

    /// The same, before it is told what has become of the command by it: who hears of that stops or ends too.
    fn tell_all_typed(&self) {
        if let Some(keyboard) = &self.keyboard {
            self.tell(keyboard.ask());
        }
    }

    fn tell(&self, typed: Vec<i32>) {
        typed.into_iter().for_each(|signal| self.channel.send(&Report::Typed(signal)));
    }

    /// Reaps whoever has ended; the exit status if the command is among them.
    fn reap(&self) -> Option<i32> {
        loop {
            let (pid, status) = match wait(None, WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED) {
                Ok(Some(news)) => news,
                Ok(None) | Err(Errno::ECHILD) => return None,
                Err(_) => continue,
            };
            if pid != self.command {
                continue;
            }
            if let Some(signal) = status.stopped_signal() {
                let foreground = self.session.inside_has_terminal();
                self.tell_all_typed();
                self.channel.send(&Report::Stopped { signal, foreground });
            } else if let Some(code) = exit::status(status) {
                self.tell_all_typed();
                if let Some(signal) = status.signal() {
                    self.channel.send(&Report::Killed(signal));
                }
                return Some(code);
            }
        }
    }

    fn obey(&self, order: Order) {
        match order {
            Order::Go => {}
            Order::Signal(signal) => self.signal(signal),
            Order::Resume { foreground } => {
                if foreground {
                    self.session.give_terminal(self.command);
                }
                self.signal(Signal::SIGCONT);
            }
        }
    }

    /// Requests to end go to the command's whole group, as they would from a terminal: a shell that waits for
    /// a program runs its own trap only when that program has ended. Others are for the command alone.
    fn signal(&self, signal: Signal) {
        let alone = matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2);
        // Until it has made its group, and after it has left it for another, there is only the process.
        if alone || !self.own_group || killpg(self.command, signal).is_err() {
            let _ = kill(self.command, signal);
        }
    }

    /// Ends whatever is left and waits for it: a mount point on the host must not be freed while anybody inside is
    /// still there to take its place.
    fn end(&self, status: i32) -> i32 {
        if getpid() != FIRST {
            let _ = killpg(self.command, Signal::SIGKILL);
            return status;
        }
        let kill_all = || kill(Pid::from_raw(-1), Signal::SIGKILL);
        let mut left = kill_all();
        if left != NOBODY {
            while !matches!(wait(None, WaitPidFlag::empty()), Err(Errno::ECHILD)) {}
            // Still there is who was sent in from outside, and is not ours to wait for. He dies with us.
            left = kill_all();
        }
        if left == NOBODY
            && let Some(bell) = self.bell
        {
            bell.ring();
        }
        status
    }
}
