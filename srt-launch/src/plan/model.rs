use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    os::fd::RawFd,
    path::{Path, PathBuf},
};

use srt_shared::settings::{Settings, in_home};

use super::{isolation::Isolation, seccomp::SeccompProfile};

/// The read-only folder inside with what the launcher provides.
pub const PROVIDED: &str = "/dev/srt";

/// Everything the apply step needs; owned, no borrowed paths.
///
/// The apply step works in this order: placeholders on the host, the clone of the host's tree (read-only unless
/// [`Root::writable`]), the sandbox's own `/proc` and `/dev`, then [`Plan::mounts`] one after the other. A mount whose
/// target is missing in the sandbox's own `/proc` or `/dev` is left out; one whose target lies in a folder that is closed
/// to pid 1 goes on that folder. Any other failure ends the run before the command starts. The directory for temporary
/// files has to be there already ([`Plan::missing_temp_dir`]).
#[derive(Debug, Clone)]
pub struct Plan {
    /// How the clone of the host's tree is mounted.
    pub root: Root,
    /// Mounts over the clone of the host's tree, in the order they are made: first every [`MountKind::Pin`],
    /// then the others, parents before children.
    pub mounts: Vec<Mount>,
    /// The command's `TMPDIR`, where it is not there yet. Once it is made the plan has to be made anew: what the settings
    /// say of it, and of what may be in it, is not planned here. It stays: what commands leave in it would keep it anyway,
    /// and another run may have begun to use it.
    pub missing_temp_dir: Option<PathBuf>,
    /// What has to be made on the host before the mounts, and removed from it afterwards.
    pub placeholders: Vec<Placeholder>,
    /// Files the launcher itself provides, in the read-only `/dev/srt` and bound over files of the host.
    pub provided: Vec<Provided>,
    /// The command's whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// System call rules.
    pub seccomp: SeccompProfile,
    /// The walls that do not depend on settings.
    pub isolation: Isolation,
    /// How `/proc` is provided.
    pub proc: ProcMode,
    /// Where the network leads.
    pub network: Network,
    /// Working directory of the command.
    pub cwd: PathBuf,
    /// Descriptors above 2 that the command keeps.
    pub pass_fds: Vec<RawFd>,
    /// What was asked for and is not enforced, or not in the way a reader might expect. Errors with `--strict`.
    pub warnings: Vec<String>,
    /// What helps to understand the plan but is as documented; printed with `--debug` only.
    pub notes: Vec<String>,
}

/// The clone of the host's tree under all mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Writable (`allowWrite: ["/"]`, `filesystem.disabled`) instead of read-only. Always `nosuid`.
    pub writable: bool,
    /// Why.
    pub why: Reason,
}

/// One mount. `target` is a resolved path: no component but perhaps the last was a symbolic link when the
/// plan was made, and the last one is never followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// What is mounted.
    pub kind: MountKind,
    /// Where.
    pub target: PathBuf,
    /// Which entry of the settings, or which rule of ours, is the reason.
    pub why: Reason,
}

