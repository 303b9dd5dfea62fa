//! The `/proc` of the sandbox: its own processes, nothing of the machine that can be changed.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstatat};

use super::dev::Dev;
use super::failure::{During, Failure, Step};
use super::mounts::{INERT, Tree, attach};
use crate::plan::{Isolation, ProcMode};
use crate::sys;

/// Shown, but read-only: to files here the kernel lets uid 0 write that has not a single capability.
const READ_ONLY: [&CStr; 4] = [c"sys", c"irq", c"bus", c"fs"];

/// Empty: memory, keys, addresses and switches of the machine. What a kernel lacks is passed over.
const MASKED: [&CStr; 17] = [
    c"sysrq-trigger",
    c"kcore",
    c"keys",
    c"key-users",
    c"timer_list",
    c"timer_stats",
    c"sched_debug",
    c"latency_stats",
    c"kpagecount",
    c"kpageflags",
    // Readable for uid 0 alone, whatever its capabilities.
    c"kpagecgroup",
    c"vmallocinfo",
    c"slabinfo",
    c"mtrr",
    c"acpi",
    c"scsi",
    c"dynamic_debug",
];

/// Attaches `/proc` and shuts what must be shut in it. Returns a warning where it is not what was asked for.
pub fn mount(
    tree: &Tree,
    dev: &Dev,
    mode: ProcMode,
    isolation: &Isolation,
) -> Result<Option<String>, Failure> {
    let target = tree.open_target(Path::new("/proc")).during(Step::Proc, "openat2(/proc)")?;
    let fresh = if isolation.pid_namespace {
        sys::new_filesystem(c"proc", &[], INERT).during(Step::Proc, "fsmount(proc)")
    } else {
        outer(tree)
    };
    let (proc, mut warning) = match fresh {
        Ok(proc) => (proc, None),
        Err(_) if mode == ProcMode::FreshOrOuterReadOnly => {
            let text = "`enableWeakerNestedSandbox`: a fresh /proc is refused here; the command sees the \
                        outer one, read-only, with the processes of its container";
            let proc = outer(tree)?;
            sys::set_mount_attributes(&proc, INERT | libc::MOUNT_ATTR_RDONLY, true)
                .during(Step::Proc, "mount_setattr(/proc)")?;
            (proc, Some(text.to_owned()))
        }
        Err(failure) => return Err(failure),
    };
    attach(&proc, target, Path::new("/proc"))?;
    if isolation.user_namespace_limit {
        match forbid_user_namespaces(tree, &proc) {
            // Read-only where this sandbox is one in another. The system call filter holds alone.
            Err(failure) if warning.is_some() => {
                warning = warning.map(|text| format!("{text}; {failure}"));
            }
            result => result?,
        }
    }
    if isolation.proc_read_only {
        for name in READ_ONLY {
            let copy = match sys::clone_tree_at(&proc, name, true) {
                Err(Errno::ENOENT) => continue,
                result => result.during_at(Step::Proc, "open_tree", shown(name))?,
            };
            sys::set_mount_attributes(&copy, INERT | libc::MOUNT_ATTR_RDONLY, true).during_at(
                Step::Proc,
                "mount_setattr",
                shown(name),
            )?;
            attach_over(copy, &proc, name)?;
        }
    }
    if isolation.proc_masks {
        for name in MASKED {
            let stat = match fstatat(&proc, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) => continue,
                result => result.during_at(Step::Proc, "fstatat", shown(name))?,
            };
            let directory = SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR;
            let empty = if directory { &dev.empty_dir } else { &dev.empty_file };
            let mask = sys::clone_tree(empty, false).during_at(Step::Proc, "open_tree", shown(name))?;
            attach_over(mask, &proc, name)?;
        }
    }
    Ok(warning)
}

fn outer(tree: &Tree) -> Result<OwnedFd, Failure> {
    let host = tree.open_host(Path::new("/proc")).during(Step::Proc, "openat2(/proc)")?;
    sys::clone_tree(host, true).during(Step::Proc, "open_tree(/proc)")
}

/// The kernel alone makes names in `/proc`, so a single one can be used as it is.
fn attach_over(mount: OwnedFd, proc: &OwnedFd, name: &CStr) -> Result<(), Failure> {
    sys::attach_mount_at(mount, proc, name).during_at(Step::Proc, "move_mount", shown(name))
}

fn shown(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

/// Sets `user.max_user_namespaces` of the sandbox's own user namespace to 0: the second layer behind the filter.
fn forbid_user_namespaces(tree: &Tree, proc: &OwnedFd) -> Result<(), Failure> {
    const FILE: &str = "sys/user/max_user_namespaces";
    let call = "write 0 to user.max_user_namespaces";
    let open = |proc: &OwnedFd| openat(proc, FILE, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty());
    let file = match open(proc) {
        // The mount of the outer one in front of us is read-only; the host's own need not be.
        Err(Errno::EROFS) => tree.open_host(Path::new("/proc")).and_then(|host| open(&host)),
        result => result,
    };
    let file = file.during(Step::UserNamespaceLimit, call)?;
    File::from(file).write_all(b"0").during(Step::UserNamespaceLimit, call)
}
