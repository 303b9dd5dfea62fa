//! What went wrong while a sandbox was built: which step, which system call, why.

use std::fmt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::exit;

/// A step that failed. It crosses from the processes inside to the launcher, so it is plain data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was being done.
    pub step: Step,
    /// The system call, with what tells it from others of its kind.
    pub call: String,
    /// What it was done to, as shown to people; empty where the step says it all.
    pub object: String,
    /// The system's reason.
    pub errno: i32,
}

/// The steps of building a sandbox, in order, and then to keep it while the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the texts below say what each is")]
pub enum Step {
    Launch,
    Streams,
    TempDir,
    Placeholders,
    Namespaces,
    UserMap,
    Network,
    Proxy,
    HostTree,
    Dev,
    Proc,
    Mount,
    Root,
    WorkingDirectory,
    UserNamespaceLimit,
    Keyring,
    Filter,
    Capabilities,
    Init,
    Session,
    Descriptors,
    Command,
    Keep,
}

impl Failure {
    /// The proxy's fault or its answer, in its words.
    pub fn proxy(error: &dyn std::error::Error) -> Self {
        Self { step: Step::Proxy, call: error.to_string(), object: String::new(), errno: 0 }
    }

    /// Somebody outside has killed the sandbox's first process, and so everything in it; the system perhaps, short of
    /// memory.
    pub fn killed(signal: i32) -> Self {
        let signal =
            Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |one| one.to_string());
        let call = format!("its first process was killed from outside ({signal})");
        Self { step: Step::Keep, call, object: String::new(), errno: 0 }
    }

    /// The exit status it ends the run with.
    pub fn exit_status(&self) -> i32 {
        match (self.step, Errno::from_raw(self.errno)) {
            (Step::Command, Errno::ENOENT | Errno::ENOTDIR) => exit::NOT_FOUND,
            (Step::Command, _) => exit::NOT_EXECUTABLE,
            _ => exit::OWN_FAILURE,
        }
    }

    /// Whether a file that the plan names came or went since the plan was made: a new plan may fit.
    pub fn is_stale_plan(&self) -> bool {
        let moved = matches!(
            Errno::from_raw(self.errno),
            Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EEXIST | Errno::ESTALE
        );
        moved && matches!(self.step, Step::Mount | Step::Placeholders | Step::TempDir)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errno = Errno::from_raw(self.errno);
        write!(f, "cannot {}", self.step)?;
        if !self.object.is_empty() {
            write!(f, " {}", self.object)?;
        }
        if self.step == Step::Command {
            return write!(f, ": {}", errno.desc());
        }
        if self.errno == 0 {
            return write!(f, ": {}", self.call);
        }
        write!(f, ": {}: {} ({errno:?})", self.call, errno.desc())
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Launch => "prepare the launch",
            Self::Streams => "hand on the standard streams",
            Self::TempDir => "make the directory for temporary files",
            Self::Placeholders => "make the mount point of an absent path",
            Self::Namespaces => "create the namespaces of the sandbox",
            Self::UserMap => "map the user into the sandbox",
            Self::Network => "make the sandbox's network",
            Self::Proxy => "lead the sandbox's network to the proxy",
            Self::HostTree => "copy the host's mounts",
            Self::Dev => "make the sandbox's /dev",
            Self::Proc => "make the sandbox's /proc",
            Self::Mount => "mount",
            Self::Root => "enter the sandbox's root",
            Self::WorkingDirectory => "enter the working directory",
            Self::UserNamespaceLimit => "limit user namespaces in the sandbox",
            Self::Keyring => "make a session keyring",
            Self::Filter => "install the system call filter",
            Self::Capabilities => "drop capabilities",
            Self::Init => "start the sandbox's first process",
            Self::Session => "make a session for the command",
            Self::Descriptors => "close inherited descriptors",
            Self::Command => "run",
            Self::Keep => "keep the sandbox",
        })
    }
}

/// Turns an error of a system call into a [`Failure`].
pub trait During<T> {
    /// Names the step and the call.
    fn during(self, step: Step, call: &str) -> Result<T, Failure>;
    /// Names the object as well.
    fn during_at(self, step: Step, call: &str, object: impl AsRef<Path>) -> Result<T, Failure>;
}

impl<T, E: SystemError> During<T> for Result<T, E> {
    fn during(self, step: Step, call: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            step,
            call: call.to_owned(),
            object: String::new(),
            errno: error.errno() as i32,
        })
    }

    fn during_at(self, step: Step, call: &str, object: impl AsRef<Path>) -> Result<T, Failure> {
        self.during(step, call).map_err(|failure| Failure {
            object: format!("`{}`", object.as_ref().to_string_lossy().escape_debug()),
            ..failure
        })
    }
}

/// An error that carries an error number.
pub trait SystemError {
    /// The number, `EIO` where there is none.
    fn errno(&self) -> Errno;
}

impl SystemError for Errno {
    fn errno(&self) -> Errno {
        *self
    }
}

impl SystemError for std::io::Error {
    fn errno(&self) -> Errno {
        self.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(step: Step, errno: Errno) -> Failure {
        Err::<(), _>(errno).during_at(step, "open_tree", "/a b").unwrap_err()
    }

    #[test]
    fn names_step_call_object_and_errno() {
        assert_eq!(
            failure(Step::Mount, Errno::EPERM).to_string(),
            "cannot mount `/a b`: open_tree: Operation not permitted (EPERM)"
        );
        assert_eq!(
            failure(Step::Command, Errno::ENOENT).to_string(),
            "cannot run `/a b`: No such file or directory"
        );
    }

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        let failure = Err::<(), _>(Errno::EIO).during_at(Step::Mount, "x", "/\x1b[2J\n").unwrap_err();
        assert!(!failure.to_string().contains(['\x1b', '\n']), "{failure}");
    }

    #[test]
    fn exit_statuses() {
        for (step, errno, want) in [
            (Step::Command, Errno::ENOENT, 127),
            (Step::Command, Errno::ENOTDIR, 127),
            (Step::Command, Errno::EACCES, 126),
            (Step::Command, Errno::E2BIG, 126),
            (Step::Namespaces, Errno::EPERM, 125),
            (Step::Mount, Errno::ENOENT, 125),
        ] {
            assert_eq!(failure(step, errno).exit_status(), want, "{step:?} {errno:?}");
        }
    }

    #[test]
    fn only_missing_files_ask_for_a_new_plan() {
        assert!(failure(Step::Mount, Errno::ENOENT).is_stale_plan());
        assert!(failure(Step::Placeholders, Errno::EEXIST).is_stale_plan());
        assert!(failure(Step::TempDir, Errno::EEXIST).is_stale_plan());
        assert!(!failure(Step::Mount, Errno::EPERM).is_stale_plan());
        assert!(!failure(Step::Command, Errno::ENOENT).is_stale_plan());
        assert!(!failure(Step::Dev, Errno::ENOENT).is_stale_plan());
    }

    #[test]
    fn survives_the_pipe() {
        let failure = failure(Step::Proc, Errno::EPERM);
        let text = serde_json::to_string(&failure).unwrap();
        assert_eq!(serde_json::from_str::<Failure>(&text).unwrap(), failure);
    }
}
