use std::{
    cell::RefCell,
    collections::{HashMap, HashSet, VecDeque},
    ffi::{OsStr, OsString},
    fs::{self, DirEntry, FileType, Metadata},
    io::{self, ErrorKind},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags},
    unistd::{AccessFlags, faccessat, getegid, getgroups},
};

use crate::hint::OPEN_FILES;
use crate::shortage::is_shortage;

/// The host's tree as the caller may look at it. Nothing here changes it.
#[derive(Debug)]
pub(super) struct Host {
    uid: u32,
    /// Placeholders of sandboxes that run now: there, and yet not there.
    ghosts: HashSet<PathBuf>,
    /// Directories that were met on the way to something. Most paths of a plan share their first steps; that one is
    /// replaced by a link meanwhile would be noticed when mounts are made, where none is followed.
    passed: RefCell<HashSet<PathBuf>>,
    /// What [`Self::creation`] has answered.
    creations: RefCell<HashMap<PathBuf, Creation>>,
    /// The first place that had to be looked at and could not.
    shortage: RefCell<Option<Shortage>>,
}

/// What could not be looked at, and why. What is taken for absent is not protected, so no plan may come of it.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot look at {path:?}: {error}; nothing is run, since what is there decides what is protected{}",
    hint(error)
)]
pub struct Shortage {
    path: PathBuf,
    error: io::Error,
}

fn hint(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE) => format!("; {OPEN_FILES}"),
        _ => String::new(),
    }
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lookup {
    /// What is found at its end.
    pub(super) found: Found,
    /// Symbolic links that were followed on the way, each by its own resolved name.
    pub(super) links: Vec<PathBuf>,
}

/// What is at the end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Something, at this path without links.
    There(PathBuf, Kind),
    /// Nothing; the deepest directory on the way, and the names missing in it.
    Missing(PathBuf, PathBuf),
    /// Nothing, and there can be nothing: a file lies above it.
    BelowFile(PathBuf),
    /// A step that cannot be looked at; the deepest directory above it that can.
    Unknown(PathBuf),
    /// Links that lead in a circle.
    Circle,
}

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A directory.
    Directory,
    /// A symbolic link, not followed.
    Link,
    /// A file, or a fifo, socket or device.
    File,
}

/// Whether a command of this user could make a new name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Creation {
    /// It could.
    Possible,
    /// It could after a `chmod`, which nothing keeps the owner from.
    AfterChmod,
    /// The directory refuses it.
    Refused,
}

/// As the kernel has it (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// The longest name of one component (`NAME_MAX`).
const MAX_NAME: usize = 255;

impl Host {
    pub(super) fn new(uid: u32, ghosts: impl IntoIterator<Item = PathBuf>) -> Self {
        let ghosts = ghosts.into_iter().collect();
        Self {
            uid,
            ghosts,
            passed: RefCell::default(),
            creations: RefCell::default(),
            shortage: RefCell::default(),
        }
    }

    /// Takes note if a look at a path failed for want of something. Every look goes through here.
    pub(super) fn heed<T>(&self, path: &Path, look: io::Result<T>) -> io::Result<T> {
        look.inspect_err(|error| {
            if error.raw_os_error().map(Errno::from_raw).is_some_and(is_shortage) {
                self.refuse(path, error);
            }
        })
    }

    /// Has the plan refused, because of a path that could not be looked at.
    pub(super) fn refuse(&self, path: &Path, error: &io::Error) {
        // An error of the system cannot be copied, but made anew.
        let error = error.raw_os_error().map_or(error.kind().into(), io::Error::from_raw_os_error);
        self.shortage.borrow_mut().get_or_insert_with(|| Shortage { path: path.into(), error });
    }

    /// Whether all could be looked at.
    pub(super) fn check(self) -> Result<(), Shortage> {
        self.shortage.into_inner().map_or(Ok(()), Err)
    }

    /// As `read_dir`. An error is that of the folder or of the first entry that has one.
    pub(super) fn entries(&self, directory: &Path) -> io::Result<Vec<DirEntry>> {
        self.heed(directory, fs::read_dir(directory).and_then(Iterator::collect))
    }

    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    pub(super) fn is_ghost(&self, path: &Path) -> bool {
        !self.ghosts.is_empty() && self.ghosts.contains(path)
    }

    /// Follows a path, its last component too.
    pub(super) fn follow(&self, path: &Path) -> Lookup {
        self.lookup(path, true)
    }

    /// Follows a path up to its last component.
    pub(super) fn follow_parents(&self, path: &Path) -> Lookup {
        self.lookup(path, false)
    }

