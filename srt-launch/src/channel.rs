//! What the launcher and the processes inside tell each other, over two pipes.
//!
//! Downwards go orders, one byte each; the end of that pipe is the launcher's death. (A death signal would
//! follow the launching *thread*, and a parent outside the pid namespace reads as 0.) Upwards go reports, one
//! line of JSON each.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use nix::unistd::pipe2;
use serde::{Deserialize, Serialize};

use crate::apply::{During, Failure, Step};

/// From the launcher to pid 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The command may start.
    Go,
    /// Send the command this signal.
    Signal(Signal),
    /// The command was stopped; let it go on, as the terminal's foreground group or not.
    Resume {
        /// Give it the terminal.
        foreground: bool,
    },
}

impl Order {
    // Signals are 1 to 64.
    const GO: u8 = 0;
    const RESUME: u8 = 128;
    const RESUME_IN_FOREGROUND: u8 = 129;

    fn to_byte(self) -> u8 {
        match self {
            Self::Go => Self::GO,
            Self::Signal(signal) => signal as u8,
            Self::Resume { foreground: false } => Self::RESUME,
            Self::Resume { foreground: true } => Self::RESUME_IN_FOREGROUND,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            Self::GO => Some(Self::Go),
            Self::RESUME => Some(Self::Resume { foreground: false }),
            Self::RESUME_IN_FOREGROUND => Some(Self::Resume { foreground: true }),
            signal => Signal::try_from(i32::from(signal)).ok().map(Self::Signal),
        }
    }
}

/// From the processes inside to the launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// A step failed; the command does not run.
    Failed(Failure),
    /// The proxy has answered; what else it tells is for the launcher.
    Connected,
    /// Something is weaker than one might expect.
    Warning(String),
    /// The command was stopped.
    Stopped {
        /// By which signal.
        signal: i32,
        /// Whether the terminal was the sandbox's, and not a shell's that runs it in the background.
        foreground: bool,
    },
    /// A key was pressed at the terminal that sends the command this signal.
    Typed(i32),
    /// The command was ended by this signal.
    Killed(i32),
    /// The command has read on in a file: which standard stream, and to where.
    Position(usize, i64),
}

/// The launcher's ends.
pub struct Outside {
    orders: File,
    reports: File,
    /// The other end of that one, here too: the end of the reports, which comes while the kernel takes the sandbox down,
    /// is not worth waking up for.
    open: Option<File>,
    partial: Vec<u8>,
}

/// The ends of pid 1. None of them outlives the execution of a program.
pub struct Inside {
    orders: File,
    reports: File,
}

/// Makes both pipes.
pub fn pair() -> Result<(Outside, Inside), Failure> {
    let pipe = || pipe2(OFlag::O_CLOEXEC).during(Step::Launch, "pipe2");
    let ((orders_in, orders_out), (reports_in, reports_out)) = (pipe()?, pipe()?);
    Ok((
        Outside {
            orders: orders_out.into(),
            reports: reports_in.into(),
            open: Some(reports_out.try_clone().during(Step::Launch, "dup")?.into()),
            partial: Vec::new(),
        },
        Inside { orders: orders_in.into(), reports: reports_out.into() },
    ))
}

impl Outside {
    /// Sends an order. That nobody is left to read it is for others to find out.
    ///
    /// # Errors
    /// The order is lost: to keep it takes memory.
    pub fn send(&self, order: Order) -> io::Result<()> {
        match (&self.orders).write_all(&[order.to_byte()]) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    /// What becomes readable when there are reports.
    pub fn reports(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Reads once, waiting for something to read, and returns the whole reports so far.
    pub fn receive(&mut self) -> Vec<Report> {
        self.read();
        let mut reports = Vec::new();
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            reports.extend(serde_json::from_slice::<Report>(&line));
        }
        reports
    }

    /// Whatever was reported and not yet received, when nobody inside is left to report more.
    pub fn receive_rest(&mut self) -> Vec<Report> {
        self.open = None;
        while self.read() {}
        self.receive()
    }

    /// Whether more may come.
    fn read(&mut self) -> bool {
        let mut chunk = [0; 4096];
        loop {
            match self.reports.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) | Ok(0) => return false,
                Ok(read) => {
                    self.partial.extend_from_slice(&chunk[..read]);
                    return true;
                }
            }
        }
    }
}

impl Inside {
    /// Sends a report. That nobody is left to read it is for others to find out.
    pub fn send(&self, report: &Report) {
        let mut line = serde_json::to_vec(report).expect("invariant: reports are plain data");
        line.push(b'\n');
        let _ = (&self.reports).write_all(&line);
    }

    /// What becomes readable when there are orders.
    pub fn orders(&self) -> BorrowedFd<'_> {
        self.orders.as_fd()
    }

    /// The next order, waiting for it; `None` when the launcher has died.
    pub fn receive(&self) -> Option<Order> {
        let mut byte = [0];
        (&self.orders).read_exact(&mut byte).ok()?;
        Order::from_byte(byte[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_the_pipe() {
        let signals = Signal::iterator().map(Order::Signal);
        let others = [Order::Go, Order::Resume { foreground: true }, Order::Resume { foreground: false }];
        for order in others.into_iter().chain(signals) {
            assert_eq!(Order::from_byte(order.to_byte()), Some(order));
        }
        assert_eq!(Order::from_byte(200), None);
    }

    #[test]
    fn an_end_is_an_end() {
        let (mut outside, inside) = pair().unwrap();
        inside.send(&Report::Warning("a\nb".to_owned()));
        let stopped = Report::Stopped { signal: 20, foreground: true };
        inside.send(&stopped);
        assert_eq!(outside.receive(), [Report::Warning("a\nb".to_owned()), stopped.clone()]);
        outside.send(Order::Signal(Signal::SIGTERM)).unwrap();
        assert_eq!(inside.receive(), Some(Order::Signal(Signal::SIGTERM)));
        inside.send(&stopped);
        drop(inside);
        assert_eq!(outside.receive_rest(), [stopped]);
        assert_eq!(outside.receive_rest(), []);
        let (outside, inside) = pair().unwrap();
        drop(outside);
        assert_eq!(inside.receive(), None);
    }
}
