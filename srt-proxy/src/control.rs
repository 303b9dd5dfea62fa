//! `--control-fd`: settings that replace those in force, one JSON document a line.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read};

use srt_shared::settings::Settings;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::fds::{FdArg, FdError, Waiting, adopt_readable};
use crate::governor::Governor;
use crate::limits;
use crate::log;

/// What a control descriptor brings.
#[derive(Debug)]
enum Message {
    /// A whole line.
    Line(Vec<u8>),
    /// A line over [`limits::CONTROL_LINE`], of which nothing is kept.
    TooLong,
    /// A line without its end, at the end of the stream.
    Partial,
    /// The descriptor failed.
    Failed(io::Error),
}

/// Lines on their way from a descriptor.
#[derive(Debug)]
pub struct Control {
    messages: Receiver<Message>,
}

/// The descriptor failed before it had delivered anything: a dead channel must not pass for a live one.
#[derive(Debug, thiserror::Error)]
#[error("--control-fd failed before its first line: {0}")]
pub struct ControlError(io::Error);

impl Control {
    /// Starts reading. A thread does, because the descriptor may be of any kind, and blocking.
    pub fn start(arg: FdArg) -> Result<Self, FdError> {
        let file = adopt_readable(arg)?;
        let (sender, messages) = channel(limits::CONTROL_QUEUED);
        std::thread::spawn(move || read_lines(BufReader::new(Waiting(file)), &sender));
        Ok(Self { messages })
    }

    /// Applies lines until the stream ends, which leaves the last policy in force.
    pub async fn run(mut self, governor: &Governor, initial: &Settings) -> Result<(), ControlError> {
        let mut delivered = false;
        while let Some(message) = self.messages.recv().await {
            match message {
                Message::Line(line) => apply(&line, governor, initial),
                Message::TooLong => dropped(&format!("a line of more than {} bytes", limits::CONTROL_LINE)),
                Message::Partial => dropped("a last line without its end"),
                Message::Failed(e) if delivered => {
                    tell(format_args!("{e}; the settings in force stay"));
                    return Ok(());
                }
                Message::Failed(e) => return Err(ControlError(e)),
            }
            delivered = true;
        }
        Ok(())
    }
}

fn apply(line: &[u8], governor: &Governor, initial: &Settings) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    let parsed = match Settings::parse(line) {
        Ok(parsed) => parsed,
        Err(problems) => {
            problems.iter().for_each(tell);
            return dropped("an invalid line");
        }
    };
    parsed.warnings.iter().for_each(tell);
    if parsed.settings.filesystem != initial.filesystem {
        tell("filesystem.* does not change for the command that runs");
    }
    if parsed.settings.network.tls_terminate.is_some() != initial.network.tls_terminate.is_some() {
        tell("whether TLS is terminated does not change while the proxy runs");
    }
    if let Err(e) = governor.replace(parsed.settings.network) {
        tell(e);
        dropped("a line");
    }
}

/// Says what was dropped, never what it said: a line may hold credentials.
fn dropped(what: &str) {
    tell(format_args!("{what} was dropped; the settings in force stay"));
}

fn tell(line: impl Display) {
    log::tell(format_args!("--control-fd: {line}"));
}

fn read_lines(mut input: impl BufRead, messages: &Sender<Message>) {
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(limits::CONTROL_LINE + 1).read_until(b'\n', &mut line);
        let message = match read {
            Ok(0) => return,
            Ok(_) if line.ends_with(b"\n") => Message::Line(line),
            Ok(n) if n as u64 > limits::CONTROL_LINE => match skip_line(&mut input) {
                Ok(()) => Message::TooLong,
                Err(e) => Message::Failed(e),
            },
            Ok(_) => Message::Partial,
            Err(e) => Message::Failed(e),
        };
        let over = matches!(message, Message::Failed(_));
        if messages.blocking_send(message).is_err() || over {
            return;
        }
    }
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let (used, over) = end.map_or((buffer.len(), buffer.is_empty()), |at| (at + 1, true));
        input.consume(used);
        if over {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(input: &[u8]) -> Vec<String> {
        let (sender, mut receiver) = channel(8);
        read_lines(input, &sender);
        drop(sender);
        let mut kinds = Vec::new();
        while let Ok(message) = receiver.try_recv() {
            kinds.push(match message {
                Message::Line(line) => String::from_utf8(line).unwrap(),
                Message::TooLong => "too long".to_owned(),
                Message::Partial => "partial".to_owned(),
                Message::Failed(e) => e.to_string(),
            });
        }
        kinds
    }

    #[test]
    fn a_line_counts_when_it_is_whole() {
        assert_eq!(messages(b""), Vec::<String>::new());
        assert_eq!(messages(b"a\nb\nc"), ["a\n", "b\n", "partial"]);
        let mut huge = vec![b'x'; limits::CONTROL_LINE as usize + 10];
        huge.extend_from_slice(b"\nnext\n");
        assert_eq!(messages(&huge), ["too long", "next\n"]);
    }
}
