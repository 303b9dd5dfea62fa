//! Mount points on the host for write-denied paths that do not exist.
//!
//! An absent path can only be denied by a mount over it, and a mount needs something to lie on. So an empty file or
//! folder is made there for as long as commands run; for git's `commondir`, a file that says nothing new. When one run
//! unlinks such a placeholder, its mount goes in *every* mount namespace, and the command of another run could then
//! make the real path. Therefore:
//!
//! - each run holds a shared lock on each placeholder it uses, and one is removed only under the exclusive lock, after
//!   a look that it is still the same inode and as it was made;
//! - each run lists its placeholders in a `manifest` before it makes them and takes that away after them, so whoever
//!   meets a placeholder can know it for one;
//! - a process of its own ([`Keeper`]) does both, while the sandbox is built. It outlives the launcher, `kill -9`
//!   included, until the sandbox is dead and its placeholders are gone. What it leaves because it was killed itself, the
//!   next run removes ([`sweep`]).

mod keeper;
mod manifest;
mod placeholder;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

pub use keeper::{Bell, Keeper, Vacancy};
pub use manifest::state_folder;

use crate::plan::{MountKind, Placeholder, Plan};

/// Removes what dead runs left. What cannot be removed now is left to the next run.
pub fn sweep() {
    manifest::dead().for_each(placeholder::clear);
}

/// The placeholders of runs that live now. To a plan these paths are absent.
///
/// One that was removed and is somebody's own file now is none any more: nobody could join it.
///
/// # Errors
/// They cannot be listed just now.
pub fn in_use() -> io::Result<Vec<Placeholder>> {
    let entries = manifest::entries(None)?.into_iter().filter(|entry| !entry.is_replaced());
    let mut all: Vec<_> = entries.map(|entry| entry.placeholder).collect();
    all.sort();
    all.dedup();
    Ok(all)
}

/// Whether a plan, computed when only the placeholders in `known` were in use, may have taken one that has come
/// since for a file that stays. Such a plan must be made anew.
///
/// # Errors
/// As for [`in_use`].
pub fn overtaken(plan: &Plan, known: &[Placeholder]) -> io::Result<bool> {
    Ok(in_use()?.iter().filter(|now| !known.contains(now)).any(|now| {
        let named = plan.mounts.iter().any(|mount| mount.target.starts_with(&now.path));
        let exposed = plan.root.writable || plan.mounts.iter().any(|mount| exposes(mount, &now.path));
        let planned = plan.placeholders.iter().any(|planned| planned.path == now.path);
        (named || exposed) && !planned
    }))
}

fn exposes(mount: &crate::plan::Mount, path: &Path) -> bool {
    let writable = matches!(mount.kind, MountKind::Writable | MountKind::Reopen { writable: true, .. });
    writable && path.starts_with(&mount.target)
}
