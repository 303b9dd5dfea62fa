//! A sandbox on a terminal: the keys that send signals, job control, and typing into it from inside.
#![allow(clippy::unwrap_used)]

use nix::unistd::{Pid, tcgetpgrp};
use serde_json::json;
use srt_tests::sandbox::Sandbox;
use srt_tests::sys::resize;
use srt_tests::terminal::{COPING, CTRL_C, CTRL_Z, Terminal};

fn sandbox() -> Sandbox {
    Sandbox::new(json!({}))
}

#[test]
fn the_command_has_the_terminal() {
    let sandbox = sandbox();
    let mut terminal = Terminal::start(sandbox.script(
        "test -t 0 && test -t 1 && test -t 2 && tty && echo x >/dev/tty && read -r line && echo \"got $line\"",
    ));
    terminal.wait_for("/dev/");
    terminal.press("this\n");
    terminal.wait_for("got this");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn ctrl_c_reaches_the_command() {
    let sandbox = sandbox();
    // "up" comes from the program that the shell waits for: a copy of the shell that has not become one yet would have
    // the shell's trap, and survive.
    let script = "trap 'echo caught; exit 9' INT; sh -c 'echo up; exec sleep 600'";
    let mut terminal = Terminal::start(sandbox.script(script));
    terminal.wait_for("up");
    terminal.press(CTRL_C);
    terminal.wait_for("caught");
    assert_eq!(terminal.end(), Some(9));

    // And may mean nothing to it: it is no request to the launcher.
    sandbox.write("work/coping.py", COPING);
    let mut terminal = Terminal::start(sandbox.script("exec python3 coping.py"));
    terminal.wait_for("up");
    terminal.press(CTRL_C);
    terminal.wait_for("caught");
    terminal.press("\n");
    assert_eq!(terminal.end(), Some(3));
}

#[test]
fn a_change_of_the_window_reaches_the_command() {
    let sandbox = sandbox();
    let mut terminal = Terminal::start(
        sandbox.script("trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.05; done"),
    );
    terminal.wait_for("up");
    resize(&terminal.keyboard, 33, 77);
    terminal.wait_for("33 77");
    assert_eq!(terminal.end(), Some(0));
}

/// The launcher as a job of an interactive shell.
#[test]
fn job_control() {
    let sandbox = sandbox();
    let mut shell = sandbox.command("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "ready> ").env("TERM", "dumb");
    let mut terminal = Terminal::start(shell);
    let script = sandbox.write("work/script", "echo up; read -r line; echo \"got $line\"; sleep 600");
    let launch = format!(
        "'{}' -s '{}' --no-network -- bash '{}'",
        sandbox.launch().get_program().to_str().unwrap(),
        sandbox.settings_file().display(),
        script.display()
    );
    terminal.wait_for("ready> ");
    terminal.press(&format!("{launch}\n"));
    terminal.wait_for("up");
    terminal.press(CTRL_Z);
    terminal.wait_for("Stopped");
    terminal.wait_for("ready> ");
    terminal.press("echo shell; fg\n");
    terminal.wait_for("shell\r\n");
    terminal.press("this\n");
    terminal.wait_for("got this");
    terminal.press(CTRL_C);
    terminal.wait_for("ready> ");
    terminal.press("echo \"status $?\"\n");
    terminal.wait_for("status 130");

    // In the background, what reads from the terminal stops until it is brought forward, and the shell, which
    // tells of it at once, goes on reading.
    terminal.press(&format!("set -b; {launch} &\n"));
    terminal.wait_for("up");
    terminal.wait_for("Stopped");
    assert_eq!(tcgetpgrp(&terminal.keyboard), Ok(Pid::from_raw(terminal.child.id() as i32)));
    terminal.press("fg\n");
    terminal.press("that\n");
    terminal.wait_for("got that");
    terminal.press(CTRL_C);
    terminal.wait_for("ready> ");
    terminal.press("exit 0\n");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn the_caller_has_its_terminal_back() {
    let sandbox = sandbox();
    let inner = sandbox.script("set -m; echo up");
    let mut outer = sandbox.command("bash");
    outer.args(["-c", "\"$@\"; read -r line; echo \"got $line\"", "bash"]);
    outer.arg(inner.get_program()).args(inner.get_args());
    let mut terminal = Terminal::start(outer);
    terminal.wait_for("up");
    terminal.press("this\n");
    terminal.wait_for("got this");
    assert_eq!(terminal.end(), Some(0));
}

/// Attempts as in `launch_escape`, which need a terminal to be made.
#[test]
fn nobody_types_for_the_user() {
    let sandbox = sandbox();
    let injection = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    for attempt in ["tiocsti", "tioclinux"] {
        for (walls, text) in [(&[][..], "refused"), (&["--without", "TerminalInjection"], "succeeded")] {
            if attempt == "tiocsti"
                && !walls.is_empty()
                && injection.as_deref().is_ok_and(|on| on.trim() == "0")
            {
                // This kernel refuses it to everybody.
                continue;
            }
            let mut command = sandbox.command(env!("CARGO_BIN_EXE_launch-without"));
            command.args(walls).arg(sandbox.settings_file()).args([env!("CARGO_BIN_EXE_attempt"), attempt]);
            Terminal::start(command).wait_for(text);
        }
    }
}
