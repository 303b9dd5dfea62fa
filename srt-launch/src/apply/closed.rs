//! Folders that the plan names something in, and that pid 1 may not search.
//!
//! The plan is made with the power of the caller. Root's ends at the door: inside, only uid 0 is mapped, and a
//! private folder of another user's is closed to it. The command has pid 1's user and groups and fewer capabilities, so
//! what pid 1 cannot reach it cannot reach either, as things are. But the folder may be opened while it runs: by its
//! owner, or by the command itself where the folder is root's own and only its group is not mapped. So a deny is not
//! left out: the folder as a whole is what it lies on, as for an ordinary user.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::failure::Failure;
use super::mounts::Tree;
use crate::plan::{Mount, MountKind};

/// What was done about such folders.
#[derive(Debug, Default)]
pub struct Closed {
    /// Those with a mount of ours.
    covered: BTreeMap<PathBuf, Cover>,
    /// Those with a name that must stay in its place. Their turn is last: mounts made later bury pins.
    pinned: BTreeSet<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cover {
    ReadOnly,
    Empty,
}

impl Cover {
    fn kind(self) -> MountKind {
        match self {
            Self::ReadOnly => MountKind::ReadOnly,
            Self::Empty => MountKind::EmptyDir,
        }
    }
}

impl Tree {
    /// The folder that keeps pid 1 from the place of a mount; `None` where something else does.
    pub(super) fn closed_above(&self, mount: &Mount) -> Option<PathBuf> {
        let place = match &mount.kind {
            MountKind::Reopen { source, .. } => source,
            _ => &mount.target,
        };
        if let Some(folder) = self.closed.above(place) {
            return Some(folder.into());
        }
        // Other calls are refused with this number too, by security modules: that is no folder's doing.
        if self.open_host(place).err() != Some(Errno::EACCES) {
            return None;
        }
        let reached = place.ancestors().skip(1).find(|above| self.open_host(above).is_ok());
        reached.filter(|above| *above != Path::new("/")).map(Path::to_path_buf)
    }

    /// Does for a mount what can be done where such a folder lies above it.
    pub(super) fn mount_closed(
        &mut self,
        folder: PathBuf,
        mount: &Mount,
        empty_file: impl AsFd,
    ) -> Result<(), Failure> {
        match &mount.kind {
            MountKind::ReadOnly => self.cover(folder, Cover::ReadOnly, empty_file),
            MountKind::EmptyDir | MountKind::EmptyFile => self.cover(folder, Cover::Empty, empty_file),
            MountKind::Pin => {
                self.closed.pinned.insert(folder);
                Ok(())
            }
            // The plan has a warning of it.
            MountKind::Writable | MountKind::Reopen { .. } => Ok(()),
        }
    }

    /// Makes the folders read-only in which a name must stay. To be called after the plan's mounts.
    pub fn close_pinned(&mut self, empty_file: impl AsFd) -> Result<(), Failure> {
        for folder in std::mem::take(&mut self.closed.pinned) {
            self.cover(folder, Cover::ReadOnly, &empty_file)?;
        }
        Ok(())
    }

    fn cover(&mut self, folder: PathBuf, cover: Cover, empty_file: impl AsFd) -> Result<(), Failure> {
        if self.closed.covered.get(&folder).is_some_and(|done| *done >= cover) {
            return Ok(());
        }
        match self.mount_kind(&cover.kind(), &folder, empty_file) {
            // An empty folder of the plan hides it.
            Err(failure) if failure.errno == Errno::ENOENT as i32 && self.open_host(&folder).is_ok() => {
                Ok(())
            }
            result => {
                result?;
                self.closed.covered.insert(folder, cover);
                Ok(())
            }
        }
    }
}

impl Closed {
    fn above<'a>(&self, place: &'a Path) -> Option<&'a Path> {
        place.ancestors().skip(1).find(|above| self.covered.contains_key(*above))
    }
}
