//! Standard streams that are files of the host.
//!
//! An open file carries the mount it was opened through, which here is one of the host's own. What opens it anew by
//! `/proc/self/fd/0`, or calls `fchmod` on it, is held by that mount and not by those of the sandbox: a command could
//! write the very file it was only to read.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::unistd::{AccessFlags, Whence, access, dup2_stderr, dup2_stdin, dup2_stdout, lseek};

use super::failure::{During, Failure, Step};
use super::mounts::Tree;
use crate::sys::{self, STANDARD_STREAMS};

/// Refuses to run with a directory as a standard stream: every path that starts from one leads past all mounts.
pub fn refuse_directories() -> Result<(), Failure> {
    for stream in STANDARD_STREAMS {
        // One that cannot be looked at is closed, and leads nowhere.
        if fstat(stream).is_ok_and(|found| kind_of(&found) == SFlag::S_IFDIR) {
            let what = format!("descriptor {} leads past the sandbox", stream.as_raw_fd());
            return Err(Errno::EISDIR).during(Step::Streams, &what);
        }
    }
    Ok(())
}

/// Where each standard stream stands that is a file to be read; `None` for others. The command's are not the
/// launcher's, which are set to the same place in the end: who started us may read on.
pub fn positions() -> [Option<i64>; 3] {
    STANDARD_STREAMS.map(|stream| is_file_to_read(stream).then(|| position(stream)))
}

/// Moves a standard stream of the launcher to where the command has left its own.
pub fn set_position(stream: usize, position: i64) {
    if let Some(stream) = STANDARD_STREAMS.get(stream) {
        let _ = lseek(stream, position, Whence::SeekSet);
    }
}

/// Opens every file that came for reading once more, through a read-only copy of its mount.
pub fn reopen_read_only(tree: &Tree) -> Result<(), Failure> {
    let [stdin, stdout, stderr] = STANDARD_STREAMS.map(|stream| reopened(tree, stream));
    let replaced = [stdin?.map(dup2_stdin), stdout?.map(dup2_stdout), stderr?.map(dup2_stderr)];
    replaced.into_iter().flatten().try_for_each(|result| result.during(Step::Streams, "dup2"))
}

/// `None` where there is no need: it is no such file, or the file itself refuses what it would be opened anew for.
fn reopened(tree: &Tree, stream: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Failure> {
    if !is_file_to_read(stream) {
        return Ok(None);
    }
    let given = fstat(stream).during(Step::Streams, "fstat")?;
    if given.st_nlink == 0 {
        // A here-document of a shell: nobody will read what is written there.
        return Ok(None);
    }
    let path = std::fs::read_link(by_number(stream)).during(Step::Streams, "readlink")?;
    let named = match named_so(tree, &path, &given) {
        // Out of this user's reach, opened by whoever started us.
        Err(_) if access(&by_number(stream), AccessFlags::W_OK).is_err() => return Ok(None),
        result => result.during_at(Step::Streams, "find again", &path)?,
    };
    let mount = sys::clone_tree(named, false).during_at(Step::Streams, "open_tree", &path)?;
    sys::set_mount_attributes(&mount, libc::MOUNT_ATTR_RDONLY, false).during_at(
        Step::Streams,
        "mount_setattr",
        &path,
    )?;
    match open(&by_number(mount.as_fd()), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()) {
        // Another user's, opened by whoever started us.
        Err(Errno::EACCES) => Ok(None),
        result => {
            let file = result.during_at(Step::Streams, "open", &path)?;
            lseek(&file, position(stream), Whence::SeekSet).during_at(Step::Streams, "lseek", &path)?;
            Ok(Some(file))
        }
    }
}

/// The file of this name, if it is the one that was given.
fn named_so(tree: &Tree, path: &Path, given: &FileStat) -> nix::Result<OwnedFd> {
    let named = tree.open_host(path)?;
    let found = fstat(&named)?;
    if (found.st_dev, found.st_ino) == (given.st_dev, given.st_ino) { Ok(named) } else { Err(Errno::ESTALE) }
}

fn is_file_to_read(stream: BorrowedFd<'_>) -> bool {
    let read_only = fcntl(stream, FcntlArg::F_GETFL)
        .is_ok_and(|flags| OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE == OFlag::O_RDONLY);
    read_only && fstat(stream).is_ok_and(|found| kind_of(&found) == SFlag::S_IFREG)
}

fn position(stream: BorrowedFd<'_>) -> i64 {
    lseek(stream, 0, Whence::SeekCur).unwrap_or(0)
}

fn by_number(file: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn kind_of(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}
