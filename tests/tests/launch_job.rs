//! A sandbox as a part of a job on a terminal: in a pipeline, in a script. What the terminal does to the one process
//! group must not stop short of the other.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use srt_tests::sandbox::Sandbox;
use srt_tests::terminal::{COPING, CTRL_C, CTRL_Z, Terminal};

/// A shell with job control, and a function `sandboxed` that runs a script in the sandbox.
struct Shell {
    terminal: Terminal,
    sandbox: Sandbox,
}

impl Shell {
    fn start() -> Self {
        let sandbox = Sandbox::new(json!({}));
        // What is typed is not to be taken for what is answered.
        let rc = format!("{}PS1='ready> '\nstty -echo\n", function(&sandbox));
        let file = sandbox.write("work/rc", &rc);
        let mut shell = sandbox.command("bash");
        shell.args(["--noprofile", "--noediting", "--rcfile"]).arg(file).arg("-i").env("TERM", "dumb");
        let mut terminal = Terminal::start(shell);
        terminal.wait_for("ready> ");
        Self { terminal, sandbox }
    }

    /// Types a line.
    fn line(&mut self, text: &str) {
        self.terminal.press(&format!("{text}\n"));
    }

    /// Waits until the launcher has stopped. The shell, whose child it is not, does not wait for that.
    fn launcher_stops(&self) {
        let settings = self.sandbox.settings_file();
        let is_stopped = |process: &Path| {
            let read = |name| fs::read_to_string(process.join(name)).unwrap_or_default();
            read("cmdline").contains(settings.to_str().unwrap()) && read("stat").contains("(srt-launch) T ")
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !fs::read_dir("/proc").unwrap().any(|process| is_stopped(&process.unwrap().path())) {
            assert!(Instant::now() < deadline, "the launcher does not stop");
            sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the shell reads again.
    fn is_ready(&mut self) {
        self.terminal.wait_for("ready> ");
        self.line("echo at your service");
        self.terminal.wait_for("at your service");
        self.terminal.wait_for("ready> ");
    }
}

/// Defines it, for the shell and for scripts that it starts.
fn function(sandbox: &Sandbox) -> String {
    let launch = sandbox.launch();
    let words: Vec<_> = std::iter::once(launch.get_program())
        .chain(launch.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    format!("sandboxed() {{ {} -- sh -c \"$1\"; }}\nexport -f sandboxed\n", words.join(" "))
}

/// A script that is the terminal's only job; nobody controls it.
fn script(sandbox: &Sandbox, text: &str) -> Terminal {
    let mut bash: Command = sandbox.command("bash");
    bash.arg(sandbox.write("work/script", &format!("{}{text}", function(sandbox))));
    Terminal::start(bash)
}

#[test]
fn a_pager_has_the_terminal() {
    let mut shell = Shell::start();
    shell.line(r#"sandboxed 'echo text' | sh -c 'cat; read -r key </dev/tty; echo "pager got $key"'"#);
    shell.terminal.wait_for("text");
    shell.line("this");
    shell.terminal.wait_for("pager got this");
    shell.is_ready();
    // And so has the command that asks for it, wherever its output goes.
    shell.line(r#"sandboxed 'echo up; read -r key </dev/tty; echo "command got $key"' | cat"#);
    shell.terminal.wait_for("up");
    shell.line("that");
    shell.terminal.wait_for("command got that");
    shell.is_ready();
}

#[test]
fn whoever_asks_gets_it() {
    let mut shell = Shell::start();
    // One job: what is not in the sandbox reads beside what is.
    let outside = r#"(read -r key </dev/tty; echo "one got $key")"#;
    let inside = r#"sandboxed "echo up; read -r key; echo \"one got \$key\"""#;
    shell.line(&format!("bash -c '{outside} & {inside}; wait'"));
    shell.terminal.wait_for("up");
    for key in ["this", "that"] {
        shell.line(key);
        shell.terminal.wait_for(&format!("one got {key}"));
    }
    shell.is_ready();
}

/// Says when it is up and when it is continued. No shell: one that is just about to start a program, by `vfork`, cannot
/// be stopped.
const WAITING: &str = "
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
if sys.argv[1:]:
    signal.signal(signal.SIGCONT, lambda *_: os.write(1, b'\\nback'))
    os.write(1, b'up')
    while True:
        os.read(0, 1)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
os.write(1, b'up')
while True:
    signal.sigwait({signal.SIGCONT})
    os.write(1, b'\\nback')
";

#[test]
fn ctrl_z_stops_the_whole_job() {
    for job in [
        "sandboxed 'exec python3 waiting.py' | cat",
        "bash -c 'sandboxed \"exec python3 waiting.py\"; echo next'",
        // Which asks for the terminal.
        "bash -c 'sandboxed \"exec python3 waiting.py input\"; echo next'",
    ] {
        let mut shell = Shell::start();
        shell.sandbox.write("work/waiting.py", WAITING);
        shell.line(job);
        shell.terminal.wait_for("up");
        shell.terminal.press(CTRL_Z);
        shell.terminal.wait_for("Stopped");
        shell.launcher_stops();
        shell.is_ready();
        shell.line("fg");
        shell.terminal.wait_for("\nback");
        shell.terminal.press(CTRL_C);
        shell.terminal.wait_for("ready> ");
    }
}

#[test]
fn ctrl_c_ends_the_whole_job() {
    let mut shell = Shell::start();
    // "up" comes from the program that the shell waits for: a copy of the shell that has not become one yet would have
    // the shell's trap, and survive.
    shell.line("sandboxed 'trap : INT; sh -c \"echo up >&2; exec sleep 600\"; echo went on' | sleep 600");
    shell.terminal.wait_for("up");
    shell.terminal.press(CTRL_C);
    shell.is_ready();
    for step in ["echo up; exec sleep 600", "echo up; read -r x"] {
        shell.line(&format!("bash -c 'for i in 1 2; do sandboxed \"{step}\"; echo still there; done'"));
        shell.terminal.wait_for("up");
        shell.terminal.press(CTRL_C);
        shell.terminal.wait_for("ready> ");
        shell.line("echo status $?");
        shell.terminal.wait_for("status 130");
        assert!(!shell.terminal.shown().contains("still there"), "{}", shell.terminal.shown());
        shell.is_ready();
    }
}

/// Runs its arguments, and says how that ended. Is interrupted as well, and goes on.
const RUNNER: &str = "
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, lambda *_: os.write(1, b'[interrupted]'))
status = subprocess.Popen(sys.argv[1:]).wait()
os.write(1, b'ended %d' % status)
";
/// A shell goes on with its script after the one and not after the other, so it must be as without a sandbox.
#[test]
fn a_command_that_has_dealt_with_ctrl_c_ends_otherwise_than_one_that_died_of_it() {
    let sandbox = Sandbox::new(json!({}));
    let runner = sandbox.write("work/runner.py", RUNNER);
    sandbox.write("work/coping.py", COPING);
    for (script, keys, ended) in
        [("exec python3 coping.py", "\n", "ended 3"), ("echo up; exec sleep 600", "", "ended -2")]
    {
        let inner = sandbox.script(script);
        let mut command = sandbox.command("python3");
        command.arg(&runner).arg(inner.get_program()).args(inner.get_args());
        let mut terminal = Terminal::start(command);
        terminal.wait_for("up");
        terminal.press(CTRL_C);
        if !keys.is_empty() {
            terminal.wait_for("caught");
        }
        terminal.press(keys);
        terminal.wait_for(ended);
        assert!(terminal.shown().contains("[interrupted]"), "{}", terminal.shown());
        assert_eq!(terminal.end(), Some(0));
    }
}

/// No command inside can do what a key does.
#[test]
fn the_command_ends_nobody_elses_part_of_the_job() {
    let sandbox = Sandbox::new(json!({}));
    let signals = "for s in INT QUIT TSTP TTIN TTOU; do kill -$s 0 -1 1 $PPID; done; kill -INT $$";
    let text = format!(
        "trap 'echo hit' INT QUIT TSTP TTIN TTOU\nsandboxed 'trap \"\" QUIT TSTP TTIN TTOU; {signals}'\necho went on $?"
    );
    let mut terminal = script(&sandbox, &text);
    terminal.wait_for("went on 130");
    assert!(!terminal.shown().contains("hit"), "{}", terminal.shown());
    assert_eq!(terminal.end(), Some(0));
}
