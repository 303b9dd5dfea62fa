//! Making and removing one placeholder.

use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions, TryLockError};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, open, openat};
use nix::sys::stat::{Mode, fchmod, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, linkat, unlinkat, write};

use super::manifest::{self, Dead, Entry, Identity, Manifest};
use crate::apply::{During, Failure, Step, SystemError, open_below};
use crate::limits::{JANITOR_PATIENCE, PLACEHOLDER_PAUSE, PLACEHOLDER_WAIT};
use crate::plan::Placeholder;
use crate::shortage::{is_elsewhere, is_shortage};

/// A placeholder that this run holds: its lock lives in the open file.
pub struct Held {
    path: PathBuf,
    file: File,
    directory: bool,
    /// Its inode.
    pub identity: Identity,
}

impl Held {
    /// Whether it is a folder: another run may have made the one or the other.
    pub fn is_directory(&self) -> bool {
        self.directory
    }
}

/// Makes a placeholder, or joins the run that has it. `None` where the host refuses to make it and so would
/// refuse the command.
pub fn hold(placeholder: &Placeholder, ours: &Manifest) -> Result<Option<Held>, Failure> {
    let Placeholder { path, .. } = placeholder;
    let deadline = Instant::now() + PLACEHOLDER_WAIT;
    loop {
        let step = match make(placeholder) {
            Err(Errno::EEXIST) => join(path, ours),
            Err(Errno::EACCES | Errno::EPERM | Errno::EROFS | Errno::ENAMETOOLONG) => return Ok(None),
            result => result,
        };
        match step.during_at(Step::Placeholders, "open", path)? {
            Some(held) => return Ok(Some(held)),
            // Another run is making or removing it this moment.
            None if Instant::now() < deadline => sleep(PLACEHOLDER_PAUSE),
            // A stopped run, or somebody's file of that name: a new plan may know better.
            None => return Err(Errno::EEXIST).during_at(Step::Placeholders, "flock", path),
        }
    }
}

/// Removes a placeholder if it is still what it was and nobody else holds it. Whether it is done with: it is
/// gone, or somebody who lists it as well will see to it.
pub fn release(held: Held, ours: &Manifest) -> bool {
    let deadline = Instant::now() + JANITOR_PATIENCE;
    loop {
        match try_remove(&held) {
            Ok(true) => return true,
            Err(errno) if is_elsewhere(errno) => return true,
            // The next run may do better.
            Err(errno) if !is_shortage(errno) => return false,
            _ => {}
        }
        let listed = manifest::entries(Some(ours));
        if listed.is_ok_and(|listed| listed.iter().any(|entry| entry.made == Some(held.identity))) {
            return true;
        }
        // A stranger has it locked, a run that looks whether we live for instance.
        if Instant::now() >= deadline {
            return false;
        }
        sleep(PLACEHOLDER_PAUSE);
    }
}

/// Removes what a dead run lists, then its manifest. What somebody else holds keeps the manifest.
pub fn clear(mut dead: Dead) {
    // Children before parents.
    dead.entries.sort_by(|a, b| b.placeholder.path.cmp(&a.placeholder.path));
    let mut done = true;
    for entry in &dead.entries {
        done &= clear_one(&dead, entry).unwrap_or_else(is_elsewhere);
    }
    if done {
        dead.remove();
    }
}

/// Removes what a dead run lists if it is there. False if somebody else has it.
fn clear_one(dead: &Dead, entry: &Entry) -> nix::Result<bool> {
    let Placeholder { path, directory, .. } = &entry.placeholder;
    let (file, ..) = open_existing(path)?;
    let found = metadata(&file)?;
    let identity = Identity::of(&found);
    let made = entry.made == Some(identity) || dead.has_made(entry, &found);
    if !made || found.uid() != entry.owner.as_raw() {
        return Ok(true);
    }
    try_remove(&Held { path: path.clone(), file, directory: *directory, identity })
}

/// Makes the file or folder and takes the shared lock. Leaves nothing if it cannot.
fn make(placeholder: &Placeholder) -> nix::Result<Option<Held>> {
    let Placeholder { path, directory, mode } = placeholder;
    let (parent, name) = split(path)?;
    let mode = Mode::from_bits_truncate(*mode);
    with_permission(&parent, || {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // Only what is known to be made here may be taken back.
        let take_back = |_: &Errno| {
            let _ = unlinkat(&parent, name, removal(*directory));
        };
        let file = if *directory {
            mkdirat(&parent, name, mode)?;
            openat(&parent, name, flags | OFlag::O_DIRECTORY, Mode::empty()).inspect_err(take_back)?
        } else {
            make_file(&parent, name, contents(path), mode)?
        };
        // Whatever the umask. A file system without modes refuses it, and none is needed under a mount.
        let _ = fchmod(&file, mode);
        lock_shared(path, File::from(file), &parent, name).inspect_err(take_back)
    })
}

fn removal(directory: bool) -> UnlinkatFlags {
    if directory { UnlinkatFlags::RemoveDir } else { UnlinkatFlags::NoRemoveDir }
}

/// What a placeholder holds: nothing, but where git would take an empty file for damage. There it says what its
/// absence says, that the git directory shares nothing with another one.
fn contents(path: &Path) -> &'static [u8] {
    if path.file_name() == Some(OsStr::new("commondir")) { b".\n" } else { b"" }
}

