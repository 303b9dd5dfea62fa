//! Folders of other users that root may search on the host and root inside may not, and what rules name in them.
//! An ordinary user cannot have them: there is nothing to be seen as one.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Stdio;

use serde_json::{Value, json};
use srt_tests::sandbox::{Sandbox, run};

/// With `work/bob`, a home that only its owner may enter. `None` for whoever is not root.
fn with_private_folder(filesystem: Value) -> Option<Sandbox> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let sandbox = Sandbox::new(filesystem);
    sandbox.write("work/bob/.bashrc", "rc");
    sandbox.write("work/bob/.ssh/key", "secret");
    sandbox.write("work/bob/p/f", "f");
    for name in ["work/bob", "work/bob/.ssh", "work/bob/.ssh/key", "work/bob/.bashrc", "work/bob/p"] {
        let open = if name == "work/bob" { 0o700 } else { 0o777 };
        fs::set_permissions(sandbox.path(name), Permissions::from_mode(open)).unwrap();
        chown(sandbox.path(name), Some(1), Some(1)).unwrap();
    }
    Some(sandbox)
}

#[test]
fn a_rule_below_a_private_folder_stops_no_command() {
    for lists in [
        json!({"allowWrite": ["."]}),
        json!({"allowWrite": ["."], "denyWrite": ["bob/p/f", "bob/none"]}),
        json!({"denyRead": ["bob/.ssh"]}),
        json!({"denyRead": ["*/.ssh"]}),
        json!({"denyRead": ["bob/.ssh/key"], "allowWrite": ["."], "denyWrite": ["bob/a", "bob/p"]}),
    ] {
        let Some(sandbox) = with_private_folder(lists.clone()) else { return };
        let result = run(&mut sandbox.script("cat bob/.ssh/key bob/.bashrc 2>/dev/null; echo ran"));
        assert_eq!(result, (Some(0), "ran\n".to_owned(), String::new()), "{lists}");
    }
}

/// The owner may open it while the command runs.
#[test]
fn a_deny_in_a_private_folder_holds_when_the_folder_is_opened() {
    let lists = json!({"allowWrite": ["."], "denyRead": ["bob/.ssh"]});
    let Some(sandbox) = with_private_folder(lists) else { return };
    let written = json!({"allowWrite": ["."]});
    let Some(writable) = with_private_folder(written) else { return };
    for sandbox in [sandbox, writable] {
        let script =
            "exec 2>/dev/null; echo ready; read -r; cat bob/.ssh/new; echo evil >bob/.bashrc; echo ran";
        let mut child = sandbox.script(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        fs::set_permissions(sandbox.path("work/bob"), Permissions::from_mode(0o755)).unwrap();
        drop(child.stdin.take());
        assert_eq!(lines.map(Result::unwrap).collect::<Vec<_>>(), ["ran"]);
        child.wait().unwrap();
        assert_eq!(sandbox.read("work/bob/.bashrc"), "rc");
    }
}

/// Root inside owns it, though it may not enter it: its group is not mapped. A `chmod` would open it.
#[test]
fn a_folder_of_roots_own_that_is_closed_to_it_stays_closed() {
    let denied = json!({"allowWrite": ["."], "denyRead": ["own/.ssh"], "denyWrite": ["own/sub/file"]});
    for (lists, opened) in [(json!({"allowWrite": ["."]}), true), (denied, false)] {
        let Some(sandbox) = with_private_folder(lists.clone()) else { return };
        sandbox.write("work/own/.ssh/key", "secret");
        sandbox.write("work/own/sub/file", "kept");
        chown(sandbox.path("work/own"), None, Some(1)).unwrap();
        fs::set_permissions(sandbox.path("work/own"), Permissions::from_mode(0o000)).unwrap();
        let script = "exec 2>/dev/null; cat own/.ssh/key; chmod 777 own; cat own/.ssh/key
            echo evil >own/sub/file; mv own away; true";
        let (status, stdout, stderr) = run(&mut sandbox.script(script));
        assert_eq!((status, stdout.as_str()), (Some(0), if opened { "secret" } else { "" }), "{stderr}");
        assert_eq!(sandbox.path("work/own").exists(), !opened);
        assert_eq!(sandbox.read("work/own/sub/file"), if opened { "" } else { "kept" });
    }
}

/// What others may search is no closed folder, whether they may list it or not.
#[test]
fn in_a_folder_that_may_be_searched_a_deny_is_as_ever() {
    let lists = json!({"allowWrite": ["."], "denyRead": ["bob/.ssh"]});
    let Some(sandbox) = with_private_folder(lists) else { return };
    for mode in [0o711, 0o701] {
        fs::set_permissions(sandbox.path("work/bob"), Permissions::from_mode(mode)).unwrap();
        let script = "exec 2>/dev/null; cat bob/.ssh/key bob/p/f; echo evil >bob/.bashrc; echo x >bob/p/n && rm bob/p/n";
        let (_, stdout, stderr) = run(&mut sandbox.script(&format!("{script} && echo wrote")));
        assert_eq!(stdout, "fwrote\n", "{stderr}");
        assert_eq!(sandbox.read("work/bob/.bashrc"), "rc");
    }
}

#[test]
fn what_cannot_be_opened_is_told() {
    for (lists, name) in [
        (json!({"allowWrite": ["bob/p"]}), "allowWrite `bob/p`"),
        (json!({"denyRead": ["bob"], "allowRead": ["bob/p"]}), "allowRead `bob/p`"),
        (json!({"denyRead": ["."], "allowWrite": ["bob/p"], "denyWrite": ["bob/p/f"]}), "allowWrite `bob/p`"),
    ] {
        let Some(sandbox) = with_private_folder(lists.clone()) else { return };
        let (status, stdout, stderr) = run(&mut sandbox.script("echo ran"));
        assert_eq!((status, stdout.as_str()), (Some(0), "ran\n"), "{lists} {stderr}");
        assert!(stderr.contains(&format!("warning: filesystem.{name}: ")), "{stderr}");
        assert!(stderr.contains("is not opened") && stderr.contains("work/bob\""), "{stderr}");
        let mut strict = sandbox.launch();
        let (status, stdout, _) = run(strict.args(["--strict", "--", "echo", "ran"]));
        assert_eq!((status, stdout.as_str()), (Some(125), ""));
    }
}
