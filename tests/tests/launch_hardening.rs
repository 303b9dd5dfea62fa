//! Ways out that no rule of the settings names: what git outside would obey afterwards, what a run could leave for
//! the next one, what comes in with the standard streams.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use serde_json::json;
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
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    while !seen.ends_with("ready\n") && std::io::BufRead::read_line(&mut lines, &mut seen).unwrap() > 0 {}
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