    /// As `lstat`, but for placeholders.
    pub(super) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        if self.is_ghost(path) {
            return Err(ErrorKind::NotFound.into());
        }
        self.lstat(path)
    }

    /// As `lstat`, placeholders included.
    pub(super) fn lstat(&self, path: &Path) -> io::Result<Metadata> {
        self.heed(path, fs::symlink_metadata(path))
    }

    /// Whether a name could be made in a directory, by the caller and by its command: inside, uid 0 has power
    /// over its own files only, since no other user is mapped there.
    pub(super) fn creation(&self, directory: &Path) -> Creation {
        if let Some(known) = self.creations.borrow().get(directory) {
            return *known;
        }
        let answer = self.ask_creation(directory);
        self.creations.borrow_mut().insert(directory.to_owned(), answer);
        answer
    }

    fn ask_creation(&self, directory: &Path) -> Creation {
        let access =
            faccessat(AT_FDCWD, directory, AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS);
        let _ = self.heed(directory, access.map_err(io::Error::from));
        let Ok(metadata) = self.lstat(directory) else { return Creation::Refused };
        let own = metadata.uid() == self.uid;
        match access {
            Ok(()) if self.uid != 0 || own => Creation::Possible,
            Ok(()) => {
                let by_group = metadata.gid() == 0 && metadata.mode() & 0o030 == 0o030;
                if by_group || metadata.mode() & 0o003 == 0o003 {
                    Creation::Possible
                } else {
                    Creation::Refused
                }
            }
            Err(Errno::EROFS) => Creation::Refused,
            Err(_) if own => Creation::AfterChmod,
            Err(_) => Creation::Refused,
        }
    }

    /// The folder above a resolved path that root may search and its command may not: no user but root is mapped
    /// inside. Where an access list grants what the mode does not, this is wrong, and nothing but a warning may
    /// come of it.
    pub(super) fn closed_to_command(&self, path: &Path) -> Option<PathBuf> {
        if self.uid != 0 {
            return None;
        }
        let groups: Vec<u32> = getgroups().unwrap_or_default().iter().map(|group| group.as_raw()).collect();
        let of_group = |gid: u32| gid == getegid().as_raw() || groups.contains(&gid);
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        let closed = above.into_iter().rev().find(|directory| {
            self.lstat(directory).is_ok_and(|found| {
                let bit = if of_group(found.gid()) { 0o010 } else { 0o001 };
                found.uid() != 0 && found.mode() & bit == 0
            })
        });
        closed.map(Path::to_path_buf)
    }

    fn lookup(&self, path: &Path, follow_last: bool) -> Lookup {
        let mut links = Vec::new();
        let found = self.walk(path, follow_last, &mut links);
        Lookup { found, links }
    }

    fn walk(&self, path: &Path, follow_last: bool, links: &mut Vec<PathBuf>) -> Found {
        let mut here = PathBuf::from("/");
        let mut pending: VecDeque<OsString> = names(path).map(OsStr::to_os_string).collect();
        while let Some(name) = pending.pop_front() {
            if name == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&name);
            if self.passed.borrow().contains(&next) {
                here = next;
                continue;
            }
            let metadata = match self.metadata(&next) {
                Ok(metadata) => metadata,
                // A name longer than any file system takes cannot be hidden by an error.
                Err(error) if error.kind() == ErrorKind::NotFound || name.len() > MAX_NAME => {
                    return Found::Missing(here, std::iter::once(name).chain(pending).collect());
                }
                Err(_) => return Found::Unknown(here),
            };
            if metadata.is_symlink() && (follow_last || !pending.is_empty()) {
                let target = self.heed(&next, fs::read_link(&next));
                let Ok(target) = target else { return Found::Unknown(here) };
                links.push(next);
                if links.len() > MAX_LINKS {
                    return Found::Circle;
                }
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                    pending.push_front(name.to_os_string());
                }
            } else if metadata.is_dir() {
                self.passed.borrow_mut().insert(next.clone());
                here = next;
            } else if pending.is_empty() {
                return Found::There(next, Kind::of(metadata.file_type()));
            } else {
                return Found::BelowFile(next);
            }
        }
        Found::There(here, Kind::Directory)
    }
}

impl Lookup {
    /// The path without links, if something is there.
    pub(super) fn there(&self) -> Option<&Path> {
        match &self.found {
            Found::There(path, _) => Some(path),
            _ => None,
        }
    }
}

impl Kind {
    pub(super) fn of(kind: FileType) -> Self {
        if kind.is_dir() {
            Self::Directory
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::File
        }
    }
}

/// Makes a path absolute against `base` and takes out `.`, `..` and repeated slashes by their text alone.
pub(super) fn absolute(base: &Path, path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for component in base.join(path).components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            _ => {}
        }
    }
    out
}

/// The names of a path; `..` counts as one, `.` and empty ones do not.
fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.as_os_str()
        .as_bytes()
        .split(|&b| b == b'/')
        .filter(|name| !name.is_empty() && *name != b".")
        .map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_is_short_of_something_is_no_answer() {
        let look = |errno: i32| {
            let host = Host::new(0, []);
            let _ = host.heed::<()>(Path::new("/a b"), Err(io::Error::from_raw_os_error(errno)));
            let _ = host.heed::<()>(Path::new("/later"), Err(io::Error::from_raw_os_error(libc::ENFILE)));
            host.check().unwrap_err().to_string()
        };
        assert!(look(libc::ENOENT).starts_with("cannot look at \"/later\": "));
        assert!(look(libc::EACCES).starts_with("cannot look at \"/later\": "));
        assert!(look(libc::ENOMEM).starts_with("cannot look at \"/a b\": "));
        assert!(look(libc::EMFILE).ends_with("(ulimit -n)"));
        assert!(Host::new(0, []).check().is_ok());
    }
}
