//! The `/dev` of the sandbox: a few devices, terminals and memory of its own, and `/dev/srt` with what the
//! launcher provides.

use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat, mknodat, stat};
use nix::unistd::{isatty, symlinkat};

use super::failure::{During, Failure, Step};
use super::mounts::{INERT, Tree, attach, make_file, open_below, with_exact_modes};
use crate::plan::{Network, Plan, Provided};
use crate::sys;

/// Devices of the host that are the same for everybody.
const DEVICES: [&CStr; 6] = [c"null", c"zero", c"full", c"random", c"urandom", c"tty"];

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Where a terminal shows up that its processes got from outside: `ttyname` looks there.
const CONSOLE: &CStr = c"console";

/// Our own program under another name, by which it connects through the proxy: what `ssh` is given as its
/// `ProxyCommand`.
const CONNECT: &CStr = c"srt/connect";

const EMPTY_FILE: &CStr = c"srt/empty";
const EMPTY_DIR: &str = "srt/empty.d";

/// The finished `/dev`.
pub struct Dev {
    tmpfs: OwnedFd,
    /// A file without contents, to lie over others; its mount is read-only and inert.
    pub empty_file: OwnedFd,
    /// A directory without entries, in the same way.
    pub empty_dir: OwnedFd,
}

impl Dev {
    /// Makes it and attaches it to the tree.
    pub fn attach(tree: &Tree, plan: &Plan) -> Result<Self, Failure> {
        let helper = (plan.network == Network::Proxy).then_some(CONNECT);
        let tmpfs = sys::new_filesystem(c"tmpfs", &[(c"mode", c"0755")], INERT & !libc::MOUNT_ATTR_NODEV)
            .during(Step::Dev, "fsmount(tmpfs)")?;
        let terminal = caller_terminal();
        with_exact_modes(|| fill(&tmpfs, terminal.is_some(), helper))?;

        let target = tree.open_target(Path::new("/dev")).during(Step::Dev, "openat2(/dev)")?;
        attach(&tmpfs, &target, Path::new("/dev"))?;
        for name in DEVICES {
            bind_device(tree, &tmpfs, &Path::new("/dev").join(shown(name)), name)?;
        }
        if let Some(terminal) = terminal {
            bind_device(tree, &tmpfs, &terminal, CONSOLE)?;
        }
        let pts = sys::new_filesystem(
            c"devpts",
            &[(c"ptmxmode", c"0666"), (c"mode", c"0620")],
            INERT & !libc::MOUNT_ATTR_NODEV,
        )
        .during(Step::Dev, "fsmount(devpts)")?;
        attach_at(pts, &tmpfs, c"pts")?;
        let shm = sys::new_filesystem(
            c"tmpfs",
            &[(c"mode", c"1777")],
            libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        )
        .during(Step::Dev, "fsmount(tmpfs)")?;
        attach_at(shm, &tmpfs, c"shm")?;
        if let Some(name) = helper {
            bind_own_program(tree, &tmpfs, name)?;
        }
        // Nothing that is started inside can change it; the devices are mounts of their own.
        set_read_only(&tmpfs)?;

        let open = |path| open_below(&tmpfs, path).during_at(Step::Dev, "openat2", path);
        let (empty_file, empty_dir) = (open(shown(EMPTY_FILE))?, open(Path::new(EMPTY_DIR))?);
        if !plan.isolation.private_dev {
            let host = tree.open_host(Path::new("/dev")).during(Step::Dev, "openat2(/dev)")?;
            let host = sys::clone_tree(host, true).during(Step::Dev, "open_tree(/dev)")?;
            attach(host, &tmpfs, Path::new("/dev"))?;
        }
        Ok(Self { tmpfs, empty_file, empty_dir })
    }

    /// Adds files to `/dev/srt`, and binds those over the host's own that have a place there.
    pub fn provide(&self, tree: &Tree, provided: &[Provided]) -> Result<(), Failure> {
        if provided.is_empty() {
            return Ok(());
        }
        sys::clear_mount_attributes(&self.tmpfs, libc::MOUNT_ATTR_RDONLY)
            .during(Step::Dev, "mount_setattr")?;
        with_exact_modes(|| provided.iter().try_for_each(|file| add_file(&self.tmpfs, file)))?;
        set_read_only(&self.tmpfs)?;
        for file in provided {
            for path in &file.bind_over {
                let target = match tree.open_target(path) {
                    // What the plan hides stays hidden.
                    Err(Errno::ENOENT | Errno::ENOTDIR) => continue,
                    result => result.during_at(Step::Mount, "openat2", path)?,
                };
                let source = open_below(&self.tmpfs, &in_srt(&file.name)).during_at(
                    Step::Mount,
                    "openat2",
                    &file.name,
                )?;
                let mount = sys::clone_tree(source, false).during_at(Step::Mount, "open_tree", &file.name)?;
                attach(mount, target, path)?;
            }
        }
        Ok(())
    }
}

