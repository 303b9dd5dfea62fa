//! Signals to the launcher, its death, and what becomes of processes then.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use srt_tests::proxy::PATIENCE;
use srt_tests::sandbox::Sandbox;

/// A launcher whose command has said that it is up.
struct Running {
    launcher: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(sandbox: &Sandbox, script: &str) -> Self {
        Self::start_command(sandbox.script(script))
    }

    fn start_command(mut command: Command) -> Self {
        let mut launcher = command.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let stdout = BufReader::new(launcher.stdout.take().unwrap());
        let mut this = Self { launcher, stdout };
        assert_eq!(this.line(), "up\n");
        this
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.launcher.id() as i32)
    }

    /// The rest of the output, which ends when no process inside is left, and the exit status.
    fn end(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let status = self.launcher.wait().unwrap();
        (rest, status.code().or(status.signal().map(|signal| -signal)))
    }
}

fn sandbox() -> Sandbox {
    Sandbox::new(json!({"allowWrite": ["."]}))
}

#[test]
fn signals_end_the_command_and_the_launcher() {
    let sandbox = sandbox();
    for (signal, status) in
        [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGHUP, 129), (Signal::SIGQUIT, 131)]
    {
        // Bash would ignore SIGQUIT until it has become `sleep`.
        let mut command = sandbox.launch();
        command.args(["--", "sh", "-c", "ulimit -c 0; echo up; exec sleep 600"]);
        let running = Running::start_command(command);
        kill(running.pid(), signal).unwrap();
        assert_eq!(running.end(), (String::new(), Some(status)), "{signal}");
    }
}

#[test]
fn the_commands_own_handler_runs_and_its_status_counts() {
    let sandbox = sandbox();
    // While a shell waits for a program it would run its trap only after that: the program gets the signal too.
    let running = Running::start(
        &sandbox,
        "trap 'echo bye; exit 7' TERM; sh -c 'echo up; exec sleep 600'; echo not reached",
    );
    kill(running.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(running.end(), ("bye\n".to_owned(), Some(7)));
}

#[test]
fn user_signals_are_for_the_command_alone() {
    let sandbox = sandbox();
    let script = "trap 'echo one; exit 3' USR1; echo up; while :; do sleep 0.05; done";
    let running = Running::start(&sandbox, script);
    kill(running.pid(), Signal::SIGUSR1).unwrap();
    assert_eq!(running.end(), ("one\n".to_owned(), Some(3)));
}

#[test]
fn a_command_that_does_not_listen_is_killed_after_ten_seconds() {
    let sandbox = sandbox();
    let running = Running::start(&sandbox, "trap '' TERM; echo up; while :; do sleep 1; done");
    let start = Instant::now();
    kill(running.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(running.end().1, Some(137));
    let took = start.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(15)).contains(&took), "{took:?}");
}

/// By the system when memory runs out, for instance. The command's own death looks otherwise.
#[test]
fn a_sandbox_killed_from_outside_is_told_from_a_killed_command() {
    // Nothing to make on the host: the sandbox's first process is the launcher's only child.
    let sandbox = Sandbox::new(json!({}));
    let mut command = sandbox.script("echo up; while :; do sleep 1; done");
    let mut running = Running::start_command({
        command.stderr(Stdio::piped());
        command
    });
    let launcher = running.pid();
    let children = std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap();
    kill(Pid::from_raw(children.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
    let mut stderr = String::new();
    running.launcher.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let text = "srt-launch: cannot keep the sandbox: its first process was killed from outside (SIGKILL)\n";
    assert_eq!((running.end(), stderr.as_str()), ((String::new(), Some(125)), text));
}

#[test]
fn what_was_ignored_stays_ignored() {
    let sandbox = sandbox();
    let inner = sandbox.script("echo up; sleep 0.3; echo done");
    let mut nohup = sandbox.command("bash");
    nohup.args(["-c", "trap '' HUP; exec \"$@\"", "bash"]).arg(inner.get_program()).args(inner.get_args());
    let mut launcher = nohup.stdout(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(launcher.stdout.take().unwrap());
    let mut running = Running { launcher, stdout };
    assert_eq!(running.line(), "up\n");
    kill(running.pid(), Signal::SIGHUP).unwrap();
    assert_eq!(running.end(), ("done\n".to_owned(), Some(0)));
}

#[test]
fn children_end_where_the_caller_ignores_the_end_of_its_own() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."], "denyWrite": ["name"]}));
    let mut inner = sandbox.launch();
    inner.args(["--", "grep", "^SigIgn", "/proc/self/status", "/nonexistent"]);
    let mut ignoring = sandbox.command("env");
    ignoring.arg("--ignore-signal=CHLD").arg(inner.get_program()).args(inner.get_args());
    let mut launcher = ignoring.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while launcher.try_wait().unwrap().is_none() && Instant::now() < deadline {
        sleep(Duration::from_millis(10));
    }
    let hangs = launcher.try_wait().unwrap().is_none();
    launcher.kill().unwrap();
    let output = launcher.wait_with_output().unwrap();
    assert!(!hangs);
    assert_eq!(output.status.code(), Some(2));
    // The command is told of it as it would be without us.
    let ignored = String::from_utf8(output.stdout).unwrap();
    let ignored = u64::from_str_radix(ignored.split_whitespace().last().unwrap(), 16).unwrap();
    assert_ne!(ignored & 1 << (Signal::SIGCHLD as i32 - 1), 0, "{ignored:x}");
    assert!(!sandbox.path("work/name").exists());
}

#[test]
fn nothing_outlives_the_command() {
    let sandbox = sandbox();
    // The output ends with the last process that holds it: the end of this test is the assertion.
    let running =
        Running::start(&sandbox, "setsid sleep 600 & (sleep 600 & ) ; trap '' TERM; echo up; exit 5");
    assert_eq!(running.end(), (String::new(), Some(5)));
}

#[test]
fn nothing_outlives_a_killed_launcher() {
    let sandbox = sandbox();
    let script = "trap '' TERM HUP; setsid sleep 600 & sleep 600 & echo up; wait";
    let running = Running::start(&sandbox, script);
    kill(running.pid(), Signal::SIGKILL).unwrap();
    assert_eq!(running.end(), (String::new(), Some(-9)));
    let deadline = Instant::now() + PATIENCE;
    while std::fs::read_dir(sandbox.path("work")).unwrap().next().is_some() {
        assert!(Instant::now() < deadline, "placeholders are left");
        sleep(Duration::from_millis(5));
    }
}
