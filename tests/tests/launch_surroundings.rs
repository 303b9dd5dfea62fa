//! Machines that refuse a step: what is said, and that nothing runs weaker than asked.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::thread::spawn;

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
const NO_NETWORKS: &str = "echo 0 >/proc/sys/user/max_net_namespaces";
const FEW_FILES: &str = "ulimit -n 12";
const MASKED_PROC: &str = "mount -t tmpfs none /proc/bus";

#[test]
fn a_refused_step_is_named_with_what_to_change() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]}));
    for (setup, first, hint) in [
        (NO_NAMESPACES, "cannot create the namespaces of the sandbox: clone: ", "user.max_user_namespaces"),
        (
            NO_NETWORKS,
            "cannot make the sandbox's network: unshare(CLONE_NEWNET): ",
            "user.max_net_namespaces",
        ),
        (FEW_FILES, "cannot ", "ulimit -n"),
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
        assert_eq!(fs::read_dir(sandbox.path("work")).unwrap().count(), 0, "{setup}");
    }
}

#[test]
fn a_check_that_has_no_place_says_what_to_change() {
    let sandbox = Sandbox::new(json!({}));
    let (status, stdout, stderr) = run(sandbox.command(binary("srt")).arg("check").env("TMPDIR", "/no/such"));
    assert_eq!((status, stdout.as_str()), (Some(125), ""));
    assert!(stderr.contains("`/no/such`") && stderr.contains("set TMPDIR"), "{stderr}");
}

#[test]
fn what_the_host_lacks_is_named_with_what_to_change() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]}));
    for (setup, first, hint) in [
        (
            "mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero >/dev/shm/f",
            "make the mount point of an absent path: write to the manifest: ",
            "size=",
        ),
        (
            "mount --bind /dev/shm /dev/shm && mount -o remount,bind,ro /dev/shm",
            "make the mount point of an absent path: make the manifest /dev/shm/srt-",
            "writable",
        ),
        ("mount -t tmpfs none /proc", "map the user into the sandbox: write ", "mount -t proc"),
    ] {
        let (status, stdout, stderr) = run(&mut after(&sandbox, setup, &sandbox.script("echo ran")));
        assert_eq!((status, stdout.as_str()), (Some(125), ""), "{stderr}");
        let lines: Vec<_> = stderr.lines().collect();
        assert!(lines[0].starts_with(&format!("srt-launch: cannot {first}")), "{stderr}");
        assert!(lines[1].starts_with("srt-launch: hint: ") && lines[1].contains(hint), "{stderr}");
        assert_eq!(fs::read_dir(sandbox.path("work")).unwrap().count(), 0, "{setup}");
    }
}

/// Whichever step it is that finds no descriptor left: each placeholder takes one, and removing it takes some too. The
/// launcher may have been given some that others need not have, and closes them only in the sandbox.
#[test]
fn with_few_descriptors_it_runs_or_says_so_and_leaves_nothing() {
    for given in [0, 5] {
        let ends: Vec<_> = (3..=40).map(|more| end_with_few_descriptors(given, given + more)).collect();
        assert!(ends.first() == Some(&Some(125)) && ends.last() == Some(&Some(0)), "{given}: {ends:?}");
    }
}

/// The exit status of a launcher that has `given` descriptors besides its streams, and may have `most`.
fn end_with_few_descriptors(given: usize, most: usize) -> Option<i32> {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]}));
    let inner = sandbox.script("echo x >.mcp.json || echo refused");
    let mut command = sandbox.command("sh");
    let open: String = (3..3 + given).map(|fd| format!("exec {fd}</dev/null; ")).collect();
    command.args(["-c", &format!("{open}ulimit -n {most} && exec \"$@\""), "sh"]);
    let (status, stdout, stderr) = run(command.arg(inner.get_program()).args(inner.get_args()));
    let what = format!("{given} of {most}: {status:?} {stdout} {stderr}");
    match status {
        Some(0) => assert_eq!(stdout, "refused\n", "{what}"),
        _ => assert!(status == Some(125) && stdout.is_empty() && stderr.contains("ulimit -n"), "{what}"),
    }
    let left: Vec<_> =
        sandbox.path("work").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{what} leaves {left:?}");
    status
}