fn set_read_only(tmpfs: &OwnedFd) -> Result<(), Failure> {
    sys::set_mount_attributes(tmpfs, libc::MOUNT_ATTR_RDONLY, false).during(Step::Dev, "mount_setattr")
}

/// Makes every entry; mount points as empty files.
fn fill(tmpfs: &OwnedFd, console: bool, helper: Option<&CStr>) -> Result<(), Failure> {
    for name in DEVICES.into_iter().chain(console.then_some(CONSOLE)) {
        make_empty_file(tmpfs, name)?;
    }
    for (name, target) in LINKS {
        symlinkat(target, tmpfs, name).during_at(Step::Dev, "symlinkat", name)?;
    }
    for name in ["pts", "shm", "srt", EMPTY_DIR] {
        make_dir(tmpfs, Path::new(name))?;
    }
    for name in [EMPTY_FILE].into_iter().chain(helper) {
        make_empty_file(tmpfs, name)?;
    }
    Ok(())
}

fn add_file(tmpfs: &OwnedFd, file: &Provided) -> Result<(), Failure> {
    let path = in_srt(&file.name);
    for folder in path.parent().into_iter().flat_map(Path::ancestors).collect::<Vec<_>>().iter().rev() {
        if !folder.as_os_str().is_empty() {
            make_dir(tmpfs, folder)?;
        }
    }
    let made = make_file(tmpfs, &path, 0o444).during_at(Step::Dev, "openat", &path)?;
    File::from(made).write_all(&file.contents).during_at(Step::Dev, "write", &path)
}

fn in_srt(name: &str) -> PathBuf {
    Path::new("srt").join(name)
}

/// Not opened, as there is nothing to write.
fn make_empty_file(tmpfs: &OwnedFd, name: &CStr) -> Result<(), Failure> {
    mknodat(tmpfs, name, SFlag::S_IFREG, Mode::from_bits_truncate(0o444), 0).during_at(
        Step::Dev,
        "mknodat",
        shown(name),
    )
}

fn make_dir(tmpfs: &OwnedFd, path: &Path) -> Result<(), Failure> {
    match mkdirat(tmpfs, path, Mode::from_bits_truncate(0o755)) {
        Err(Errno::EEXIST) => Ok(()),
        result => result.during_at(Step::Dev, "mkdirat", path),
    }
}

fn bind_device(tree: &Tree, tmpfs: &OwnedFd, source: &Path, name: &CStr) -> Result<(), Failure> {
    let device = tree.open_host(source).during_at(Step::Dev, "openat2", source)?;
    let device = sys::clone_tree(device, false).during_at(Step::Dev, "open_tree", source)?;
    // Opening a device for writing is no write to its file system: read-only means its mode and its times.
    sys::set_mount_attributes(
        &device,
        libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC | libc::MOUNT_ATTR_RDONLY,
        false,
    )
    .during_at(Step::Dev, "mount_setattr", source)?;
    attach_at(device, tmpfs, name)
}

/// From the host's tree, so that the plan's hiding of its folder does not matter. The descriptor of the running program
/// itself belongs to the caller's mount namespace, from which nothing can be bound here; it only says which file it is.
fn bind_own_program(tree: &Tree, tmpfs: &OwnedFd, name: &CStr) -> Result<(), Failure> {
    const OURS: &str = "/proc/self/exe";
    let path = fs::read_link(OURS).during(Step::Dev, "readlink(/proc/self/exe)")?;
    let program = tree.open_host(&path).during_at(Step::Dev, "openat2", &path)?;
    let (found, running) =
        (fstat(&program).during_at(Step::Dev, "fstat", &path)?, stat(OURS).during(Step::Dev, "stat")?);
    if (found.st_dev, found.st_ino) != (running.st_dev, running.st_ino) {
        return Err(Errno::ESTALE).during_at(Step::Dev, "find our own program at", &path);
    }
    let program = sys::clone_tree(program, false).during_at(Step::Dev, "open_tree", &path)?;
    sys::set_mount_attributes(&program, libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_RDONLY, false).during_at(
        Step::Dev,
        "mount_setattr",
        &path,
    )?;
    attach_at(program, tmpfs, name)
}

/// Every name in the tmpfs is of our making.
fn attach_at(mount: impl AsFd, tmpfs: &OwnedFd, name: &CStr) -> Result<(), Failure> {
    sys::attach_mount_at(mount, tmpfs, name).during_at(Step::Dev, "move_mount", shown(name))
}

fn shown(name: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(name.to_bytes()))
}

/// The host's path of the terminal on one of the standard streams, where it has one.
fn caller_terminal() -> Option<PathBuf> {
    let stream = sys::STANDARD_STREAMS.into_iter().find(|stream| isatty(stream).unwrap_or(false))?;
    let path = fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd())).ok()?;
    let same = stat(&path).ok()?.st_rdev == fstat(stream).ok()?.st_rdev;
    same.then_some(path)
}
