//! The process that makes placeholders, keeps them while a sandbox runs, and removes them when it has ended or the
//! launcher has died.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, send, sendmsg, socketpair,
};
use nix::sys::wait::waitpid;
use nix::unistd::{chdir, dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use super::placeholder::{Held, hold, release};
use crate::apply::{During, Failure, Step};
use crate::plan::{Placeholder, Plan};
use crate::sys::{self, Child};

/// The keeping process, as the launcher sees it.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
    /// Open for as long as the launcher lives.
    socket: Option<OwnedFd>,
}

/// What it answers once everything is in place.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// All placeholders are there, but those at these places of the list, which their directories refuse.
    Ready(Vec<usize>),
    Failed(Failure),
}

/// Enough for a refusal of each of a thousand placeholders.
const ANSWER: usize = 64 << 10;

impl Keeper {
    /// Makes what the plan asks for, and takes out of it what its directories refuse anyway. No process is started
    /// where there is nothing to make.
    pub fn start(plan: &mut Plan) -> Result<Option<Self>, Failure> {
        if plan.placeholders.is_empty() {
            return Ok(None);
        }
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .during(Step::Placeholders, "socketpair")?;
        let wanted = &plan.placeholders;
        let child = sys::clone_child(CloneFlags::empty(), || keep(wanted, theirs.as_fd()))
            .during(Step::Placeholders, "clone")?;
        drop(theirs);
        let keeper = Self { child, socket: Some(ours) };
        let refused = keeper.wait_ready()?;
        if !refused.is_empty() {
            let gone: BTreeSet<_> =
                refused.iter().filter_map(|&at| plan.placeholders.get(at)).map(|p| p.path.clone()).collect();
            plan.placeholders.retain(|placeholder| !gone.contains(&placeholder.path));
            plan.mounts.retain(|mount| !gone.contains(&mount.target));
        }
        Ok(Some(keeper))
    }

    fn wait_ready(&self) -> Result<Vec<usize>, Failure> {
        let mut answer = vec![0; ANSWER];
        let length =
            recv(self.socket()?, &mut answer, MsgFlags::empty()).during(Step::Placeholders, "recv")?;
        match serde_json::from_slice(&answer[..length]) {
            Ok(Answer::Ready(refused)) => Ok(refused),
            Ok(Answer::Failed(failure)) => Err(failure),
            Err(_) => Err(Errno::ECHILD).during(Step::Placeholders, "the process that keeps them ended"),
        }
    }

    /// Tells the keeper which processes must have ended before it may remove anything.
    pub fn guard(&self, sandbox: &Child) -> Result<(), Failure> {
        let fds = [sandbox.pidfd.as_raw_fd()];
        let control = [ControlMessage::ScmRights(&fds)];
        sendmsg::<()>(self.socket()?, &[IoSlice::new(b"g")], &control, MsgFlags::MSG_NOSIGNAL, None)
            .during(Step::Placeholders, "sendmsg")
            .map(drop)
    }

    /// Readable when the keeper has ended, after which no placeholder is safe.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.child.pidfd.as_fd()
    }

    /// In a process inside: lets go of it without waiting for its end, which may wait for ours.
    pub fn forget(mut self) {
        self.socket = None;
        std::mem::forget(self);
    }

    fn socket(&self) -> Result<RawFd, Failure> {
        self.socket.as_ref().map(AsRawFd::as_raw_fd).ok_or(Errno::EBADF).during(Step::Placeholders, "socket")
    }
}

/// Lets it remove them, and waits until it has, however the run ended.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.socket = None;
        let _ = waitpid(self.child.pid, None);
    }
}

/// The keeper's whole life. Returns its exit status.
fn keep(wanted: &[Placeholder], launcher: BorrowedFd<'_>) -> i32 {
    detach(launcher);
    let mut held = Vec::new();
    let manifest = Manifest::create().during(Step::Placeholders, "make a manifest in /dev/shm");
    let made = manifest.map(|mut manifest| {
        let refused = make_all(wanted, &mut manifest, &mut held);
        (manifest, refused)
    });
    let (manifest, answer) = match made {
        Ok((manifest, Ok(refused))) => (Some(manifest), Answer::Ready(refused)),
        Ok((manifest, Err(failure))) => (Some(manifest), Answer::Failed(failure)),
        Err(failure) => (None, Answer::Failed(failure)),
    };
    let packet = serde_json::to_vec(&answer).unwrap_or_default();
    let sent = send(launcher.as_raw_fd(), &packet, MsgFlags::MSG_NOSIGNAL).is_ok();
    if sent && matches!(answer, Answer::Ready(_)) {
        wait_for_the_end(launcher);
    }
    if let Some(manifest) = manifest {
        remove_all(held, manifest);
    }
    0
}

/// Leaves everything it shares with the launcher: signals to its group and of its terminal, and every descriptor,
/// which may be somebody's pipe that must end with the command.
fn detach(launcher: BorrowedFd<'_>) {
    let _ = setsid();
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    sys::close_all_but_here(&[0, 1, 2, launcher.as_raw_fd()]);
    // Not closed: the next file opened would be taken for one of them.
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null).and_then(|()| dup2_stdout(&null)).and_then(|()| dup2_stderr(&null));
    }
    // Its working directory may be a file system that somebody wants to unmount.
    let _ = chdir("/");
    // One open file for each placeholder.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Makes all; the places in the list of those that their directories refuse.
fn make_all(
    wanted: &[Placeholder],
    manifest: &mut Manifest,
    held: &mut Vec<Held>,
) -> Result<Vec<usize>, Failure> {
    manifest.announce(wanted).during(Step::Placeholders, "write to the manifest")?;
    let mut refused = Vec::new();
    // There is nothing to make below what was refused, or is a file as another run has it.
    let mut closed = BTreeSet::new();
    for (at, placeholder) in wanted.iter().enumerate() {
        let path = placeholder.path.as_path();
        let below_closed = path.ancestors().any(|folder| closed.contains(folder));
        let one = if below_closed { None } else { hold(placeholder, manifest)? };
        if !one.as_ref().is_some_and(Held::is_directory) {
            closed.insert(path);
        }
        match one {
            None => refused.push(at),
            Some(one) => {
                manifest.note(path, one.identity).during(Step::Placeholders, "write to the manifest")?;
                held.push(one);
            }
        }
    }
    Ok(refused)
}

/// Waits until the launcher has let go or died, and then until the sandbox is dead: a mount point must not be freed
/// while anybody inside could take its place.
fn wait_for_the_end(launcher: BorrowedFd<'_>) {
    let mut sandbox = None;
    loop {
        match receive(launcher) {
            Ok(Some(pidfd)) => sandbox = pidfd.or(sandbox),
            Ok(None) => break,
            Err(Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    if let Some(pidfd) = sandbox {
        let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        while poll(&mut fds, PollTimeout::NONE) == Err(Errno::EINTR) {}
    }
}

/// One message of the launcher: `None` at the end, else the descriptor that came with it.
fn receive(launcher: BorrowedFd<'_>) -> nix::Result<Option<Option<OwnedFd>>> {
    let mut byte = [0];
    let mut slices = [IoSliceMut::new(&mut byte)];
    let (length, fd) = sys::receive_descriptor(launcher, &mut slices)?;
    Ok((length > 0).then_some(fd))
}

/// What is left is the next run's, which finds it by the manifest.
fn remove_all(held: Vec<Held>, manifest: Manifest) {
    // Folders were made before what lies in them.
    let left = held.into_iter().rev().map(|one| release(one, &manifest)).filter(|done| !done);
    if left.count() == 0 {
        manifest.remove();
    }
}
