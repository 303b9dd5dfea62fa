//! One placeholder: made or joined, locked, removed.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::manifest::Entry;
use crate::apply::{During, Failure, Step};
use crate::limits::{PLACEHOLDER_PAUSE, PLACEHOLDER_WAIT};
use crate::plan::Placeholder;

/// A placeholder this run uses, under a shared lock.
#[derive(Debug)]
pub struct Held {
    parent: OwnedFd,
    entry: Entry,
    lock: Flock<File>,
}

/// What became of the wish for one.
#[derive(Debug)]
pub enum Made {
    /// It is there and locked.
    Held(Held),
    /// The directory refuses this user: the command cannot make the path either, so the deny holds by itself.
    Refused,
}

/// What became of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// It is gone, or is somebody's own file by now.
    Done,
    /// Somebody else holds a lock on it.
    InUse,
}

impl Held {
    /// Makes the placeholder, or joins one that another run has made. `may_join` says which existing paths are such.
    pub fn make(wanted: &Placeholder, may_join: impl Fn(&Path) -> bool) -> Result<Made, Failure> {
        let deadline = Instant::now() + PLACEHOLDER_WAIT;
        let (Some(parent), Some(name)) = (wanted.path.parent(), wanted.path.file_name()) else {
            return Err(Errno::EINVAL).during_at(Step::Placeholders, "open", &wanted.path);
        };
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let parent = match open(parent, flags, Mode::empty()) {
            Err(Errno::EACCES) => return Ok(Made::Refused),
            result => result.during_at(Step::Placeholders, "open", parent)?,
        };
        loop {
            let file = match create(&parent, name.as_ref(), wanted) {
                Ok(file) => file,
                Err(Errno::EACCES | Errno::EPERM | Errno::EROFS) => return Ok(Made::Refused),
                Err(Errno::EEXIST) if may_join(&wanted.path) => {
                    match reopen(&parent, name.as_ref(), wanted.directory) {
                        Ok(file) => file,
                        // Its last user has just removed it.
                        Err(Errno::ENOENT) => continue,
                        Err(errno) => {
                            return Err(errno).during_at(Step::Placeholders, "openat", &wanted.path);
                        }
                    }
                }
                Err(errno) => return Err(errno).during_at(Step::Placeholders, "openat", &wanted.path),
            };
            // The lock is held exclusively for microseconds only, by a run that is removing it.
            let lock = match Flock::lock(File::from(file), FlockArg::LockSharedNonblock) {
                Ok(lock) => lock,
                Err((_, Errno::EWOULDBLOCK)) if Instant::now() < deadline => {
                    std::thread::sleep(PLACEHOLDER_PAUSE);
                    continue;
                }
                Err((_, errno)) => return Err(errno).during_at(Step::Placeholders, "flock", &wanted.path),
            };
            let stat = fstat(&*lock).during_at(Step::Placeholders, "fstat", &wanted.path)?;
            let entry = Entry::new(&wanted.path, wanted.directory, &stat);
            // Between the open and the lock it may have been removed, and even made anew by another run.
            match fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(now) if entry.is(&now) => return Ok(Made::Held(Self { parent, entry, lock })),
                Ok(_) | Err(Errno::ENOENT) if Instant::now() < deadline => {}
                Ok(_) => return Err(Errno::EEXIST).during_at(Step::Placeholders, "openat", &wanted.path),
                Err(errno) => return Err(errno).during_at(Step::Placeholders, "fstatat", &wanted.path),
            }
        }
    }

    /// What the manifest says of it.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Removes it, unless another run uses it.
    pub fn remove(self) -> Removed {
        // Of two runs that end at once, the first to ask gives up its own lock and fails, the second gets it.
        match self.lock.relock(FlockArg::LockExclusiveNonblock) {
            Ok(()) => {
                unlink(&self.parent, &self.entry);
                Removed::Done
            }
            Err(_) => Removed::InUse,
        }
    }
}

/// Removes what a manifest without an owner names.
pub fn remove_lost(entry: &Entry) -> Removed {
    let path = entry.path();
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Removed::Done };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let Ok(parent) = open(parent, flags, Mode::empty()) else { return Removed::Done };
    let Ok(file) = reopen(&parent, name.as_ref(), entry.directory) else { return Removed::Done };
    match Flock::lock(File::from(file), FlockArg::LockExclusiveNonblock) {
        Ok(_lock) => {
            unlink(&parent, entry);
            Removed::Done
        }
        Err(_) => Removed::InUse,
    }
}

