//! Ways out that no rule of the settings names: what git outside would obey afterwards, what a run could leave for
//! the next one, what comes in with the standard streams.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use srt_tests::binary::binary;
use srt_tests::sandbox::{Sandbox, run};

/// `git`, outside, in the working directory.
fn git(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let mut git = sandbox.command("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "safe.directory=*"]);
    let (status, stdout, stderr) = run(git.args(arguments));
    assert_eq!(status, Some(0), "git {arguments:?}: {stderr}");
    stdout
}

/// A repository with a worktree and one commit.
fn repository() -> Sandbox {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]}));
    git(&sandbox, &["init", "-q", "."]);
    sandbox.write("work/a", "a");
    sandbox.write("work/.gitignore", "wt\n");
    git(&sandbox, &["add", "."]);
    git(&sandbox, &["commit", "-qm", "a"]);
    git(&sandbox, &["worktree", "add", "-q", "wt", "-b", "w"]);
    sandbox
}

#[test]
fn git_outside_obeys_no_common_directory_of_the_commands_making() {
    let sandbox = repository();
    let script = r#"
        for g in .git .git/worktrees/wt; do
            mkdir $g/evil && cp -r .git/objects .git/refs .git/evil/
            printf '[core]\nrepositoryformatversion = 0\nfsmonitor = "touch %s; false"\n' "$1" > $g/evil/config
            echo evil > $g/commondir
            mv $g/commondir $g/x; rm -f $g/commondir; mv $g ${g}x
        done 2>/dev/null
        true"#;
    let owned = sandbox.path("outside/owned");
    let (status, _, stderr) = run(sandbox.script(script).arg("x").arg(&owned));
    assert_eq!(status, Some(0), "{stderr}");
    git(&sandbox, &["status"]);
    git(&sandbox, &["-C", "wt", "status"]);
    assert!(!owned.exists());
    assert!(!sandbox.path("work/.git/commondir").exists());
}

/// Git at the top looks into submodules, and whoever works in a worktree calls git there.
#[test]
fn git_outside_obeys_no_git_file_of_the_commands_making() {
    let sandbox = repository();
    let module = sandbox.path("outside/module");
    git(&sandbox, &["clone", "-q", ".", module.to_str().unwrap()]);
    let allow = "protocol.file.allow=always";
    git(&sandbox, &["-c", allow, "submodule", "--quiet", "add", module.to_str().unwrap(), "a1/a2/a3/foo"]);
    git(&sandbox, &["clone", "-q", ".", "a1/a2/a3/own"]);
    git(&sandbox, &["submodule", "--quiet", "add", module.to_str().unwrap(), "a1/a2/a3/own"]);
    git(&sandbox, &["commit", "-qm", "modules"]);
    git(&sandbox, &["worktree", "add", "-q", "a1/a2/a3/wt", "-b", "inner"]);
    let script = r#"
        mkdir evil && cp -r .git/objects .git/refs .git/HEAD evil/
        printf '[core]\nrepositoryformatversion = 0\nfsmonitor = "touch %s; false"\n' "$1" > evil/config
        for g in a1/a2/a3/foo a1/a2/a3/wt a1/a2/a3/own; do
            cp evil/config $g/.git/config
            rm -f $g/.git; mv $g/.git $g/x; mv $g ${g}x; mkdir -p $g; echo "gitdir: $PWD/evil" > $g/.git
        done 2>/dev/null
        echo /nowhere 2>/dev/null >.git/worktrees/wt1/gitdir
        true"#;
    let owned = sandbox.path("outside/owned");
    let (status, _, stderr) = run(sandbox.script(script).arg("x").arg(&owned));
    assert_eq!(status, Some(0), "{stderr}");
    for folder in [".", "a1/a2/a3/foo", "a1/a2/a3/own", "a1/a2/a3/wt"] {
        git(&sandbox, &["-C", folder, "status"]);
        assert!(!owned.exists(), "{folder}");
    }
    assert!(git(&sandbox, &["worktree", "list"]).contains("a1/a2/a3/wt "));
    // As far as they may be used.
    let script = "set -e; export GIT_CONFIG_GLOBAL=/dev/null
        git=\"git -c user.name=n -c user.email=e@example.org -c safe.directory=*\"
        for g in a1/a2/a3/foo a1/a2/a3/wt; do
            echo b > $g/b; $git -C $g add b; $git -C $g commit -qm b; $git -C $g status --porcelain
        done
        $git status --porcelain a1/a2/a3/foo";
    let (status, stdout, stderr) = run(&mut sandbox.script(script));
    assert_eq!((status, stdout.as_str()), (Some(0), " M a1/a2/a3/foo\n"), "{stderr}");
}

