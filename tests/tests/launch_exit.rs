//! Exit statuses, arguments and environment of `srt-launch`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;
use srt_tests::sandbox::{Sandbox, run};

fn sandbox() -> Sandbox {
    Sandbox::new(json!({}))
}

fn launch(sandbox: &Sandbox, command: &[&str]) -> Command {
    let mut launch = sandbox.launch();
    launch.arg("--").args(command);
    launch
}

#[test]
fn the_status_is_the_commands() {
    let sandbox = sandbox();
    for status in [0, 1, 42, 125, 126, 127, 255] {
        assert_eq!(run(&mut sandbox.script(&format!("exit {status}"))).0, Some(status));
    }
    // The last two are real-time signals.
    for (signal, status) in
        [("KILL", 137), ("TERM", 143), ("SEGV", 139), ("INT", 130), ("34", 162), ("64", 192)]
    {
        assert_eq!(run(&mut sandbox.script(&format!("kill -{signal} $$"))).0, Some(status), "{signal}");
    }
}

#[test]
fn what_cannot_be_run_is_told_apart() {
    let sandbox = sandbox();
    let plain = sandbox.write("work/plain", "#!/bin/sh\n");
    let script = sandbox.write("work/script", "exit 7\n");
    let lost = sandbox.write("work/lost", "#!/no/such/interpreter\n");
    for path in [&script, &lost] {
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    for (command, status) in [
        ("no-such-command", 127),
        ("/no/such/command", 127),
        ("./plain/below-a-file", 127),
        (lost.to_str().unwrap(), 127),
        (plain.to_str().unwrap(), 126),
        ("/", 126),
        // A shell runs it, so callers expect it to run.
        (script.to_str().unwrap(), 7),
    ] {
        let (found, stdout, stderr) = run(&mut launch(&sandbox, &[command]));
        assert_eq!(found, Some(status), "{command}: {stderr}");
        assert_eq!(stdout, "");
        assert_eq!(
            stderr.contains("its interpreter `/no/such/interpreter` is missing"),
            lost.ends_with(command)
        );
        if status > 125 {
            assert!(stderr.starts_with("srt-launch: cannot run `") && stderr.contains(command), "{stderr}");
        }
    }
}

#[test]
fn what_only_the_sandbox_hides_is_told_apart_from_what_is_not_there() {
    let sandbox = Sandbox::new(json!({"denyRead": ["hidden"]}));
    let inside = sandbox.write("work/hidden/interpreter", "#!/bin/sh\n");
    // Whatever the temporary folder is called: such a line ends at a blank, and is soon too long.
    let script = sandbox.write("work/script", "#!hidden/interpreter\n");
    for path in [&inside, &script] {
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    for (command, hidden) in [("hidden/interpreter", true), ("./script", true), ("hidden/absent", false)] {
        let (status, _, stderr) = run(&mut launch(&sandbox, &[command]));
        assert_eq!(status, Some(127), "{stderr}");
        assert!(stderr.starts_with(&format!("srt-launch: cannot run `{command}`: No such file")), "{stderr}");
        assert_eq!(stderr.contains("hint: it is there outside"), hidden, "{stderr}");
    }
}

#[test]
fn our_own_failures_are_125_and_run_nothing() {
    let sandbox = sandbox();
    let mut no_settings = sandbox.command(srt_tests::binary::binary("srt-launch"));
    no_settings.args(["--settings", "/no/such/file", "--", "echo", "ran"]);
    let mut closed = sandbox.launch();
    closed.args(["--pass-fd", "99", "--", "echo", "ran"]);
    let mut misspelt = sandbox.launch();
    misspelt.args(["--chdri", "/", "--", "echo", "ran"]);
    let mut nowhere = sandbox.launch();
    nowhere.args(["--chdir", "/no/such/folder", "--", "echo", "ran"]);
    for (mut command, text) in [
        (no_settings, "/no/such/file"),
        (closed, "--pass-fd 99: not open"),
        (misspelt, "--chdir"),
        (nowhere, "/no/such/folder"),
        (sandbox.launch(), "no command"),
    ] {
        let (status, stdout, stderr) = run(&mut command);
        assert_eq!((status, stdout.as_str()), (Some(125), ""), "{stderr}");
        assert!(stderr.contains(text), "{stderr}");
    }
}

#[test]
fn what_cannot_be_said_changes_nothing() {
    let sandbox = sandbox().with("future", json!(1));
    for (command, status) in [(&["sh", "-c", "exit 3"][..], 3), (&["/nonexistent"], 127)] {
        let mut launch = launch(&sandbox, command);
        launch.stderr(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        assert_eq!(launch.status().unwrap().code(), Some(status));
    }
}

#[test]
fn arguments_reach_the_command_as_they_are() {
    let sandbox = sandbox();
    let odd = ["-n", "a b", "", "$x", "*", "--debug", "--", "\u{fc}\n"];
    let command = [&["printf", "<%s>"][..], &odd].concat();
    let want: String = odd.iter().map(|arg| format!("<{arg}>")).collect();
    assert_eq!(run(&mut launch(&sandbox, &command)).1, want);
    // More than one argument may hold.
    let long = "y".repeat(100_000);
    let many: Vec<&str> = std::iter::once("echo").chain(std::iter::repeat_n(long.as_str(), 10)).collect();
    assert_eq!(run(&mut launch(&sandbox, &many)).1.len(), 1_000_010);
}

#[test]
fn streams_are_the_callers() {
    let sandbox = sandbox();
    let (status, stdout, stderr) = run(&mut sandbox.script("printf out; printf err >&2"));
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (Some(0), "out", "err"));
}

#[test]
fn nothing_but_the_streams_is_open() {
    let sandbox = sandbox();
    let (_, stdout, stderr) = run(&mut launch(&sandbox, &["ls", "/proc/self/fd"]));
    // The fourth is the folder that is being listed.
    assert_eq!(stdout, "0\n1\n2\n3\n", "{stderr}");
}

#[test]
fn the_environment_is_what_was_asked_for() {
    let sandbox = sandbox();
    let mut command = sandbox.launch();
    command.env("KEPT", "a").env("TAKEN", "b");
    command.args(["--setenv", "SET=c=d", "--unsetenv", "TAKEN", "--", "sh", "-c"]);
    command.arg("echo $KEPT,$TAKEN,$SET,$SANDBOX_RUNTIME; test -w \"$TMPDIR\" && echo writable");
    assert_eq!(run(&mut command).1, "a,,c=d,1\nwritable\n");
}

#[test]
fn signals_are_as_the_caller_left_them() {
    let sandbox = sandbox();
    let (_, stdout, _) = run(&mut launch(&sandbox, &["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]));
    let masks = stdout.lines().map(|line| u64::from_str_radix(&line[line.len() - 16..], 16).unwrap());
    // Without the two that the C library keeps for itself, and that its `posix_spawn` leaves ignored.
    assert_eq!(masks.map(|mask| mask & 0x7fff_ffff).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn a_working_directory_that_is_gone_is_no_matter_where_another_is_named() {
    let sandbox = sandbox();
    for (chdir, want) in [("/", (Some(0), "/\n")), (".", (Some(125), ""))] {
        let mut inner = sandbox.launch();
        inner.args(["--chdir", chdir, "--", "pwd"]);
        let mut command = sandbox.command("sh");
        command.args(["-c", "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"", "sh"]);
        command.arg(inner.get_program()).args(inner.get_args());
        let (status, stdout, stderr) = run(&mut command);
        assert_eq!((status, stdout.as_str()), want, "{stderr}");
    }
}

#[test]
fn the_command_is_in_its_working_directory_or_in_one_above() {
    let sandbox = Sandbox::new(json!({"denyRead": ["hidden"]}));
    fs::create_dir(sandbox.path("work/hidden")).unwrap();
    assert_eq!(run(&mut launch(&sandbox, &["pwd"])).1, format!("{}\n", sandbox.path("work").display()));
    let mut elsewhere = sandbox.launch();
    elsewhere.args(["--chdir", "../outside", "--", "pwd"]);
    assert_eq!(run(&mut elsewhere).1, format!("{}\n", sandbox.path("outside").display()));
}
