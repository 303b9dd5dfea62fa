//! Client programs: started with a bare environment, waited for with a deadline, their output kept.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// What any one program may take, on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(120);

/// A program about to be run.
#[derive(Debug)]
pub struct Program {
    command: Command,
    input: Vec<u8>,
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
        Self { command, input: Vec::new() }
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

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it is not installed, or does not end within two minutes.
    pub fn run(mut self) -> Finished {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(&mut self.command);
        let mut stdin = child.stdin.take().expect("piped");
        let input = std::mem::take(&mut self.input);
        // A program may end without reading its input.
        thread::spawn(move || stdin.write_all(&input));
        let stdout = read_all(child.stdout.take().expect("piped"));
        let stderr = read_all(child.stderr.take().expect("piped"));
        let Ok(stdout) = stdout.recv_timeout(DEADLINE) else {
            let _ = child.kill();
            panic!("{:?} did not end within {DEADLINE:?}", self.command);
        };
        let stderr = stderr.recv_timeout(DEADLINE).unwrap_or_default();
        let status = child.wait().expect("the child's status");
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