/// The placeholder of `commondir` is seen by git on both sides.
#[test]
fn git_works_inside_and_outside_while_a_command_runs() {
    let sandbox = repository();
    let script = "set -e; export GIT_CONFIG_GLOBAL=/dev/null
        git=\"git -c user.name=n -c user.email=e@example.org -c safe.directory=*\"
        echo b > b; $git add -A; $git commit -qm b; $git status --porcelain; $git worktree list | wc -l
        echo ready; read end";
    let mut child = sandbox.script(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    while !seen.ends_with("ready\n") && lines.read_line(&mut seen).unwrap() > 0 {}
    assert_eq!(seen, "2\nready\n");
    assert_eq!(fs::read_to_string(sandbox.path("work/.git/commondir")).unwrap(), ".\n");
    assert_eq!(git(&sandbox, &["log", "--format=%s"]), "b\na\n");
    assert_eq!(git(&sandbox, &["worktree", "list"]).lines().count(), 2);
    assert_eq!(git(&sandbox, &["-C", "wt", "status", "--porcelain"]), "");
    git(&sandbox, &["gc", "-q"]);
    git(&sandbox, &["fsck"]);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(!sandbox.path("work/.git/commondir").exists());
}

#[test]
fn hooks_and_configuration_elsewhere_are_protected_too() {
    let sandbox = repository();
    git(&sandbox, &["config", "core.hooksPath", "scripts"]);
    git(&sandbox, &["config", "include.path", "../more"]);
    sandbox.write("work/scripts/pre-commit", "");
    let (_, stdout, _) = run(&mut sandbox.script(
        "for f in scripts/pre-commit scripts/new more; do echo x 2>/dev/null > $f && echo wrote $f; done",
    ));
    assert_eq!(stdout, "");
}

#[test]
fn a_writable_folder_of_a_tool_opens_nothing_that_the_tool_runs() {
    for (folder, root) in [("work", "a/.claude"), ("work/a/.claude", ".")] {
        let sandbox = Sandbox::new(json!({"allowWrite": [root]}));
        sandbox.write("work/a/.claude/commands/x", "kept");
        let script = "exec 2>/dev/null; cd \"$1\"
            echo evil >>commands/x; touch commands/n; mkdir agents/n; mkdir agents; mv commands c2; rm -rf agents
            touch other && echo ran";
        let mut command = sandbox.script(script);
        command.arg("x").arg(sandbox.path("work/a/.claude")).current_dir(sandbox.path(folder));
        assert_eq!(run(&mut command).1, "ran\n", "{folder}");
        assert_eq!(sandbox.read("work/a/.claude/commands/x"), "kept", "{folder}");
        let left = fs::read_dir(sandbox.path("work/a/.claude")).unwrap().flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["commands", "other"], "{folder}");
        assert!(!sandbox.path("work/a/.claude/commands/n").exists(), "{folder}");
    }
}

#[test]
fn a_command_makes_no_settings_for_the_next_run() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["~"]}));
    let script =
        "echo x 2>/dev/null > ~/.srt-settings.json && echo wrote; mv ~ ~/../h 2>/dev/null && echo moved
        touch ~/other && echo ready; read end";
    let mut child = sandbox.script(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // Meanwhile the file is there for others, and says nothing.
    let mut other = sandbox.command(binary("srt-launch"));
    let (status, stdout, stderr) = run(other.args(["--no-network", "--", "echo", "ran"]));
    assert_eq!((status, stdout.as_str()), (Some(0), "ran\n"), "{stderr}");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(!sandbox.path("home/.srt-settings.json").exists());
}

