//! Starts the proxy with one end of a socket pair, decides at the other, and ends with it.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::AsRawFd,
        unix::{net::UnixStream, process::ExitStatusExt},
    },
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::signal::{SigSet, SigmaskHow, Signal, kill},
    unistd::Pid,
};
use thiserror::Error;

use crate::{
    audit::Audit,
    limits::STOP_GRACE,
    link,
    policy::{CurrentPolicy, Reloaded},
    sys,
};

/// Signals that are passed on to the proxy.
const FORWARDED: [Signal; 5] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Why the proxy was not started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The program.
    #[error("cannot start {program}: {error}")]
    Start {
        /// As it was named.
        program: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The system.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl LaunchError {
    /// The exit status, by the convention of shells: 127 for a program that is not there, 126 for one that
    /// cannot be run.
    pub fn status(&self) -> u8 {
        match self {
            Self::Start { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. } => 126,
            Self::System(_) => 1,
        }
    }
}

/// Runs a command with `--decider-fd N` appended until it ends, deciding at the other end of the socket.
/// SIGHUP reloads the rules; SIGTERM and its like are passed on.
///
/// # Errors
/// [`LaunchError`] if the command does not start.
pub fn run(command: &[OsString], policy: Arc<CurrentPolicy>, audit: Audit) -> Result<u8, LaunchError> {
    let mut signals: SigSet = FORWARDED.into_iter().collect();
    signals.add(Signal::SIGHUP);
    signals.add(Signal::SIGCHLD);
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(io::Error::from)?;

    let (ours, theirs) = UnixStream::pair()?;
    let child = Arc::new(Mutex::new(spawn(command, &theirs, &policy, before)?));
    // As long as we hold it too, we would not see that the proxy has gone.
    drop(theirs);

    {
        let (child, policy) = (Arc::clone(&child), Arc::clone(&policy));
        thread::spawn(move || {
            if let Err(error) = link::serve(ours, policy, audit) {
                eprintln!("srt-decider-example: {error}; stopping");
            }
            // Nobody answers any more: a proxy ends by itself, anything else is made to. If it ends in time this
            // thread is gone with the process.
            thread::sleep(STOP_GRACE);
            // It fails if it has ended, which is what is wanted.
            let _ = lock(&child).kill();
        });
    }
    Ok(status_of(wait(&signals, &child, &policy)?))
}

/// Lets SIGHUP reload the rules, for a decider that did not start its proxy.
///
/// # Errors
/// If signals cannot be blocked.
pub fn reload_on_hangup(policy: Arc<CurrentPolicy>) -> io::Result<()> {
    let signals: SigSet = [Signal::SIGHUP].into_iter().collect();
    signals.thread_block()?;
    thread::spawn(move || {
        while signals.wait().is_ok() {
            reload(&policy)
        }
    });
    Ok(())
}

fn spawn(
    command: &[OsString],
    socket: &UnixStream,
    policy: &CurrentPolicy,
    mask: SigSet,
) -> Result<Child, LaunchError> {
    let (program, arguments) = command.split_first().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
    fcntl(socket, FcntlArg::F_SETFD(FdFlag::empty())).map_err(io::Error::from)?;
    let mut command = Command::new(program);
    command.args(arguments).arg("--decider-fd").arg(socket.as_raw_fd().to_string());
    // The proxy gets each credential with the verdict that uses it, and has no use for the others.
    for variable in policy.now().credential_variables() {
        command.env_remove(variable);
    }
    sys::prepare_child(&mut command, mask);
    command
        .spawn()
        .map_err(|error| LaunchError::Start { program: program.to_string_lossy().into_owned(), error })
}

/// Takes signals until the child has ended. Only this thread waits for it, so its process id is its own for as
/// long as signals are passed on.
fn wait(signals: &SigSet, child: &Mutex<Child>, policy: &CurrentPolicy) -> io::Result<ExitStatus> {
    loop {
        match signals.wait()? {
            Signal::SIGCHLD => {
                if let Some(status) = lock(child).try_wait()? {
                    return Ok(status);
                }
            }
            Signal::SIGHUP => reload(policy),
            signal => {
                let pid = Pid::from_raw(lock(child).id().cast_signed());
                // It fails if the child has just ended, of which the next signal tells.
                let _ = kill(pid, signal);
            }
        }
    }
}

fn reload(policy: &CurrentPolicy) {
    match policy.reload() {
        Ok(Reloaded::Fully) => eprintln!("srt-decider-example: rules reloaded"),
        Ok(Reloaded::HostsKept) => eprintln!(
            "srt-decider-example: rules reloaded; they name other hosts or ports than before: of those the proxy \
             is told only at its start, and refuses new ones until then"
        ),
        Err(error) => eprintln!("srt-decider-example: {error}; the rules of before stay in force"),
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn status_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
