//! What is tried from inside, one canary for each protection.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{Error, Result, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::{GOT_OUT, REFUSED};
use crate::exit;

/// What there is to be reached.
#[derive(Debug)]
pub struct Scene {
    /// Holds `work`, where the canary may write, and `outside` and `secret`, where it may not look.
    pub folder: PathBuf,
    /// Of a listener on the host's loopback.
    pub port: u16,
    /// Of a process of the host.
    pub pid: i32,
}

impl Scene {
    /// For the command line of a canary.
    pub fn arguments(&self) -> [OsString; 3] {
        [self.folder.clone().into(), self.port.to_string().into(), self.pid.to_string().into()]
    }

    fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let folder = arguments.next()?.into();
        let mut number = || arguments.next()?.into_string().ok();
        Some(Self { folder, port: number()?.parse().ok()?, pid: number()?.parse().ok()? })
    }
}

/// One thing that must be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canary {
    /// Reads what `denyRead` names.
    Read,
    /// Writes outside `allowWrite`.
    Write,
    /// Writes what `denyWrite` names.
    Deny,
    /// Makes a name that is always protected and not there yet.
    Protected,
    /// Connects to a unix socket of the host.
    UnixSocket,
    /// Connects to a port of the host.
    Port,
    /// Mounts something.
    Mount,
    /// Makes a user namespace.
    Namespace,
    /// Addresses a process of the host.
    Signal,
    /// Looks into the sandbox's first process.
    Init,
    /// Changes the kernel's settings.
    KernelSettings,
    /// Has a capability it should not have.
    Capabilities,
}

impl Canary {
    /// Every one, in the order of the report.
    pub const ALL: [Self; 12] = [
        Self::Read,
        Self::Write,
        Self::Deny,
        Self::Protected,
        Self::UnixSocket,
        Self::Port,
        Self::Mount,
        Self::Namespace,
        Self::Signal,
        Self::Init,
        Self::KernelSettings,
        Self::Capabilities,
    ];

    /// On the command line.
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// Whether anybody may do it who is in no sandbox; if so it is tried there first.
    pub fn works_outside(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::UnixSocket | Self::Port | Self::Signal)
    }

    /// What to change where it gets out although the sandbox was built.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Read | Self::Write | Self::Deny | Self::Protected => {
                "the file system of the temporary folder does not take mounts as others do; set TMPDIR to another one"
            }
            Self::UnixSocket | Self::Mount | Self::Namespace => {
                "the kernel does not apply the system call filter; it needs CONFIG_SECCOMP_FILTER"
            }
            Self::Port => "the kernel has no network namespaces; it needs CONFIG_NET_NS",
            Self::Signal | Self::Init => "the kernel has no pid namespaces; it needs CONFIG_PID_NS",
            Self::KernelSettings => {
                "a fresh /proc is not to be had here; leave `enableWeakerNestedSandbox` off"
            }
            Self::Capabilities => "the kernel ignores what was dropped; please report this",
        }
    }

    /// Tries it.
    pub fn fly(self, scene: &Scene) -> Result<()> {
        let path = |name: &str| scene.folder.join(name);
        match self {
            Self::Read => match fs::read(path("secret"))?.is_empty() {
                true => Err(Error::other("empty")),
                false => Ok(()),
            },
            Self::Write => append(&path("outside/file")),
            Self::Deny => append(&path("work/denied")),
            Self::Protected => append(&path("work/.bashrc")),
            Self::UnixSocket => UnixStream::connect(path("outside/socket")).map(drop),
            Self::Port => {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, scene.port));
                TcpStream::connect_timeout(&address, Duration::from_secs(1)).map(drop)
            }
            Self::Mount => {
                let none = None::<&Path>;
                Ok(mount(none, &path("work"), Some("tmpfs"), MsFlags::empty(), none)?)
            }
            Self::Namespace => Ok(unshare(CloneFlags::CLONE_NEWUSER)?),
            // No signal is sent: only whether it could be.
            Self::Signal => Ok(kill(Pid::from_raw(scene.pid), None)?),
            Self::Init => fs::read_link("/proc/1/cwd").map(drop),
            // Opened, not written.
            Self::KernelSettings => {
                OpenOptions::new().write(true).open("/proc/sys/kernel/core_pattern").map(drop)
            }
            Self::Capabilities => match spare_capabilities()? {
                0 => Err(Error::other("none")),
                _ => Ok(()),
            },
        }
    }
}

impl fmt::Display for Canary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "a file that may not be read cannot be read",
            Self::Write => "nothing can be written outside the folders that may be written",
            Self::Deny => "a file that may not be written there cannot be written",
            Self::Protected => "a protected name that is absent cannot be made",
            Self::UnixSocket => "a unix socket of the host cannot be reached",
            Self::Port => "a port of the host cannot be reached",
            Self::Mount => "nothing can be mounted",
            Self::Namespace => "no user namespace can be made",
            Self::Signal => "no process of the host can be sent a signal",
            Self::Init => "the first process of the sandbox cannot be looked into",
            Self::KernelSettings => "settings of the kernel cannot be changed",
            Self::Capabilities => "no capability is left but, for root, four about files",
        })
    }
}

/// A canary in its sandbox: its name and the scene. Returns what became of it as an exit status.
pub fn run_inside(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let mut arguments = arguments.into_iter();
    let name = arguments.next().unwrap_or_default();
    let canary = Canary::ALL.into_iter().find(|canary| *canary.name() == name);
    let (Some(canary), Some(scene)) = (canary, Scene::parse(arguments)) else { return exit::OWN_FAILURE };
    if canary.fly(&scene).is_ok() { GOT_OUT } else { REFUSED }
}

fn append(path: &Path) -> Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(b"x")
}

/// Effective capabilities besides `CHOWN`, `DAC_OVERRIDE`, `FOWNER` and `FSETID`.
fn spare_capabilities() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(u64::MAX);
    Ok(held & !0b11011)
}