impl Mount {
    /// What the host's tree is opened at, if that is what the mount does.
    pub fn opens(&self) -> Option<&Path> {
        match &self.kind {
            MountKind::Writable => Some(&self.target),
            MountKind::Reopen { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What one mount does to its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountKind {
    /// Keeps the target's name where it is: a name that carries a mount in the namespace can be neither renamed
    /// nor removed. A directory is bound on itself (itself alone, not what is mounted below it); on a symbolic
    /// link, dangling or not, goes any non-directory. A later mount of an ancestor always buries the pin, so that
    /// no lookup ever crosses it and renames below it stay within one mount.
    Pin,
    /// The host's own file or directory with everything mounted below it, writable.
    Writable,
    /// The host's own file or directory with everything mounted below it, read-only.
    ReadOnly,
    /// An empty writable tmpfs over a read-denied directory.
    EmptyDir,
    /// An empty read-only file over a read-denied file, fifo, socket, device or symbolic link.
    EmptyFile,
    /// The host's own file or directory shown again below an `EmptyDir`, with everything mounted below it;
    /// missing parents and the mount point itself are made in the tmpfs.
    /// `source` differs from the target where the entry was a symbolic link.
    Reopen {
        /// The path on the host, resolved.
        source: PathBuf,
        /// Whether it is writable there.
        writable: bool,
    },
}

/// Why a mount, a variable or a refusal is in the plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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

/// The key and the entry, or the rule.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { key, entry } => write!(f, "{key} `{entry}`"),
            Self::Rule(rule) => f.write_str(rule),
        }
    }
}

/// A path that is made on the host when it is absent and exists only while commands run. Its mount is in
/// [`Plan::mounts`]. Where the host refuses to make it (`EACCES`, `EPERM`, `EROFS`), the command could not make
/// it either: the apply step then leaves out the placeholder and its mount.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placeholder {
    /// The absent path; its parent exists, or is the placeholder before it.
    pub path: PathBuf,
    /// An empty directory instead of an empty file.
    pub directory: bool,
    /// Permission bits, whatever the umask.
    pub mode: u32,
}

/// A file of ours inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provided {
    /// Name below [`PROVIDED`], perhaps with folders.
    pub name: String,
    /// Its bytes.
    pub contents: Vec<u8>,
    /// Existing files of the host over which it is bound as well (resolved paths).
    pub bind_over: Vec<PathBuf>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// A namespace with nothing but its own loopback.
    None,
    /// 127.0.0.1:3128 inside leads to a proxy.
    Proxy,
}

/// Where the command finds the certificates to trust, as paths inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// A PEM bundle; its directory has no other certificates.
    pub bundle: PathBuf,
    /// A PKCS#12 trust store with the same, for JVMs.
    pub java_store: Option<PathBuf>,
}

/// What the plan is computed from, besides the file system.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// The settings, already validated.
    pub settings: Settings,
    /// The file they came from; a command that can rewrite it weakens the next run.
    pub settings_file: Option<PathBuf>,
    /// What `~` means: `HOME`, else the home of the password database. Absolute.
    pub home: PathBuf,
    /// Working directory of the command, absolute; relative entries start there.
    pub cwd: PathBuf,
    /// Effective user of the launcher.
    pub uid: u32,
    /// The environment the launcher was given.
    pub env: BTreeMap<OsString, OsString>,
    /// `--setenv`, `--unsetenv` in order; the last word for a name counts.
    pub env_edits: Vec<(OsString, Option<OsString>)>,
    /// Where the network leads.
    pub network: Network,
    /// The certificates programs are to trust, where TLS is terminated.
    pub trust: Option<Trust>,
    /// `--pass-fd`.
    pub pass_fds: Vec<RawFd>,
    /// Files and folders of ours on the host that no command may see (the manifests of placeholders).
    pub own_state: Vec<PathBuf>,
    /// The folder of our own programs: a command that can write there replaces what holds the next one.
    pub programs: Option<PathBuf>,
    /// Placeholders of sandboxes that run now. To the plan they are absent: where it would make a placeholder
    /// there, this run joins the other's. Those below a writable root that no rule of ours names are made
    /// read-only all the same, or this command could remove what holds another one's deny.
    pub foreign_placeholders: Vec<Placeholder>,
}

impl Inputs {
    /// What a launcher without any option has: the rest is empty, and there is no network.
    pub fn new(settings: Settings, home: PathBuf, cwd: PathBuf, uid: u32) -> Self {
        Self {
            settings,
            settings_file: None,
            home,
            cwd,
            uid,
            env: BTreeMap::new(),
            env_edits: Vec::new(),
            network: Network::None,
            trust: None,
            pass_fds: Vec::new(),
            own_state: Vec::new(),
            programs: None,
            foreign_placeholders: Vec::new(),
        }
    }
}

impl Inputs {
    /// A path of the settings that is neither a pattern nor a rule: `~` and relative paths as everywhere.
    pub fn home_path(&self, path: &str) -> PathBuf {
        in_home(path, Some(&self.home)).unwrap_or_else(|| self.cwd.join(path))
    }
}
