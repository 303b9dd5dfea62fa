//! Two process groups that act as one job on the caller's terminal: the caller's, of which the launcher is a member and
//! perhaps others, a pager or a shell with its script; and the command's.
//!
//! A terminal has one foreground group. What is typed reaches that one, and the other is told: the command by the
//! launcher, which is sent what its group is; the caller's group when a member of the command's that is ours was sent it by
//! the terminal itself (`crate::keyboard`). Nobody inside can make that up, so no command can signal the caller's group.
//! The terminal goes to whichever group asks for it, which the kernel says by SIGTTIN or SIGTTOU.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, raise, sigprocmask};
use nix::sys::signalfd::siginfo;
use nix::unistd::{Pid, getpgrp, getpid};

use crate::apply::Session;
use crate::channel::{Order, Outside};
use crate::exit::End;

/// Signals that keys send to end a job.
const ENDING: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

/// The caller's side of the job.
#[derive(Debug)]
pub struct Job {
    session: Session,
    /// Whether the command's group has the terminal.
    lent: bool,
    /// Whether the job has gone on since it was last stopped.
    continued: bool,
    /// What was typed last to end the job.
    typed: Option<Signal>,
    /// What has ended the command.
    killed: Option<Signal>,
}

/// What becomes of a signal that has come to the launcher.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was for others.
    Drop,
    /// The command is to have it; it may do with it what it likes.
    Pass,
    /// The same, but it has to end in time: somebody asks us to.
    End,
}

impl Job {
    /// A job as it starts.
    pub fn new(session: Session) -> Self {
        Self { session, lent: session.lends_at_once(), continued: false, typed: None, killed: None }
    }

    /// Judges a signal that has come to this process.
    pub fn judge(&mut self, signal: Signal, info: &siginfo) -> Verdict {
        if is_own(info) {
            return Verdict::Drop;
        }
        match signal {
            Signal::SIGCONT => {
                self.continued = true;
                Verdict::Drop
            }
            Signal::SIGTSTP => {
                self.continued = false;
                Verdict::Pass
            }
            Signal::SIGTTIN | Signal::SIGTTOU if self.lent => {
                self.take_terminal();
                Verdict::Drop
            }
            Signal::SIGINT | Signal::SIGQUIT if is_typed(info) => {
                self.typed = Some(signal);
                Verdict::Pass
            }
            Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT => Verdict::End,
            _ => Verdict::Pass,
        }
    }

    /// Another of the caller's group wants the terminal, and was stopped for that.
    fn take_terminal(&mut self) {
        self.give_back();
        let _ = kill(OWN_GROUP, Signal::SIGCONT);
    }

    fn give_back(&mut self) {
        self.session.give_terminal(getpgrp());
        self.lent = false;
    }

    /// The terminal has sent the command's group a signal: the job is more than that.
    pub fn typed_inside(&mut self, signal: i32) {
        let Ok(signal) = Signal::try_from(signal) else { return };
        if ENDING.contains(&signal) {
            self.typed = Some(signal);
        } else {
            self.continued = false;
            // Now: when its part of the job has stopped, a shell takes the terminal, and it would be taken from the shell.
            self.give_back();
        }
        let _ = kill(OWN_GROUP, signal);
    }

    /// The command was stopped. For the terminal, it has it; by Ctrl-Z mostly, the shell that waits for us must see us stop,
    /// and have the terminal. Goes on when we are continued.
    pub fn command_stopped(&mut self, signal: i32, foreground: bool, channel: &Outside) {
        if !self.session.has_terminal() {
            return;
        }
        let signal = Signal::try_from(signal).ok();
        let asks = signal.filter(|signal| matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU));
        let lend = if asks.is_some() && self.session.in_foreground() {
            true
        } else {
            // In the background the terminal is the shell's, which may be reading from it just now.
            if foreground && self.lent {
                self.give_back();
            }
            // Not SIGSTOP: in a group that no shell controls nobody would continue us. There the others are void, and the
            // command goes on at once, as it would without us.
            if !self.continued {
                stop(asks.unwrap_or(Signal::SIGTSTP));
            }
            self.continued = false;
            (foreground || asks.is_some() || self.session.lends_at_once()) && self.session.in_foreground()
        };
        self.lent = lend;
        // One that is lost leaves the command stopped, as whoever waits will see.
        let _ = channel.send(Order::Resume { foreground: lend });
    }

    /// The command was ended by a signal.
    pub fn command_killed(&mut self, signal: i32) {
        self.killed = Signal::try_from(signal).ok();
    }

    /// The sandbox has ended with this status; the terminal is the caller's again.
    pub fn end(self, status: i32) -> End {
        self.session.take_terminal_back();
        match self.killed.filter(|killed| Some(*killed) == self.typed) {
            Some(signal) => End::Interrupted(signal),
            None => End::Status(status),
        }
    }
}

/// Whether the terminal has sent a signal, or else the kernel: nobody else can give that code.
pub fn is_typed(info: &siginfo) -> bool {
    info.ssi_code == libc::SI_KERNEL
}

/// Whether this process has sent itself a signal, as a member of its group.
pub fn is_own(info: &siginfo) -> bool {
    info.ssi_pid == getpid().as_raw().unsigned_abs()
}

/// To whom `kill` sends for the caller's process group.
const OWN_GROUP: Pid = Pid::from_raw(0);

/// Stops this process, which otherwise reads these signals.
fn stop(signal: Signal) {
    let mask = SigSet::from(signal);
    let _ = raise(signal);
    let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&mask), None);
    // Continued.
    let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None);
}
