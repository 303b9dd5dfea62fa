//! Client programs: started with a bare environment, waited for with a deadline, their output kept.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::sys;

/// What any one program may take, on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(120);

/// A program about to be run.
#[derive(Debug)]
pub struct Program {
    command: Command,
    input: Vec<u8>,
    fds: Vec<OwnedFd>,
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

/// What became of it.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: String,
}

impl Program {
    /// A program by name or path. Of this process's environment it gets `PATH` and nothing else, so that no proxy
    /// variable or configuration of this machine decides a test.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.env_clear().env("LC_ALL", "C.UTF-8");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        sys::reset_inherited(&mut command);
        Self { command, input: Vec::new(), fds: Vec::new() }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets one variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Where it runs.
    pub fn current_dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// What it reads from its standard input.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// An option that names a descriptor, which the program inherits.
    pub fn fd(mut self, flag: &str, fd: OwnedFd) -> Self {
        let number = fd.as_raw_fd().to_string();
        self.fds.push(fd);
        self.arg(flag).arg(number)
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it is not installed, or does not end within two minutes.
    pub fn run(mut self) -> Finished {
        let input = std::mem::take(&mut self.input);
        let mut running = self.start();
        let mut stdin = running.stdin.take().expect("piped");
        // A program may end without reading its input.
        thread::spawn(move || stdin.write_all(&input));
        running.wait()
    }

    /// Starts it. Its standard input stays open until it is closed or the program waited for.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn start(mut self) -> Running {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = format!("{:?}", self.command);
        sys::inherit(&mut self.command, self.fds);
        let mut child = start(&mut self.command);
        // Our copies of the descriptors close with it.
        drop(self.command);
        Running {
            name,
            stdin: child.stdin.take(),
            stdout: read_all(child.stdout.take().expect("piped")),
            stderr: read_all(child.stderr.take().expect("piped")),
            child,
        }
    }
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, and for that of everything that holds its output.
    ///
    /// # Panics
    /// When that does not come within two minutes.
    pub fn wait(mut self) -> Finished {
        drop(self.stdin.take());
        let Ok(stdout) = self.stdout.recv_timeout(DEADLINE) else {
            let _ = self.child.kill();
            panic!("{} did not end within {DEADLINE:?}", self.name);
        };
        let Ok(stderr) = self.stderr.recv_timeout(DEADLINE) else {
            panic!("{} has left a process that holds its stderr", self.name);
        };
        let status = self.child.wait().expect("the child's status");
        Finished { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() }
    }
}

impl Finished {
    /// The standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Panics with all that is known unless it ended well.
    pub fn succeeded(self) -> Self {
        assert!(self.status.success(), "{}\nstdout: {}\nstderr: {}", self.status, self.text(), self.stderr);
        self
    }

    /// Panics with all that is known unless it failed by itself.
    pub fn failed(self) -> Self {
        let failed = self.status.code().is_some_and(|code| code != 0);
        assert!(failed, "{}\nstdout: {}\nstderr: {}", self.status, self.text(), self.stderr);
        self
    }
}

/// Starts a command.
///
/// # Panics
/// When it is not installed.
pub fn start(command: &mut Command) -> Child {
    match command.spawn() {
        Ok(child) => child,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            panic!("{:?} is not installed; run .ci/install-test-tools", command.get_program())
        }
        Err(e) => panic!("{command:?}: {e}"),
    }
}

/// Reads to the end on a thread of its own, which sends all of it.
fn read_all(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (done, wait) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is what there is to show.
        let _ = from.read_to_end(&mut bytes);
        let _ = done.send(bytes);
    });
    wait
}
