//! The namespaces of the sandbox and who the caller is in them.

use std::fs;

use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::unistd::{Gid, Uid, getegid, geteuid};

use super::failure::{During, Failure, Step};
use crate::plan::Isolation;

/// The caller, as seen on the host. Read before the namespaces are made: inside, until they are mapped, both
/// read as nobody.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    uid: Uid,
    gid: Gid,
}

impl Caller {
    /// The effective user and group of this process.
    pub fn current() -> Self {
        Self { uid: geteuid(), gid: getegid() }
    }

    /// Whether it is uid 0.
    pub fn is_root(self) -> bool {
        self.uid.is_root()
    }

    /// Maps the caller to itself and nobody else. Run inside.
    pub fn map(self) -> Result<(), Failure> {
        let write = |file: &str, line: &str| {
            fs::write(file, line).during(Step::UserMap, &format!("write {line:?} to {file}"))
        };
        let Self { uid, gid } = self;
        // Groups a process holds may be what refuses it access ("all but this group"): the kernel wants the
        // promise that none is ever dropped before it lets an ordinary user map one.
        match fs::write("/proc/self/setgroups", "deny") {
            // A kernel older than the rule.
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => {}
            result => result.during(Step::UserMap, "write \"deny\" to /proc/self/setgroups")?,
        }
        write("/proc/self/uid_map", &format!("{uid} {uid} 1"))?;
        write("/proc/self/gid_map", &format!("{gid} {gid} 1"))
    }
}

/// The namespaces that the sandbox's first process is born into. A user and a mount namespace are never missing: the
/// others need the one, and every rule about files the other. The network comes later, in a thread of its own.
pub fn flags(isolation: &Isolation) -> CloneFlags {
    let mut flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
    flags.set(CloneFlags::CLONE_NEWPID, isolation.pid_namespace);
    flags.set(CloneFlags::CLONE_NEWIPC, isolation.ipc_namespace);
    flags.set(CloneFlags::CLONE_NEWUTS, isolation.uts_namespace);
    flags.set(CloneFlags::CLONE_NEWCGROUP, isolation.cgroup_namespace);
    flags
}
