//! Mount points on the host for absent names: they hold while commands run, disturb neither git nor other runs, and are
//! gone afterwards, however a run ended.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use srt_tests::proxy::PATIENCE;
use srt_tests::sandbox::{Sandbox, run};

/// What is below a folder: kind and permissions, contents.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

fn tree(folder: &Path) -> Tree {
    let mut found = Tree::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(folder) = todo.pop() {
        // Whatever it is may go while we look.
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                todo.push(entry.path());
            }
            found.insert(entry.path(), (metadata.mode(), fs::read(entry.path()).unwrap_or_default()));
        }
    }
    found
}

fn git(sandbox: &Sandbox, args: &[&str]) {
    let mut git = sandbox.command("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
    let (status, stdout, stderr) = run(&mut git);
    assert_eq!(status, Some(0), "{args:?}: {stdout}{stderr}");
}

/// A repository with every protected name absent.
fn repository() -> Sandbox {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."], "denyWrite": ["no/such/file"]}));
    git(&sandbox, &["init", "-q", "-b", "main"]);
    sandbox.write("work/file", "contents\n");
    sandbox.write("work/sub/file", "contents\n");
    git(&sandbox, &["add", "."]);
    git(&sandbox, &["commit", "-q", "-m", "one"]);
    fs::remove_dir_all(sandbox.path("work/.git/hooks")).unwrap();
    sandbox
}

/// Tries to write every denied name, again and again; says `ran`, and what got through.
const ATTACK: &str = "
    exec 2>/dev/null
    for i in 1 2 3 4 5; do
        for name in .bashrc .profile .gitconfig .mcp.json .git/hooks/pre-commit .git/config no/such/file; do
            rm -f $name
            mkdir -p ${name%/*}
            echo evil >>$name && echo broken $name
        done
        mkdir .vscode && echo evil >.vscode/x && echo broken .vscode
        sleep 0.00$((RANDOM % 10))
    done
    echo ran
    sleep ${1:-0}";

fn start(sandbox: &Sandbox, linger: &str) -> Child {
    let mut command = sandbox.script(ATTACK);
    command.args(["bash", linger]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// A number below `end`, another one each time.
fn random(end: u64) -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    ((now ^ now >> 17).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % end
}

#[test]
fn two_hundred_runs_in_one_repository() {
    let sandbox = repository();
    let before = tree(&sandbox.path("work"));
    for _ in 0..10 {
        let runs: Vec<Child> = (0..20).map(|_| start(&sandbox, "0")).collect();
        for run in runs {
            let output = run.wait_with_output().unwrap();
            let (stdout, stderr) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert_eq!((stdout.as_ref(), stderr.as_ref()), ("ran\n", ""));
        }
        assert_eq!(tree(&sandbox.path("work")), before);
    }
}

#[test]
fn launchers_killed_at_random_moments() {
    let sandbox = repository();
    let before = tree(&sandbox.path("work"));
    for _ in 0..5 {
        let runs: Vec<Child> = (0..20).map(|_| start(&sandbox, "600")).collect();
        for mut run in runs {
            sleep(Duration::from_micros(random(8000)));
            run.kill().unwrap();
            run.wait().unwrap();
        }
        // The sandboxes have to die first, which on a busy machine they may do late.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = tree(&sandbox.path("work"));
            if now == before {
                break;
            }
            let left: Vec<_> = now.keys().filter(|path| !before.contains_key(*path)).collect();
            assert!(Instant::now() < deadline, "left: {left:?}");
            sleep(Duration::from_millis(10));
        }
    }
}

/// The child of the launcher that has only one number: the other one is the first process of the sandbox's pid namespace.
fn keeper_of(launcher: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap();
    let is_keeper = |pid: &&str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().any(|line| line.split_whitespace().eq(["NSpid:", pid]))
    };
    Pid::from_raw(children.split_whitespace().find(is_keeper).unwrap().parse().unwrap())
}

#[test]
fn a_killed_keeper_ends_the_run_and_leaves_nothing() {
    let sandbox = repository();
    let before = tree(&sandbox.path("work"));
    let mut command = sandbox.script("echo started; read -r");
    let mut run =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    run.stdout.as_mut().unwrap().read_exact(&mut [0; 8]).unwrap();
    kill(keeper_of(run.id()), Signal::SIGKILL).unwrap();
    let output = run.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("the process that keeps them ended"), "{stderr}");
    assert_eq!(tree(&sandbox.path("work")), before);
}

#[test]
fn git_does_not_see_them() {
    for home in ["home", "work"] {
        let sandbox = repository();
        let script = "set -e
            echo more >>file; echo new >added
            test \"$(git status --porcelain)\" = ' M file
?? added'
            git add -A
            git -c user.name=t -c user.email=t@example.org commit -q -m two
            test -z \"$(git status --porcelain)\"
            git ls-tree -r --name-only HEAD";
        let mut command: Command = sandbox.script(script);
        command.env("HOME", sandbox.path(home));
        let (status, stdout, stderr) = run(&mut command);
        assert_eq!(
            (status, stdout.as_str()),
            (Some(0), "added\nfile\nsub/file\n"),
            "HOME in {home}: {stderr}"
        );
        assert!(!sandbox.path("work/.bashrc").exists());
    }
}

/// What git is told of one repository's placeholders hides no file of the same name elsewhere.
#[test]
fn git_sees_what_is_no_placeholder() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]}));
    sandbox.write("work/app/hooks/a.sh", "");
    sandbox.write("work/app/info", "");
    git(&sandbox, &["init", "-q", "--template=", "app"]);
    // Started in the repository, and above it.
    for (folder, wanted) in [
        ("app", "commondir\nhooks/a.sh\ninfo\n"),
        (".", ".mcp.json\n.vscode/s\ncommondir\nhooks/a.sh\ninfo\nmade/.bashrc\n"),
    ] {
        let script = "set -e; cd \"$1\"
            echo 1 >commondir
            if [ \"$2\" = . ]; then
                mkdir .vscode made; echo 1 >.vscode/s; echo 1 >.mcp.json; echo 1 >made/.bashrc; git add .mcp.json
                git init -q made/new; echo 1 >made/new/.bashrc; git -C made/new status --porcelain >new
                grep -q .bashrc new; rm -rf new made/new
            fi
            git status --porcelain -uall | wc -l
            git add -A; git -c user.name=t -c user.email=t@example.org commit -q -m \"$2\"
            git ls-tree -r --name-only HEAD; git clean -fd";
        let mut command = sandbox.script(script);
        command
            .arg("x")
            .arg(sandbox.path("work/app"))
            .arg(folder)
            .current_dir(sandbox.path("work").join(folder));
        let (status, stdout, stderr) = run(&mut command);
        let new = wanted.lines().count() - if folder == "." { 3 } else { 0 };
        assert_eq!((status, stdout), (Some(0), format!("{new}\n{wanted}")), "{folder}: {stderr}");
    }
}

/// Nor does git try to remove them: they cannot be.
#[test]
fn git_clean_leaves_them() {
    let sandbox = repository();
    let script = "touch new; mkdir folder; touch folder/f; git clean -fdq && ls -A folder new 2>/dev/null";
    let (status, stdout, stderr) = run(sandbox.script(script).stderr(Stdio::piped()));
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (Some(2), "", ""));
}

/// A worktree and a submodule have their git directory elsewhere; a repository may be made during the run.
#[test]
fn git_does_not_see_them_whatever_the_layout() {
    let sandbox = repository();
    git(&sandbox, &["worktree", "add", "-q", "../wt [*\"x", "-b", "w"]);
    let module = sandbox.path("outside/module");
    git(&sandbox, &["clone", "-q", ".", module.to_str().unwrap()]);
    let add =
        ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", module.to_str().unwrap(), "m"];
    git(&sandbox, &add);
    git(&sandbox, &["commit", "-q", "-m", "module"]);
    fs::create_dir(sandbox.path("none")).unwrap();
    for folder in ["work", "work/m", "work/sub", "wt [*\"x", "none"] {
        let script = "set -e; [ \"$1\" != none ] || git init -q .
            git status --porcelain -uall; git clean -fdq; echo 1 >new; git status --porcelain -uall; rm new";
        let mut command = sandbox.script(script);
        command.arg("x").arg(folder).current_dir(sandbox.path(folder));
        let (status, stdout, stderr) = run(&mut command);
        let new = if folder == "work/sub" { "?? sub/new\n" } else { "?? new\n" };
        assert_eq!((status, stdout.as_str()), (Some(0), new), "{folder}: {stderr}");
    }
}

#[test]
fn one_run_that_ends_leaves_the_others_theirs() {
    let sandbox = repository();
    let mut long = sandbox.script("read -r; echo evil >.bashrc; mkdir .idea; echo evil >no; true");
    let mut long = long.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..20 {
        assert_eq!(run(&mut sandbox.script("true")).0, Some(0));
    }
    drop(long.stdin.take());
    assert!(long.wait().unwrap().success());
    for name in [".bashrc", ".idea", "no"] {
        assert!(!sandbox.path("work").join(name).exists(), "{name}");
    }
}

#[test]
fn a_folder_of_ones_own_that_may_not_be_written_is_no_way_round() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new(json!({"allowWrite": ["."], "denyWrite": ["locked/name"]}));
    let locked = sandbox.path("work/locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, PermissionsExt::from_mode(0o555)).unwrap();
    let (status, _, stderr) = run(&mut sandbox.script("chmod u+w locked; echo evil >locked/name; true"));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(!locked.join("name").exists());
}
