//! `srt-decider-example`: reads the rules, then starts the proxy, serves a descriptor, or explains.
#![deny(unsafe_code)]

use std::{
    os::{fd::RawFd, unix::net::UnixStream},
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use clap::Parser;
use srt_decider_example::{
    args::{Args, Task},
    audit::Audit,
    check, launch, link,
    policy::CurrentPolicy,
    rules::Rules,
    sys,
};

const USAGE: u8 = 2;
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let args = Args::parse();
    let (rules, log) = (args.rules().clone(), args.log().cloned());
    let status = match args.into_task() {
        Ok(Task::Launch(command)) => with_policy(&rules, log.as_deref(), |policy, audit| {
            launch::run(&command, policy, audit).map_err(|error| (error.status(), error.into()))
        }),
        Ok(Task::Serve(number)) => {
            with_policy(&rules, log.as_deref(), |policy, audit| serve(number, policy, audit))
        }
        Ok(Task::Describe) => report(&rules, |rules, path| Ok(check::describe(rules, path))),
        Ok(Task::Explain(req, body)) => report(&rules, |rules, _| {
            let body = body.as_deref().map(check::read_body).transpose()?;
            Ok(check::explain(rules, &req, body.as_deref()))
        }),
        Err(error) => Err((USAGE, error.into())),
    };
    match status {
        Ok(status) => ExitCode::from(status),
        Err((status, error)) => {
            eprintln!("srt-decider-example: {error}");
            ExitCode::from(status)
        }
    }
}

/// An exit status and what to say.
type Failure = (u8, Box<dyn std::error::Error>);

fn with_policy(
    rules: &Path,
    log: Option<&Path>,
    task: impl FnOnce(Arc<CurrentPolicy>, Audit) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let policy = CurrentPolicy::load(rules).map_err(|error| (USAGE, error.into()))?;
    let audit = match log {
        Some(path) => {
            Audit::open(path).map_err(|error| (USAGE, format!("--log {}: {error}", path.display()).into()))?
        }
        None => Audit::off(),
    };
    task(Arc::new(policy), audit)
}

fn serve(number: RawFd, policy: Arc<CurrentPolicy>, audit: Audit) -> Result<u8, Failure> {
    let usage = |error: std::io::Error| (USAGE, format!("--fd {number}: {error}").into());
    let socket = sys::adopt_socket(number).map_err(usage)?;
    launch::reload_on_hangup(Arc::clone(&policy)).map_err(|error| (FAILED, error.into()))?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false).map_err(usage)?;
    link::serve(stream, policy, audit).map_err(|error| (FAILED, error.into()))?;
    Ok(0)
}

fn report(
    path: &Path,
    task: impl FnOnce(&Rules, &Path) -> std::io::Result<check::Report>,
) -> Result<u8, Failure> {
    let rules = Rules::read(path).map_err(|error| (USAGE, error.into()))?;
    let report = task(&rules, path).map_err(|error| (USAGE, format!("--body: {error}").into()))?;
    print!("{}", report.text);
    Ok(if report.allowed { 0 } else { FAILED })
}
