//! Machines that refuse a step: what is said, and that nothing runs weaker than asked.

use std::process::Command;

use serde_json::json;
use srt_tests::binary::binary;
use srt_tests::sandbox::{Sandbox, run};

/// A command in a user namespace, and what is done there first.
fn after(sandbox: &Sandbox, setup: &str, inner: &Command) -> Command {
    let mut command = sandbox.command("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        &format!("{setup} && exec \"$@\""),
        "sh",
    ]);
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

const NO_NAMESPACES: &str = "echo 0 >/proc/sys/user/max_user_namespaces";
const MASKED_PROC: &str = "mount -t tmpfs none /proc/bus";

#[test]
fn a_refused_step_is_named_with_what_to_change() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]}));
    for (setup, first, hint) in [
        (NO_NAMESPACES, "cannot create the namespaces of the sandbox: clone: ", "user.max_user_namespaces"),
        (MASKED_PROC, "cannot make the sandbox's /proc: fsmount(proc): ", "enableWeakerNestedSandbox"),
    ] {
        let (status, stdout, stderr) = run(&mut after(&sandbox, setup, &sandbox.script("echo ran")));
        assert_eq!((status, stdout.as_str()), (Some(125), ""), "{stderr}");
        let lines: Vec<_> = stderr.lines().collect();
        assert!(lines[0].starts_with(&format!("srt-launch: {first}")), "{stderr}");
        assert!(lines[1].contains(hint), "{stderr}");
        // As the check says.
        let (status, stdout, _) = run(&mut after(&sandbox, setup, Command::new(binary("srt")).arg("check")));
        assert_eq!(status, Some(1));
        assert!(stdout.starts_with(&format!("NO SANDBOX     {first}")) && stdout.contains(hint), "{stdout}");
        assert_eq!(std::fs::read_dir(sandbox.path("work")).unwrap().count(), 0);
    }
}

#[test]
fn a_weaker_sandbox_runs_where_it_was_asked_for_and_says_so() {
    let sandbox = Sandbox::new(json!({})).with("enableWeakerNestedSandbox", json!(true));
    let inner = sandbox.script("echo ran; echo x >/proc/sys/kernel/domainname");
    let (_, stdout, stderr) = run(&mut after(&sandbox, MASKED_PROC, &inner));
    assert_eq!(stdout, "ran\n", "{stderr}");
    assert!(stderr.contains("enableWeakerNestedSandbox"), "{stderr}");
    // Only where it is needed.
    let (status, stdout, stderr) = run(&mut sandbox.script("echo ran; ls -d /proc/[0-9]* | wc -l"));
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with("ran\n") && stdout.trim().ends_with(['3', '4', '5']), "{stdout}");
}

#[test]
fn the_check_says_what_holds() {
    let sandbox = Sandbox::new(json!({}));
    let (status, stdout, stderr) = run(sandbox.command(binary("srt")).arg("check"));
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    let (last, canaries) =
        stdout.lines().collect::<Vec<_>>().split_last().map(|(l, c)| (*l, c.to_vec())).unwrap();
    assert_eq!((last, canaries.len()), ("everything holds", 15));
    assert!(canaries.iter().all(|line| line.starts_with("holds ")), "{stdout}");
}

#[test]
fn no_tool_is_needed_on_the_path() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."], "denyWrite": ["name"]}));
    let mut command = sandbox.launch();
    command.env("PATH", "/nonexistent").args(["--", "/bin/sh", "-c", "echo ran"]);
    assert_eq!(run(&mut command), (Some(0), "ran\n".to_owned(), String::new()));
}
