//! The process that makes placeholders, keeps them while a sandbox runs, and removes them when it has ended or the
//! launcher has died.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{chdir, dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use serde::{Deserialize, Serialize};

use super::manifest::{Manifest, state_folder};
use super::placeholder::{Held, hold, release};
use crate::apply::{During, Failure, Step};
use crate::plan::{Placeholder, Plan};
use crate::sys::{self, Child};

/// A keeper that is needed and not there yet.
///
/// It is started when the sandbox's first process is there already: it makes the placeholders while that one builds
/// what does not lie on them, and it knows from the beginning whose end to wait for.
#[derive(Debug)]
pub struct Vacancy {
    /// Where the sandbox learns what came of it.
    inside: UnixStream,
    /// The keeper's end of that.
    outside: UnixStream,
}

/// By which the sandbox's first process tells the keeper that nobody is left but itself. It would learn that from the
/// death of the sandbox too, but has its work done while the kernel is still taking that down.
#[derive(Debug)]
pub struct Bell(UnixStream);

/// The keeping process, as the launcher sees it.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
}

/// What the sandbox is told once everything is in place.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// All placeholders are there, but those at these places of the list, which their directories refuse.
    Ready(Vec<usize>),
    Failed(Failure),
}

impl Vacancy {
    /// `None` where there is nothing to make, and no process is needed.
    pub fn of(plan: &Plan) -> Result<Option<Self>, Failure> {
        if plan.placeholders.is_empty() {
            return Ok(None);
        }
        let (inside, outside) = UnixStream::pair().during(Step::Placeholders, "socketpair")?;
        Ok(Some(Self { inside, outside }))
    }

    /// Outside: starts the keeper of a sandbox.
    pub fn fill(self, wanted: &[Placeholder], sandbox: &Child) -> Result<Keeper, Failure> {
        let link = self.outside;
        sys::clone_child(CloneFlags::empty(), || keep(wanted, link, sandbox.pidfd.as_fd()))
            .during(Step::Placeholders, "clone")
            .map(|child| Keeper { child })
    }

    /// Inside: waits until the placeholders are there, and takes out of the plan what their directories refuse anyway.
    pub fn settle(self, plan: &mut Plan) -> Result<Bell, Failure> {
        let Self { mut inside, outside } = self;
        // Ours would keep us waiting if the keeper were killed.
        drop(outside);
        let mut text = Vec::new();
        inside.read_to_end(&mut text).during(Step::Placeholders, "read")?;
        let refused = match serde_json::from_slice(&text) {
            Ok(Answer::Ready(refused)) => refused,
            Ok(Answer::Failed(failure)) => return Err(failure),
            Err(_) => {
                return Err(Errno::ECHILD).during(Step::Placeholders, "the process that keeps them ended");
            }
        };
        if !refused.is_empty() {
            let gone: BTreeSet<_> =
                refused.iter().filter_map(|&at| plan.placeholders.get(at)).map(|p| p.path.clone()).collect();
            plan.placeholders.retain(|placeholder| !gone.contains(&placeholder.path));
            plan.mounts.retain(|mount| !gone.contains(&mount.target));
        }
        Ok(Bell(inside))
    }
}

impl Bell {
    /// Every other process of the sandbox is dead.
    pub fn ring(&self) {
        // A keeper that was killed is for the launcher to notice.
        let _ = (&self.0).write_all(b".");
    }
}

impl Keeper {
    /// Readable when the keeper has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.child.pidfd.as_fd()
    }

    /// Whether, having ended, it has done all it had to. Else no placeholder is safe.
    pub fn is_done(&self) -> bool {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        matches!(waitid(Id::PIDFd(self.ended()), look), Ok(WaitStatus::Exited(_, 0)))
    }
}

/// Waits until it has removed them.
impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = sys::wait(Some(self.child.pid), WaitPidFlag::empty());
    }
}

/// The keeper's whole life. Returns its exit status.
fn keep(wanted: &[Placeholder], mut link: UnixStream, sandbox: BorrowedFd<'_>) -> i32 {
    detach(&[link.as_raw_fd(), sandbox.as_raw_fd()]);
    let mut held = Vec::new();
    let mut manifest = None;
    let answer = match list_and_make(wanted, &mut manifest, &mut held) {
        Ok(refused) => Answer::Ready(refused),
        Err(failure) => Answer::Failed(failure),
    };
    // If nobody reads it the sandbox is dead, as the wait will find.
    let _ = link.write_all(&serde_json::to_vec(&answer).unwrap_or_default());
    let _ = link.shutdown(Shutdown::Write);
    wait_for_the_end(&link, sandbox);
    if let Some(manifest) = manifest {
        remove_all(held, manifest);
    }
    0
}

/// Leaves everything it shares with the launcher: signals to its group and of its terminal, and every descriptor,
/// which may be somebody's pipe that must end with the command.
fn detach(kept: &[RawFd]) {
    let _ = setsid();
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    sys::close_all_but_here(&[&[0, 1, 2], kept].concat());
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

/// How many descriptors are kept back while placeholders are made, one open file for each: to remove them takes some too.
const SPARE: usize = 6;

/// Makes the manifest, then all; the places in the list of those that their directories refuse.
fn list_and_make(
    wanted: &[Placeholder],
    manifest: &mut Option<Manifest>,
    held: &mut Vec<Held>,
) -> Result<Vec<usize>, Failure> {
    let one = |_| std::io::stdin().as_fd().try_clone_to_owned();
    let _spare: Vec<OwnedFd> =
        (0..SPARE).map(one).collect::<Result<_, _>>().during(Step::Placeholders, "dup")?;
    let place = || format!("make the manifest {}", state_folder().display());
    let made = Manifest::create().or_else(|e| Err(e).during(Step::Placeholders, &place()))?;
    make_all(wanted, manifest.insert(made), held)
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
                let identity = one.identity;
                // Held first: what cannot be noted is to be removed too.
                held.push(one);
                manifest.note(path, identity).during(Step::Placeholders, "write to the manifest")?;
            }
        }
    }
    Ok(refused)
}

/// Waits until the sandbox is dead, which it soon is when the launcher is, or all in it but its first process: a mount
/// point must not be freed while anybody inside could take its place.
fn wait_for_the_end(mut link: &UnixStream, sandbox: BorrowedFd<'_>) {
    let dead = PollFd::new(sandbox, PollFlags::POLLIN);
    let mut fds = [dead, PollFd::new(link.as_fd(), PollFlags::POLLIN)];
    while poll(&mut fds, PollTimeout::NONE) == Err(Errno::EINTR) {}
    // Without the byte it has only let go of its end, to die or because it was killed.
    if link.read(&mut [0]).is_ok_and(|length| length > 0) {
        return;
    }
    while poll(&mut fds[..1], PollTimeout::NONE) == Err(Errno::EINTR) {}
}

/// What is left is the next run's, which finds it by the manifest.
fn remove_all(held: Vec<Held>, manifest: Manifest) {
    // Folders were made before what lies in them.
    let left = held.into_iter().rev().map(|one| release(one, &manifest)).filter(|done| !done);
    if left.count() == 0 {
        manifest.remove();
    }
}