#[test]
fn a_folder_as_a_standard_stream_is_refused() {
    let sandbox = Sandbox::new(json!({}));
    let outside = File::open(sandbox.path("outside")).unwrap();
    let mut script = sandbox.script("mkdir /proc/self/fd/0/made");
    let (status, _, stderr) = run(script.stdin(outside));
    assert_eq!(status, Some(125), "{stderr}");
    assert!(stderr.starts_with("srt-launch: cannot hand on the standard streams: "), "{stderr}");
    assert!(!sandbox.path("outside/made").exists());
}

#[test]
fn memory_of_the_machine_is_not_shown_to_root() {
    let sandbox = Sandbox::new(json!({}));
    let script = "for f in kcore kpagecount kpageflags kpagecgroup vmallocinfo slabinfo; do
            [ -z \"$(head -c 8 /proc/$f 2>/dev/null | od -An -tx1)\" ] || echo $f; done";
    assert_eq!(run(&mut sandbox.script(script)).1, "");
}

/// A command whose `/` and `/dev/shm` are its own, the latter a folder of the test. A run that may write everywhere makes
/// placeholders in `/`, and keeps those of every other run that it hears of: of all tests that run at the same time.
fn in_own_root(sandbox: &Sandbox, shared: &Path, inner: &Command) -> Command {
    let script = "set -e
        shared=$1 work=$PWD
        shift
        mount -t tmpfs none /mnt
        for entry in /*; do
            if [ -L \"$entry\" ]; then
                cp -P \"$entry\" \"/mnt$entry\"
            elif [ -d \"$entry\" ] && [ \"$entry\" != /mnt ]; then
                mkdir \"/mnt$entry\"
                mount --rbind \"$entry\" \"/mnt$entry\"
            fi
        done
        mkdir /mnt/mnt
        cd /mnt
        PATH=$PATH:/usr/sbin:/sbin pivot_root . mnt
        umount -l mnt
        mount --bind \"$shared\" /dev/shm
        cd \"$work\"
        exec \"$@\"";
    let mut command = sandbox.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(shared);
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

/// Where everything is writable, denies in `/proc` and the state of another run bring back neither the host's `/proc`
/// nor its `/dev`.
#[test]
fn a_writable_root_has_its_own_proc_and_dev() {
    let other = Sandbox::new(json!({"allowWrite": ["."], "denyWrite": ["absent"]}));
    let shared = other.path("shared");
    fs::create_dir(&shared).unwrap();
    let mut command = in_own_root(&other, &shared, &other.script("echo up; read -r _"));
    let mut long = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(long.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let states = || fs::read_dir(&shared).unwrap().count();
    assert_eq!(states(), 1, "the state of that run");
    let script = "exec 2>/dev/null
        [ $(ls -d /proc/[0-9]* | wc -l) -lt 9 ] || echo processes of the host
        [ -z \"$(ls -A /dev/shm)\" ] || echo its memory
        [ -e /dev/srt ] || echo its devices
        echo > /proc/sys/kernel/domainname && echo its switches
        true";
    for lists in [json!({"disabled": true}), json!({"allowWrite": ["/"], "denyRead": ["/proc/cpuinfo"]})] {
        let sandbox = Sandbox::new(lists.clone());
        let (status, stdout, stderr) = run(&mut in_own_root(&sandbox, &shared, &sandbox.script(script)));
        assert_eq!((status, stdout.as_str()), (Some(0), ""), "{lists}: {stderr}");
    }
    drop(long.stdin.take());
    long.wait().unwrap();
    assert_eq!(states(), 0);
}

/// Runs of other users in the same folder must see what is a placeholder.
#[test]
fn the_manifest_is_readable_whatever_the_umask() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]}));
    let mut command = sandbox.command("sh");
    command.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(binary("srt-launch"));
    command.arg("--settings").arg(sandbox.settings_file()).args(["--no-network", "--", "sh", "-c"]);
    command.arg("echo ready; read end").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let mine = format!("srt-{}", nix::unistd::geteuid());
    let folders = fs::read_dir("/dev/shm").unwrap().flatten();
    let folders = folders.filter(|folder| folder.file_name().to_string_lossy().starts_with(&mine));
    let work = sandbox.path("work").into_os_string().into_encoded_bytes();
    let ours = folders.filter_map(|folder| fs::read_dir(folder.path()).ok());
    let ours = ours.flatten().flatten().find(|file| {
        fs::read(file.path()).is_ok_and(|text| text.windows(work.len()).any(|part| part == work))
    });
    assert_eq!(ours.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o644);
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_file_to_be_read_cannot_be_written_through_its_stream() {
    let sandbox = Sandbox::new(json!({"denyRead": ["../hidden"]}));
    for name in ["outside/file", "work/file", "hidden/file"] {
        let path = sandbox.write(name, "one\ntwo\nthree\n");
        let before = fs::metadata(&path).unwrap().permissions();
        let script =
            "read line; echo $line; echo x > /proc/self/fd/0; echo x >> /dev/stdin; chmod 777 /dev/stdin
            python3 -c 'import os; os.fchmod(0, 0o777)'; cat";
        let (_, stdout, _) = run(sandbox.script(script).stdin(File::open(&path).unwrap()));
        assert_eq!(stdout, "one\ntwo\nthree\n", "{name}");
        assert_eq!(sandbox.read(name), "one\ntwo\nthree\n", "{name}");
        assert_eq!(fs::metadata(&path).unwrap().permissions(), before, "{name}");
    }
}

#[test]
fn who_started_us_reads_on_where_the_command_stopped() {
    let sandbox = Sandbox::new(json!({}));
    let file = sandbox.write("outside/file", "one\ntwo\nthree\n");
    let mut shell = sandbox.command("bash");
    shell.args(["-c", "read a; \"$@\"; echo shell; cat", "bash"]).arg(binary("srt-launch"));
    shell.arg("--settings").arg(sandbox.settings_file()).args(["--no-network", "--", "bash", "-c"]);
    shell.arg("read b; echo $b").stdin(File::open(&file).unwrap());
    assert_eq!(run(&mut shell).1, "two\nshell\nthree\n");
    // What has no name can be given all the same.
    let mut unnamed = sandbox.script("cat");
    unnamed.stdin(File::open(&file).unwrap());
    fs::remove_file(&file).unwrap();
    assert_eq!(run(&mut unnamed).1, "one\ntwo\nthree\n");
}

#[test]
fn a_file_that_is_not_found_again_is_handed_on_only_where_it_cannot_be_written() {
    let sandbox = Sandbox::new(json!({}));
    let file = sandbox.write("outside/file", "text\n");
    let stream = File::open(&file).unwrap();
    fs::hard_link(&file, sandbox.path("outside/other")).unwrap();
    fs::remove_file(&file).unwrap();
    let (status, stdout, stderr) = run(sandbox.script("cat").stdin(stream));
    assert_eq!((status, stdout.as_str()), (Some(125), ""), "{stderr}");

    if nix::unistd::geteuid().is_root() {
        // Another user's, in a folder that is closed to us: inside, root is one user among others.
        let file = sandbox.write("closed/file", "text\n");
        let stream = File::open(&file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        chown(&file, Some(1), Some(1)).unwrap();
        chown(sandbox.path("closed"), Some(1), Some(1)).unwrap();
        fs::set_permissions(sandbox.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        let (_, stdout, _) = run(sandbox.script("cat; echo x >> /dev/stdin").stdin(stream));
        assert_eq!((stdout.as_str(), sandbox.read("closed/file").as_str()), ("text\n", "text\n"));
    }
}
