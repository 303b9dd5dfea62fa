//! Which placeholders each run uses, written where no command can see it: a run that was killed together with the
//! process that should have cleaned up is cleaned up after by the next.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::sys::stat::FileStat;
use nix::unistd::{geteuid, getpid};
use serde::{Deserialize, Serialize};

use super::placeholder::{Removed, remove_lost};
use crate::limits::{PLACEHOLDER_PAUSE, PLACEHOLDER_WAIT};
use crate::plan::Placeholder;

/// Memory that every user may write to and that no sandbox shows: theirs is its own. It is empty after a reboot, which
/// a placeholder on disk is not; one that a power failure left must be removed by hand.
const SHARED_MEMORY: &str = "/dev/shm";

/// One placeholder in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Paths are bytes.
    path: Vec<u8>,
    /// A folder, not a file.
    pub directory: bool,
    device: u64,
    inode: u64,
    mode: u32,
}

impl Entry {
    /// An entry for what `stat` says of it.
    pub fn new(path: &Path, directory: bool, stat: &FileStat) -> Self {
        let path = path.as_os_str().as_bytes().to_vec();
        Self { path, directory, device: stat.st_dev, inode: stat.st_ino, mode: stat.st_mode & 0o7777 }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        OsStr::from_bytes(&self.path).into()
    }

    /// Whether `stat` is of the very same file.
    pub fn is(&self, stat: &FileStat) -> bool {
        (stat.st_dev, stat.st_ino) == (self.device, self.inode)
    }
}

/// The folder of this user's manifests; made, if `make`. `None` where it is missing or not to be trusted.
pub fn state_folder(make: bool) -> Option<PathBuf> {
    let folder = Path::new(SHARED_MEMORY).join(format!("srt-{}", geteuid()));
    if make {
        let _ = fs::DirBuilder::new().mode(0o700).create(&folder);
    }
    // The parent is everybody's: somebody may have been there before us.
    let found = fs::symlink_metadata(&folder).ok()?;
    let trusted = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    trusted.then_some(folder)
}

/// The manifest of a run that is alive: it is locked for as long.
#[derive(Debug)]
pub struct Manifest {
    path: PathBuf,
    file: File,
}

impl Manifest {
    /// An empty one.
    pub fn create() -> io::Result<Self> {
        let folder = state_folder(true).ok_or(io::ErrorKind::PermissionDenied)?;
        let path = folder.join(getpid().to_string());
        let deadline = Instant::now() + PLACEHOLDER_WAIT;
        loop {
            let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path)?;
            // Until it is locked it looks like one of a dead run, and another run may be about to remove it.
            if file.try_lock().is_ok() && file.metadata()?.nlink() > 0 {
                return Ok(Self { path, file });
            }
            if Instant::now() > deadline {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            std::thread::sleep(PLACEHOLDER_PAUSE);
        }
    }

    /// Adds a placeholder, before anything relies on it.
    pub fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }

    /// Nothing of it is left.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
        // The folder goes with the last one.
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// Placeholders of sandboxes that run now.
pub fn live_placeholders() -> Vec<Placeholder> {
    let live = others().into_iter().filter(|other| other.file.try_lock_shared().is_err());
    live.flat_map(Other::entries)
        .map(|entry| Placeholder { path: entry.path(), directory: entry.directory, mode: entry.mode })
        .collect()
}

/// Whether a run that is alive uses this path.
pub fn is_live(path: &Path) -> bool {
    live_placeholders().iter().any(|placeholder| placeholder.path == path)
}

/// Removes what dead runs left.
pub fn remove_lost_ones() {
    for other in others() {
        if other.file.try_lock().is_err() {
            continue;
        }
        let path = other.path.clone();
        let Ok(locked) = other.file.try_clone() else { continue };
        // Folders were made before what lies in them.
        let in_use =
            other.entries().iter().rev().filter(|entry| remove_lost(entry) == Removed::InUse).count();
        if in_use == 0 {
            let _ = fs::remove_file(path);
        }
        drop(locked);
    }
}

struct Other {
    path: PathBuf,
    file: File,
}

impl Other {
    fn entries(mut self) -> Vec<Entry> {
        let mut text = Vec::new();
        let _ = self.file.read_to_end(&mut text);
        text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

fn others() -> Vec<Other> {
    let Some(folder) = state_folder(false) else { return Vec::new() };
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    files
        .flatten()
        .filter_map(|found| Some(Other { file: File::open(found.path()).ok()?, path: found.path() }))
        .collect()
}
