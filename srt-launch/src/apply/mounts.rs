//! The tree of the sandbox: a copy of the host's mounts, and the plan's mounts over it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::mount::{MntFlags, umount2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, mkdirat, umask};
use nix::unistd::{chdir, fchdir, pivot_root};

use super::closed::Closed;
use super::failure::{During, Failure, Step};
use crate::plan::{Isolation, Mount, MountKind, Root};
use crate::sys;

/// Attributes of every mount that holds no device and no program of ours.
pub const INERT: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;

/// The new root on its way: attached over `/` of the sandbox's mount namespace, but not yet entered, so that
/// paths still name the host's own files while descriptors reach into the new tree.
pub struct Tree {
    /// The host's tree: what mounts are copied from.
    host: OwnedFd,
    /// The new root: what they are attached to.
    root: OwnedFd,
    /// Attributes that every copy of a host's mount gets.
    copied: u64,
    /// Devices of the empty directories: the only places where a mount point may be made.
    empty_dirs: Vec<libc::dev_t>,
    /// Folders that this process may not search.
    pub(super) closed: Closed,
}

impl Tree {
    /// Copies the host's mounts.
    pub fn copy_host(root: &Root, isolation: &Isolation) -> Result<Self, Failure> {
        let host = open("/", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
            .during(Step::HostTree, "open(/)")?;
        let mut copied = 0;
        if isolation.nosuid {
            copied |= libc::MOUNT_ATTR_NOSUID;
        }
        if isolation.nodev {
            copied |= libc::MOUNT_ATTR_NODEV;
        }
        let read_only = if root.writable { 0 } else { libc::MOUNT_ATTR_RDONLY };
        let copy = sys::clone_tree(&host, true).during(Step::HostTree, "open_tree(/, recursive)")?;
        // Before it is attached anywhere: at no time is there a writable way in. It is cut from the host's
        // mounts too: a disk mounted there later would appear here, writable.
        sys::set_mount_attributes(&copy, copied | read_only, true)
            .during(Step::HostTree, "mount_setattr(/, recursive)")?;
        sys::attach_mount(&copy, &host).during(Step::HostTree, "move_mount(/)")?;
        Ok(Self { host, root: copy, copied, empty_dirs: Vec::new(), closed: Closed::default() })
    }

    /// Opens a path of the host, no component of which may be a symbolic link but the last, which is not
    /// followed.
    pub fn open_host(&self, path: &Path) -> nix::Result<OwnedFd> {
        open_below(&self.host, path)
    }

    /// Opens a path of the new tree in the same way. A link that somebody planted since the plan was made, in
    /// a directory that commands may write, thus ends the run instead of moving a mount.
    pub fn open_target(&self, path: &Path) -> nix::Result<OwnedFd> {
        open_below(&self.root, path)
    }

    /// Makes one mount of the plan. `empty_file` is what lies over read-denied files.
    pub fn mount(&mut self, mount: &Mount, empty_file: impl AsFd) -> Result<(), Failure> {
        let Err(failure) = self.mount_kind(&mount.kind, &mount.target, empty_file.as_fd()) else {
            return Ok(());
        };
        let ours = ["/dev", "/proc"].iter().any(|ours| mount.target.starts_with(ours));
        if ours {
            // Our own /dev and /proc lack most of what the host's have: nothing is there to protect.
            return if failure.errno == Errno::ENOENT as i32 { Ok(()) } else { Err(failure) };
        }
        match self.closed_above(mount) {
            Some(folder) => self.mount_closed(folder, mount, empty_file),
            None => Err(failure),
        }
    }

    /// Makes one mount, whatever the reason.
    pub(super) fn mount_kind(
        &mut self,
        kind: &MountKind,
        path: &Path,
        empty_file: impl AsFd,
    ) -> Result<(), Failure> {
        const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
        let target = match kind {
            MountKind::Reopen { source, .. } => self.make_mount_point(path, source)?,
            _ => self.open_target(path).during_at(Step::Mount, "openat2", path)?,
        };
        let mount = match kind {
            MountKind::Writable => self.copy(path, 0)?,
            MountKind::ReadOnly => self.copy(path, READ_ONLY)?,
            MountKind::Reopen { source, writable: true } => self.copy(source, 0)?,
            MountKind::Reopen { source, writable: false } => self.copy(source, READ_ONLY)?,
            MountKind::Pin => self.pin(path, &target, empty_file)?,
            MountKind::EmptyFile => {
                sys::clone_tree(empty_file, false).during_at(Step::Mount, "open_tree", path)?
            }
            MountKind::EmptyDir => {
                let tmpfs = sys::new_filesystem(c"tmpfs", &[(c"mode", c"0755")], INERT).during_at(
                    Step::Mount,
                    "fsmount(tmpfs)",
                    path,
                )?;
                self.empty_dirs.push(stat(&tmpfs, path)?.st_dev);
                tmpfs
            }
        };
        attach(mount, target, path)
    }

    /// Attaches the host's `source` with all below it.
    fn copy(&self, source: &Path, attributes: u64) -> Result<OwnedFd, Failure> {
        let host = self.open_host(source).during_at(Step::Mount, "openat2", source)?;
        let mount = sys::clone_tree(host, true).during_at(Step::Mount, "open_tree", source)?;
        sys::set_mount_attributes(&mount, self.copied | attributes, true).during_at(
            Step::Mount,
            "mount_setattr",
            source,
        )?;
        Ok(mount)
    }

    /// What keeps a name in its place. Read-only, because nothing but the plan's order buries it.
    fn pin(&self, path: &Path, target: &OwnedFd, empty_file: impl AsFd) -> Result<OwnedFd, Failure> {
        if kind_of(&stat(target, path)?) != SFlag::S_IFDIR {
            return sys::clone_tree(empty_file, false).during_at(Step::Mount, "open_tree", path);
        }
        let host = self.open_host(path).during_at(Step::Mount, "openat2", path)?;
        let alone = match sys::clone_tree(&host, false) {
            // A directory with locked mounts below it: the kernel copies it with them or not at all.
            Err(Errno::EINVAL) => sys::clone_tree(&host, true),
            result => result,
        };
        let mount = alone.during_at(Step::Mount, "open_tree", path)?;
        sys::set_mount_attributes(&mount, self.copied | libc::MOUNT_ATTR_RDONLY, true).during_at(
            Step::Mount,
            "mount_setattr",
            path,
        )?;
        Ok(mount)
    }

    /// Makes what is missing of `path` in the empty directory that hides it: folders, and for a `source` that
    /// is no directory a file.
    fn make_mount_point(&self, path: &Path, source: &Path) -> Result<OwnedFd, Failure> {
        let source = self.open_host(source).during_at(Step::Mount, "openat2", source)?;
        let directory = kind_of(&stat(&source, path)?) == SFlag::S_IFDIR;
        let Some(missing) = path.ancestors().position(|ancestor| self.open_target(ancestor).is_ok()) else {
            return Err(Errno::ENOENT).during_at(Step::Mount, "openat2", path);
        };
        for depth in (0..missing).rev() {
            let here = path.ancestors().nth(depth).unwrap_or(path);
            let (Some(parent), Some(name)) = (here.parent(), here.file_name()) else { continue };
            let parent = self.open_target(parent).during_at(Step::Mount, "openat2", parent)?;
            // A mount point made anywhere else would be made on the host.
            if !self.empty_dirs.contains(&stat(&parent, here)?.st_dev) {
                return Err(Errno::ENOENT).during_at(Step::Mount, "openat2", here);
            }
            if depth > 0 || directory {
                mkdirat(&parent, name, Mode::from_bits_truncate(0o755)).during_at(
                    Step::Mount,
                    "mkdirat",
                    here,
                )?;
            } else {
                make_file(&parent, name.as_ref(), 0o644).during_at(Step::Mount, "openat", here)?;
            }
        }
        self.open_target(path).during_at(Step::Mount, "openat2", path)
    }

    /// Makes the new tree the root of this process and drops the host's, then goes to the working directory:
    /// `cwd`, or where the plan hides that the first that is there of `fallbacks`.
    pub fn enter<'a>(
        self,
        cwd: &'a Path,
        fallbacks: impl IntoIterator<Item = &'a Path>,
    ) -> Result<(), Failure> {
        fchdir(&self.root).during(Step::Root, "fchdir")?;
        // With both arguments the same, the old root ends up on top of the new one, and needs no directory.
        pivot_root(".", ".").during(Step::Root, "pivot_root")?;
        umount2(".", MntFlags::MNT_DETACH).during(Step::Root, "umount2")?;
        let result = chdir(cwd);
        match result {
            Err(Errno::ENOENT | Errno::EACCES) => {
                let reached = fallbacks.into_iter().any(|folder| chdir(folder).is_ok());
                if reached { Ok(()) } else { result }
            }
            result => result,
        }
        .during_at(Step::WorkingDirectory, "chdir", cwd)
    }
}

/// Attaches a detached mount.
pub fn attach(mount: impl AsFd, target: impl AsFd, path: &Path) -> Result<(), Failure> {
    sys::attach_mount(mount, target).during_at(Step::Mount, "move_mount", path)
}

/// Opens an absolute path below `root`, or a relative one, without following any link.
pub fn open_below(root: impl AsFd, path: &Path) -> nix::Result<OwnedFd> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    let relative = if relative.components().next().is_none() { Path::new(".") } else { relative };
    if relative.components().any(|part| part == Component::ParentDir) {
        return Err(Errno::EINVAL);
    }
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(root, relative, how)
}

/// Runs `make` so that modes are meant as they are written, whatever the caller's umask.
pub fn with_exact_modes<T>(make: impl FnOnce() -> T) -> T {
    let before = umask(Mode::empty());
    let made = make();
    umask(before);
    made
}

/// Makes an empty file with these permission bits. `name` is a single name.
pub fn make_file(directory: impl AsFd, name: &Path, mode: u32) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(directory, name, flags, Mode::from_bits_truncate(mode))
}

fn stat(file: impl AsFd, path: &Path) -> Result<FileStat, Failure> {
    fstat(file).during_at(Step::Mount, "fstat", path)
}

fn kind_of(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}
