//! The process that makes placeholders, keeps them while a sandbox runs, and removes them when it has ended or the
//! launcher has died.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, send, sendmsg, socketpair,
};
use nix::sys::wait::waitpid;
use nix::unistd::setsid;
use serde::{Deserialize, Serialize};

use super::manifest::{Manifest, is_live, remove_lost_ones, state_folder};
use super::placeholder::{Held, Made, Removed};
use crate::apply::{During, Failure, Step};
use crate::limits::{JANITOR_PATIENCE, PLACEHOLDER_PAUSE};
use crate::plan::{Placeholder, Plan};
use crate::sys::{self, Child};

/// The keeping process, as the launcher sees it.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
    socket: OwnedFd,
}

/// What it answers once everything is in place.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// All placeholders are there, but those at these places of the list, which their directories refuse.
    Ready(Vec<usize>),
    Failed(Failure),
}

/// The end of a sandbox that needs no placeholder.
pub type Kept = Option<Keeper>;

/// Enough for a refusal of each of a thousand placeholders.
const ANSWER: usize = 64 << 10;

impl Keeper {
    /// Makes what the plan asks for, and takes out of it what its directories refuse anyway. No process is started
    /// where there is nothing to make and nothing left to clean up.
    pub fn start(plan: &mut Plan) -> Result<Kept, Failure> {
        let leftovers =
            state_folder(false).is_some_and(|folder| folder.read_dir().is_ok_and(|mut d| d.next().is_some()));
        if plan.placeholders.is_empty() {
            if leftovers {
                remove_lost_ones();
            }
            return Ok(None);
        }
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .during(Step::Placeholders, "socketpair")?;
        let wanted = &plan.placeholders;
        let child = sys::clone_child(CloneFlags::empty(), || keep(wanted, theirs.as_fd()))
            .during(Step::Placeholders, "clone")?;
        drop(theirs);
        let keeper = Self { child, socket: ours };
        let refused = keeper.wait_ready()?;
        if !refused.is_empty() {
            let gone: Vec<_> =
                refused.iter().filter_map(|&at| plan.placeholders.get(at)).map(|p| p.path.clone()).collect();
            plan.placeholders.retain(|placeholder| !gone.contains(&placeholder.path));
            plan.mounts.retain(|mount| !gone.contains(&mount.target));
        }
        Ok(Some(keeper))
    }

    fn wait_ready(&self) -> Result<Vec<usize>, Failure> {
        let mut answer = vec![0; ANSWER];
        let length = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty())
            .during(Step::Placeholders, "recv")?;
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
        sendmsg::<()>(self.socket.as_raw_fd(), &[IoSlice::new(b"g")], &control, MsgFlags::MSG_NOSIGNAL, None)
            .during(Step::Placeholders, "sendmsg")
            .map(drop)
    }

    /// Readable when the keeper has ended, after which no placeholder is safe.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.child.pidfd.as_fd()
    }

    /// Lets it remove them, and waits until it has.
    pub fn finish(self) {
        let Self { child, socket } = self;
        drop(socket);
        let _ = waitpid(child.pid, None);
    }
}

/// The keeper's whole life. Returns its exit status.
fn keep(wanted: &[Placeholder], launcher: BorrowedFd<'_>) -> i32 {
    // Out of the way of signals to the launcher's group and of its terminal.
    let _ = setsid();
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    // Everything inherited may be somebody's pipe that must end with the command. The standard streams too.
    sys::close_all_but_here(&[launcher.as_raw_fd()]);

    remove_lost_ones();
    let mut held = Vec::new();
    let (answer, manifest) = match make_all(wanted, &mut held) {
        Ok((manifest, refused)) => (Answer::Ready(refused), Some(manifest)),
        Err(failure) => (Answer::Failed(failure), None),
    };
    let packet = serde_json::to_vec(&answer).unwrap_or_default();
    let sent = send(launcher.as_raw_fd(), &packet, MsgFlags::MSG_NOSIGNAL).is_ok();
    if sent && manifest.is_some() {
        wait_for_the_end(launcher);
    }
    remove_all(held, manifest);
    0
}

fn make_all(wanted: &[Placeholder], held: &mut Vec<Held>) -> Result<(Manifest, Vec<usize>), Failure> {
    let mut manifest = Manifest::create().during(Step::Placeholders, "make a manifest in /dev/shm")?;
    let mut refused = Vec::new();
    for (at, placeholder) in wanted.iter().enumerate() {
        // Below a folder that was refused there is nothing to make.
        let below_refused = refused.iter().any(|&at: &usize| placeholder.path.starts_with(&wanted[at].path));
        match if below_refused { Made::Refused } else { Held::make(placeholder, is_live)? } {
            Made::Refused => refused.push(at),
            Made::Held(one) => {
                manifest.add(one.entry()).during(Step::Placeholders, "write to the manifest")?;
                held.push(one);
            }
        }
    }
    Ok((manifest, refused))
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

fn remove_all(held: Vec<Held>, manifest: Option<Manifest>) {
    let mut strangers = Vec::new();
    // Folders were made before what lies in them.
    for one in held.into_iter().rev() {
        let entry = one.entry().clone();
        if one.remove() == Removed::InUse && !is_live(&entry.path()) {
            strangers.push(entry);
        }
    }
    // A lock of nobody we know: a backup, an indexer. It will be over in a moment.
    let tries = JANITOR_PATIENCE.as_millis() / PLACEHOLDER_PAUSE.as_millis().max(1);
    for _ in 0..tries {
        strangers.retain(|entry| {
            super::placeholder::remove_lost(entry) == Removed::InUse && !is_live(&entry.path())
        });
        if strangers.is_empty() {
            break;
        }
        std::thread::sleep(PLACEHOLDER_PAUSE);
    }
    // What is left is the next run's, which finds it by the manifest.
    if let Some(manifest) = manifest
        && strangers.is_empty()
    {
        manifest.remove();
    }
}
