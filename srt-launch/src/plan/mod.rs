//! The plan: what the sandbox will be, as plain data. Computed from settings and the file system on the
//! host side, printed by `--explain`, looked at by most tests, and only then applied.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;

/// Everything the apply step needs; owned, no borrowed paths.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Mounts over the read-only copy of the host's tree, in the order they are made.
    pub mounts: Vec<Mount>,
    /// Host-side mount points to make for write-denied paths that do not exist.
    pub placeholders: Vec<Placeholder>,
    /// Files the launcher itself provides, in the read-only `/dev/srt` and bound over files of the host.
    pub provided: Vec<Provided>,
    /// The command's whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// System call rules.
    pub seccomp: SeccompProfile,
    /// How `/proc` is provided.
    pub proc: ProcMode,
    /// Where the network leads.
    pub network: Network,
    /// Working directory of the command.
    pub cwd: PathBuf,
    /// Descriptors above 2 that the command keeps.
    pub pass_fds: Vec<RawFd>,
    /// What was asked for and is not enforced, or not in the way a reader might expect.
    pub warnings: Vec<String>,
}

/// One mount. `target` is a resolved path: no component of it was a symbolic link when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// What is mounted.
    pub kind: MountKind,
    /// Where.
    pub target: PathBuf,
    /// Which entry of the settings, or which rule of ours, is the reason.
    pub why: Reason,
}

/// What one mount does to its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountKind {
    /// The host's own file or directory, writable (`allowWrite`).
    Writable,
    /// The host's own file or directory, read-only (`denyWrite`, mandatory denies, placeholders).
    ReadOnly,
    /// The directory bound on itself so that it cannot be renamed or removed; keeps its writability.
    Pin,
    /// An empty writable tmpfs over a read-denied directory.
    EmptyDir,
    /// An empty unreadable-content file over a read-denied file.
    EmptyFile,
    /// The host's own file or directory shown again below an `EmptyDir`; missing parents are made in the tmpfs.
    /// `source` differs from the target where the entry was a symbolic link.
    Reopen {
        /// The path on the host.
        source: PathBuf,
        /// Whether it is writable there.
        writable: bool,
    },
}

/// Why a mount, a variable or a refusal is in the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// An entry of the settings: JSON path of the list, and the entry as configured.
    Setting {
        /// e.g. `filesystem.denyRead`
        key: &'static str,
        /// The entry as written.
        entry: String,
    },
    /// A rule of the sandbox itself, in words.
    Rule(&'static str),
}

/// A mount point on the host that exists only while commands run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// The absent path.
    pub path: PathBuf,
    /// An empty directory instead of an empty file.
    pub directory: bool,
}

/// A file of ours inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provided {
    /// Name below `/dev/srt/`.
    pub name: &'static str,
    /// Its bytes.
    pub contents: Vec<u8>,
    /// Existing files of the host over which it is bound as well.
    pub bind_over: Vec<PathBuf>,
}

/// Which protections of the seccomp filter apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeccompProfile {
    /// `network.allowAllUnixSockets`
    pub allow_unix_sockets: bool,
    /// `allowNestedUserNamespaces`
    pub allow_user_namespaces: bool,
    /// Refuse `TIOCSTI` and `TIOCLINUX` (always, unless a test takes it out).
    pub refuse_terminal_injection: bool,
}

/// How `/proc` comes to be inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcMode {
    /// A fresh one for the new pid namespace.
    Fresh,
    /// As `Fresh`; where the kernel refuses it, the outer one read-only (`enableWeakerNestedSandbox`).
    FreshOrOuterReadOnly,
}

/// Where the network leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// A namespace with nothing but its own loopback.
    None,
    /// 127.0.0.1:3128 inside leads to a proxy.
    Proxy,
    /// The host's network (no `network` restriction is possible through settings today).
    Host,
}