#[test]
fn where_tmpdir_has_to_be_made_the_first_run_has_its_denies_too() {
    for denied in ["/tmp/claude", "/tmp/claude/name", "/tmp/cl*"] {
        let sandbox = Sandbox::new(json!({"denyWrite": [denied]}));
        // A new /tmp, in which this test's folder is still there.
        let root = sandbox.path("");
        let in_tmp = root.strip_prefix("/tmp").unwrap_or(Path::new("unused")).display();
        let new_tmp = format!(
            "mount -t tmpfs -o mode=1777 none /mnt && mkdir -p '/mnt/{in_tmp}' && \
             mount --rbind '{root}' '/mnt/{in_tmp}' && mount --rbind /mnt /tmp && cd '{root}/work'",
            root = root.display(),
        );
        let script = "echo $TMPDIR; ls -d $TMPDIR; echo x >/tmp/claude/name; cat /tmp/claude/name";
        let (status, stdout, stderr) = run(&mut after(&sandbox, &new_tmp, &sandbox.script(script)));
        assert!(stderr.contains("name: Read-only file system"), "{denied}: {stderr}");
        let there = denied.ends_with("name");
        assert_eq!(
            (status, stdout.as_str()),
            (Some(i32::from(!there)), "/tmp/claude\n/tmp/claude\n"),
            "{denied}"
        );
    }
}

#[test]
fn more_connections_than_threads_are_refused_and_later_ones_served() {
    let sandbox = Sandbox::new(json!({}));
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap().to_string();
    // Answers a line, and keeps everybody who says none.
    spawn(move || {
        for client in proxy.incoming() {
            let client = client.unwrap();
            spawn(move || {
                let mut line = String::new();
                let _ = BufReader::new(&client).read_line(&mut line);
                let _ = write!(&client, "got {line}");
            });
        }
    });
    let connections = "
        (for i in {1..60}; do exec {fd}<>/dev/tcp/127.0.0.1/3128; done; sleep 1) 2>/dev/null
        for i in {1..20}; do
            sleep 0.1
            { exec {fd}<>/dev/tcp/127.0.0.1/3128 && echo $i >&$fd && timeout 5 grep got <&$fd && break; } 2>/dev/null
        done";
    let mut command = sandbox.command("sh");
    // Each takes two, of two megabytes.
    command.args(["-c", "ulimit -v 65536 && exec \"$@\"", "sh"]).arg(binary("srt-launch"));
    command.arg("--settings").arg(sandbox.settings_file());
    command.args(["--proxy", &address, "--", "bash", "-c", connections]);
    let (status, stdout, stderr) = run(&mut command);
    assert!(stdout.starts_with("got "), "{status:?} {stdout} {stderr}");
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
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

/// Files of root's seem to be nobody's to an ordinary user inside, and `ssh` refuses to include such.
#[test]
fn ssh_starts_whatever_its_configuration_includes() {
    // Nobody else can make files of root's.
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let sandbox = Sandbox::new(json!({}));
    sandbox.write("etc/ssh_config", "Include=ssh_config.d/*.conf\n");
    let elsewhere = sandbox.path("policies");
    let include = format!("Host x\n  include more/[a-z]*.conf  \"{}/p q\"\n", elsewhere.display());
    sandbox.write("etc/ssh_config.d/50-x.conf", &include);
    sandbox.write("etc/more/openssh.conf", "Host *\nUser one\n");
    sandbox.write("policies/p q", "Host *\nPort 77\n");
    sandbox.write("home/.ssh/config", &format!("Include {}/own\n", elsewhere.display()));
    sandbox.write("policies/own", "Host *\nHostName two\n");
    for name in ["", "settings.json"] {
        fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in ["home", "home/.ssh", "home/.ssh/config"] {
        chown(sandbox.path(name), Some(1), Some(1)).unwrap();
    }
    // The user's by an option: ssh looks for it in the home of the password database.
    let script =
        "{ ssh -TG x && ssh -F ~/.ssh/config -TG y; } | grep -E '^(user|port|hostname) (one|77|two)'";
    let inner = sandbox.script(script);
    let mut command = sandbox.command("unshare");
    let script =
        "mount --bind \"$1\" /etc/ssh && shift && exec setpriv --reuid 1 --regid 1 --clear-groups \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(sandbox.path("etc"));
    command.arg(inner.get_program()).args(inner.get_args()).env("HOME", sandbox.path("home"));
    let (status, stdout, stderr) = run(&mut command);
    assert_eq!(
        (status, stdout.as_str(), stderr.as_str()),
        (Some(0), "user one\nport 77\nhostname two\n", "")
    );
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
