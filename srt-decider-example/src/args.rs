//! The command line: what was typed ([`Args`]), and what is to be done ([`Task`]).

use std::{ffi::OsString, os::fd::RawFd, path::PathBuf};

use clap::Parser;
use srt_shared::decider::Req;

use crate::request::{RequestError, parse_request};

/// What was typed.
#[derive(Debug, Parser)]
#[command(
    name = "srt-decider-example",
    version,
    about = "A decider for srt-proxy: first-match rules from a file, credentials the client never sees, a log",
    override_usage = "srt-decider-example --rules FILE [--log FILE] -- srt-proxy ARG…
       srt-decider-example --rules FILE [--log FILE] --fd N
       srt-decider-example --rules FILE --check [--request 'METHOD URL' [--header 'NAME: VALUE']… [--body FILE]]",
    after_help = "\
The command behind -- gets `--decider-fd N` appended. SIGHUP reads the rules again and keeps those of before if
the new ones do not parse; SIGTERM, SIGINT, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the command.

Examples:
  # start the proxy on a port of its own and decide by a ready-made rules file
  srt-decider-example --rules docs/examples/package-registries-read-only.toml --log decisions.jsonl \\
      -- srt-proxy --listen 127.0.0.1:3128 --ca-fd 3 3<ca.pem

  # is the file in order, and what does it say to this request?
  srt-decider-example --rules rules.toml --check --request 'POST https://api.github.com/graphql' \\
      --header 'Content-Type: application/json' --body query.json

  # the proxy is started by another program, which has put our end of a socket pair on descriptor 7
  srt-decider-example --rules rules.toml --fd 7

Exit status: that of the command, 128+N if signal N ended it, 127 if it was not found, 126 if it could not be
run; 2 for a wrong command line or rules file. --fd: 0 when the proxy has left, 1 if the link broke.
--check: 0 if the file is in order and the request would be allowed, 1 if it would be denied."
)]
pub struct Args {
    /// The rules file (TOML)
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,

    /// Append one JSON line for each verdict to this file; requests are refused while it cannot be written
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    log: Option<PathBuf>,

    /// Decide on this inherited stream socket instead of starting a proxy
    #[arg(long, value_name = "N", conflicts_with_all = ["check", "command"])]
    fd: Option<RawFd>,

    /// Check the rules file and say what it holds, or with --request which rule decides
    #[arg(long, conflicts_with = "command")]
    check: bool,

    /// A request to explain: its method and URL
    #[arg(long, value_name = "METHOD URL", requires = "check")]
    request: Option<String>,

    /// A header of that request; repeatable
    #[arg(long, value_name = "NAME: VALUE", requires = "request")]
    header: Vec<String>,

    /// The body of that request; `-` for the standard input
    #[arg(long, value_name = "FILE", requires = "request")]
    body: Option<PathBuf>,

    /// The proxy to start, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What is to be done, all by the same rules file.
#[derive(Debug)]
pub enum Task {
    /// Start this command and decide for it.
    Launch(Vec<OsString>),
    /// Decide on this descriptor.
    Serve(RawFd),
    /// Say what the file holds.
    Describe,
    /// Say what it says to a request.
    Explain(Box<Req>, Option<PathBuf>),
}

/// What is wrong with the command line beyond what the parser sees.
#[derive(Debug, thiserror::Error)]
pub enum ArgsError {
    /// Nobody to decide for.
    #[error("nothing to decide for: write the proxy's command behind --, or give --fd N or --check")]
    NoTask,
    /// The request or one of its headers.
    #[error("--request: {0}")]
    Request(#[from] RequestError),
}

impl Args {
    /// The rules file.
    pub fn rules(&self) -> &PathBuf {
        &self.rules
    }

    /// The log file.
    pub fn log(&self) -> Option<&PathBuf> {
        self.log.as_ref()
    }

    /// What is to be done.
    ///
    /// # Errors
    /// [`ArgsError`].
    pub fn into_task(self) -> Result<Task, ArgsError> {
        match (self.fd, self.check, self.request) {
            (Some(fd), ..) => Ok(Task::Serve(fd)),
            (None, true, None) => Ok(Task::Describe),
            (None, true, Some(text)) => {
                Ok(Task::Explain(Box::new(parse_request(&text, &self.header)?), self.body))
            }
            (None, false, _) if self.command.is_empty() => Err(ArgsError::NoTask),
            (None, false, _) => Ok(Task::Launch(self.command)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn task(args: &[&str]) -> Option<Task> {
        let args = ["srt-decider-example", "--rules", "r.toml"].iter().chain(args);
        Args::try_parse_from(args).ok()?.into_task().ok()
    }

    #[test]
    fn each_task_has_its_arguments() {
        assert!(
            matches!(task(&["--", "srt-proxy", "--debug"]), Some(Task::Launch(command)) if command.len() == 2)
        );
        assert!(matches!(task(&["--log", "l", "--fd", "7"]), Some(Task::Serve(7))));
        assert!(matches!(task(&["--check"]), Some(Task::Describe)));
        let explain = ["--check", "--request", "GET https://a.test/", "--header", "a: b", "--body", "-"];
        assert!(matches!(task(&explain), Some(Task::Explain(_, Some(_)))));
    }

    #[test]
    fn mixed_tasks_are_refused() {
        for args in [
            &[][..],
            &["srt-proxy"],
            &["--fd", "7", "--", "srt-proxy"],
            &["--check", "--", "srt-proxy"],
            &["--check", "--fd", "7"],
            &["--check", "--log", "l"],
            &["--request", "GET https://a.test/"],
            &["--check", "--header", "a: b"],
            &["--check", "--request", "https://a.test/"],
        ] {
            assert!(task(args).is_none(), "{args:?}");
        }
    }

    #[test]
    fn the_help_is_well_formed() {
        Args::command().debug_assert();
    }
}