/// Under the exclusive lock: removes the path if it is still the placeholder, and still empty.
fn unlink(parent: &OwnedFd, entry: &Entry) {
    let path: PathBuf = entry.path();
    let Some(name) = path.file_name() else { return };
    let Ok(now) = fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) else { return };
    if !entry.is(&now) || (!entry.directory && now.st_size != 0) {
        return;
    }
    // A folder that somebody has filled is not removed by this call.
    let flag = if entry.directory { UnlinkatFlags::RemoveDir } else { UnlinkatFlags::NoRemoveDir };
    let _ = unlinkat(parent, name, flag);
}

fn create(parent: &OwnedFd, name: &Path, wanted: &Placeholder) -> nix::Result<OwnedFd> {
    let mode = Mode::from_bits_truncate(wanted.mode);
    if wanted.directory {
        mkdirat(parent, name, mode)?;
        return reopen(parent, name, true);
    }
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = openat(parent, name, flags, mode)?;
    // Whatever the umask.
    fchmod(&file, mode)?;
    Ok(file)
}

fn reopen(parent: &OwnedFd, name: &Path, directory: bool) -> nix::Result<OwnedFd> {
    let kind = if directory { OFlag::O_DIRECTORY } else { OFlag::O_NONBLOCK };
    let file =
        openat(parent, name, OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | kind, Mode::empty())?;
    let stat = fstat(&file)?;
    let is_one = if directory {
        is_kind(&stat, SFlag::S_IFDIR)
    } else {
        is_kind(&stat, SFlag::S_IFREG) && stat.st_size == 0
    };
    if is_one { Ok(file) } else { Err(Errno::EEXIST) }
}

fn is_kind(stat: &FileStat, kind: SFlag) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(path: PathBuf, directory: bool) -> Placeholder {
        Placeholder { path, directory, mode: if directory { 0o755 } else { 0o444 } }
    }

    fn held(wanted: &Placeholder) -> Held {
        match Held::make(wanted, |_| true).unwrap() {
            Made::Held(held) => held,
            Made::Refused => panic!("refused"),
        }
    }

    #[test]
    fn the_last_of_several_runs_removes_it() {
        let dir = tempfile::tempdir().unwrap();
        for directory in [false, true] {
            let wanted = wanted(dir.path().join("x"), directory);
            let (first, second) = (held(&wanted), held(&wanted));
            assert_eq!(first.entry(), second.entry());
            assert_eq!(first.remove(), Removed::InUse);
            assert!(wanted.path.exists());
            assert_eq!(second.remove(), Removed::Done);
            assert!(!wanted.path.exists());
        }
    }

    #[test]
    fn what_is_somebodys_own_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        // Filled while it was a placeholder.
        let filled = held(&wanted(path.clone(), false));
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert_eq!(filled.remove(), Removed::Done);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        // There before: neither joined nor replaced.
        assert!(Held::make(&wanted(path.clone(), false), |_| true).is_err());
        std::fs::write(&path, "").unwrap();
        assert!(Held::make(&wanted(path.clone(), false), |_| false).is_err());
        assert!(path.exists());
        // Replaced by another empty file.
        std::fs::remove_file(&path).unwrap();
        let replaced = held(&wanted(path.clone(), false));
        std::fs::rename(&path, dir.path().join("old")).unwrap();
        std::fs::write(&path, "").unwrap();
        assert_eq!(replaced.remove(), Removed::Done);
        assert!(path.exists());
        // A folder with something in it.
        let folder = dir.path().join("d");
        let kept = held(&wanted(folder.clone(), true));
        std::fs::write(folder.join("f"), "").unwrap();
        assert_eq!(kept.remove(), Removed::Done);
        assert!(folder.join("f").exists());
    }

    #[test]
    fn a_lost_one_is_removed_unless_it_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = wanted(dir.path().join("x"), false);
        let user = held(&wanted);
        let entry = user.entry().clone();
        assert_eq!(remove_lost(&entry), Removed::InUse);
        drop(user);
        assert_eq!(remove_lost(&entry), Removed::Done);
        assert!(!wanted.path.exists());
        assert_eq!(remove_lost(&entry), Removed::Done);
    }

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::os::unix::fs::symlink("target", &path).unwrap();
        assert!(Held::make(&wanted(path, false), |_| true).is_err());
        assert!(!dir.path().join("target").exists());
    }
}