/// Makes a file of a name that is not there, and never shows it without its contents.
fn make_file(parent: &OwnedFd, name: &Path, contents: &[u8], mode: Mode) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
    let create = || openat(parent, name, flags | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW, mode);
    if contents.is_empty() {
        return create();
    }
    let (file, linked) = match openat(parent, ".", flags | OFlag::O_TMPFILE, mode) {
        // Not every file system can.
        Err(Errno::EOPNOTSUPP | Errno::EISDIR) => (create()?, true),
        result => (result?, false),
    };
    let written = write(&file, contents);
    if let Err(errno) = written {
        if linked {
            let _ = unlinkat(parent, name, removal(false));
        }
        return Err(errno);
    }
    if !linked {
        let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
        linkat(AT_FDCWD, unnamed.as_str(), parent, name, AtFlags::AT_SYMLINK_FOLLOW)?;
    }
    Ok(file)
}

/// Whether a file is as [`make_file`] made it.
fn is_untouched(held: &Held) -> nix::Result<bool> {
    let wanted = contents(&held.path);
    if metadata(&held.file)?.len() != wanted.len() as u64 {
        return Ok(false);
    }
    let mut found = [0; 4];
    let length = held.file.read_at(&mut found, 0).map_err(|error| error.errno())?;
    Ok(&found[..length] == wanted)
}

/// Locks the placeholder of another run. `None`: not now, or it has gone, look again.
fn join(path: &Path, ours: &Manifest) -> nix::Result<Option<Held>> {
    let (file, parent, name) = match open_existing(path) {
        Ok(opened) => opened,
        Err(errno) if is_shortage(errno) => return Err(errno),
        Err(Errno::ENOENT) => return Ok(None),
        Err(_) => return Err(Errno::EEXIST),
    };
    let identity = Identity::of(&metadata(&file)?);
    let entries = manifest::entries(Some(ours)).map_err(|error| error.errno())?;
    let listed: Vec<_> = entries.iter().filter(|entry| entry.placeholder.path == path).collect();
    if listed.iter().any(|entry| entry.made == Some(identity)) {
        lock_shared(path, file, &parent, name)
    } else if listed.iter().any(|entry| entry.made.is_none()) {
        // Perhaps just made, and about to be noted.
        Ok(None)
    } else {
        // Not a placeholder but somebody's file, since the plan was made.
        Err(Errno::EEXIST)
    }
}

/// Takes the shared lock, and looks that the file is still the one of that name.
fn lock_shared(path: &Path, file: File, parent: &OwnedFd, name: &Path) -> nix::Result<Option<Held>> {
    match file.try_lock_shared() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error.errno()),
    }
    let found = metadata(&file)?;
    let held =
        Held { path: path.to_owned(), file, directory: found.is_dir(), identity: Identity::of(&found) };
    Ok(is_in_place(&held, parent, name)?.then_some(held))
}

/// Removes it under an exclusive lock. False if somebody else has a lock, an error if it cannot be looked at or removed
/// now.
fn try_remove(held: &Held) -> nix::Result<bool> {
    if let Err(TryLockError::WouldBlock) = held.file.try_lock() {
        return Ok(false);
    }
    let (parent, name) = split(&held.path)?;
    if (held.directory || is_untouched(held)?) && is_in_place(held, &parent, name)? {
        match with_permission(&parent, || unlinkat(&parent, name, removal(held.directory))) {
            // A folder that is in use by now stays.
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => {}
            result => result?,
        }
    }
    Ok(true)
}

fn is_in_place(held: &Held, parent: &OwnedFd, name: &Path) -> nix::Result<bool> {
    match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Err(Errno::ENOENT) => Ok(false),
        result => {
            let (named, open) = (result?, metadata(&held.file)?);
            Ok(named.st_dev == open.dev() && named.st_ino == open.ino())
        }
    }
}

/// Runs `action` in a folder; where that is refused, and the folder is the user's own, with the permission
/// lent for that moment: the command could give it to itself too.
fn with_permission<T>(folder: &OwnedFd, action: impl Fn() -> nix::Result<T>) -> nix::Result<T> {
    let refused = match action() {
        Err(Errno::EACCES) => Errno::EACCES,
        result => return result,
    };
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let Ok(found) = std::fs::metadata(&path) else { return Err(refused) };
    let allow = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode));
    let mode = found.mode() & 0o7777;
    if found.uid() != geteuid().as_raw() || allow(mode | 0o700).is_err() {
        return Err(refused);
    }
    let result = action();
    let _ = allow(mode);
    result
}

/// The folder, opened without following any link, and the name in it.
fn split(path: &Path) -> nix::Result<(OwnedFd, &Path)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::EINVAL) };
    let root = open("/", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    Ok((open_below(root, parent)?, Path::new(name)))
}

fn open_existing(path: &Path) -> nix::Result<(File, OwnedFd, &Path)> {
    let (parent, name) = split(path)?;
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = openat(&parent, name, flags, Mode::empty())?;
    Ok((File::from(file), parent, name))
}

fn metadata(file: &File) -> nix::Result<Metadata> {
    file.metadata().map_err(|error| error.errno())
}
