//! One command after another with the same settings: what the first leaves behind must not decide what the second may
//! read or write. In each test the first does its worst, and the second looks for what it should not get.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::process::Command;

use nix::unistd::geteuid;
use serde_json::{Value, json};
use srt_tests::sandbox::{Sandbox, run};

const SECRET: &str = "the secret";

/// A secret at `place`, and what else is there (`a/` a folder, `a -> b` a link, else a file). `TOP` in the lists stands
/// for the folder of the test.
fn set_up(mut lists: Value, place: &str, others: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new(json!({}));
    let top = sandbox.path("");
    let top = top.to_str().unwrap().trim_end_matches('/');
    for key in ["denyRead", "allowRead", "allowWrite", "denyWrite"] {
        if lists[key].is_null() {
            lists[key] = json!([]);
        }
    }
    let lists = serde_json::from_str(&lists.to_string().replace("TOP", top)).unwrap();
    let sandbox = sandbox.with("filesystem", lists);
    sandbox.write(place, SECRET);
    for other in others {
        match other.split_once(" -> ") {
            Some((link, target)) => symlink(target, sandbox.path(link)).unwrap(),
            None if other.ends_with('/') => fs::create_dir_all(sandbox.path(other)).unwrap(),
            None => drop(sandbox.write(other, "x")),
        }
    }
    sandbox
}

/// Neither command prints the secret, and both have been run.
#[track_caller]
fn stays_hidden(sandbox: &Sandbox, first: &str, second: &str) {
    for script in [first, second] {
        let (status, stdout, stderr) = run(&mut sandbox.script(&format!("{script}\necho done")));
        assert_eq!(status, Some(0), "{script}: {stderr}");
        assert!(stdout.ends_with("done\n"), "{script}: {stdout}{stderr}");
        assert!(!stdout.contains(SECRET), "{first} and {second} print what is hidden");
    }
}

#[test]
fn a_link_planted_where_an_allowed_pattern_starts() {
    for (deny, allow) in [
        (json!(["~/.ssh"]), json!(["docs/*"])),
        (json!(["~/.ssh"]), json!(["docs/**/*"])),
        (json!(["~/.ssh", "."]), json!([".", "./docs/*"])),
        (json!(["~/.ssh/id_rsa"]), json!(["docs/*"])),
        (json!(["~/.ssh/*"]), json!(["docs/id_rsa"])),
    ] {
        let lists = json!({"denyRead": deny, "allowRead": allow, "allowWrite": ["."]});
        let sandbox = set_up(lists, "home/.ssh/id_rsa", &["work/docs/"]);
        stays_hidden(&sandbox, "rm -rf docs; ln -s ../home/.ssh docs", "cat docs/id_rsa ~/.ssh/id_rsa");
    }
}

#[test]
fn a_link_planted_on_the_way_to_an_allowed_path() {
    let lists = |allow: &str| json!({"denyRead": ["x"], "allowRead": [allow], "allowWrite": ["x/pub"]});
    for allow in ["x/pub/a/sub", "x/pub/a/sub/key", "x/pub/a/sub/*", "x/pub/a/*"] {
        let sandbox = set_up(lists(allow), "work/x/secret/sub/key", &["work/x/pub/a/sub/"]);
        let first = "mv x/pub/a x/pub/old; ln -s ../secret x/pub/a";
        stays_hidden(&sandbox, first, "cat x/pub/a/sub/key x/secret/sub/key");
    }
    let lists = json!({"denyRead": ["TOP"], "allowRead": [".", "./cfg/pub"], "allowWrite": ["."]});
    let sandbox = set_up(lists, "other/pub/key", &[]);
    stays_hidden(&sandbox, "ln -s ../other cfg", "cat cfg/pub/key ../other/pub/key");
}

/// Some pattern denies what the first command makes, which says nothing of who made it.
#[test]
fn a_link_planted_in_what_is_denied_from_then_on() {
    for (deny_read, deny_write) in
        [(json!(["~/.ssh"]), json!(["**/dist"])), (json!(["~/.ssh", "**/dist"]), json!([]))]
    {
        for allow in ["dist/x/id_rsa", "dist/x/*"] {
            let lists = json!({
                "denyRead": deny_read, "denyWrite": deny_write, "allowRead": [allow], "allowWrite": ["."],
            });
            let sandbox = set_up(lists, "home/.ssh/id_rsa", &[]);
            stays_hidden(
                &sandbox,
                "mkdir dist; ln -s ../../home/.ssh dist/x",
                "cat dist/x/id_rsa ~/.ssh/id_rsa",
            );
        }
    }
}

#[test]
fn a_link_that_a_denied_pattern_leads_through() {
    for deny in ["docs/*.key", "docs/**/*.key", "d*/*.key", "d*/a.key", "docs/a.key", "docs/**"] {
        for first in ["rm docs && mkdir docs", "mv docs elsewhere; mkdir docs", "ln -sfn /nowhere docs"] {
            let others = ["work/docs -> store"];
            let lists = json!({"denyRead": [deny], "allowWrite": ["."]});
            let sandbox = set_up(lists, "work/store/a.key", &others);
            stays_hidden(&sandbox, &format!("{first}; mv store kept"), "cat */a.key store/*");
        }
        let lists = json!({"allowWrite": ["."], "denyWrite": [deny]});
        let sandbox = set_up(lists, "work/store/a.key", &["work/docs -> store"]);
        run(&mut sandbox.script("rm docs && mkdir docs; mv store kept"));
        run(&mut sandbox.script("echo overwritten > store/a.key; echo overwritten > kept/a.key"));
        assert_eq!(sandbox.read("work/store/a.key"), SECRET, "{deny}");
    }
}

/// What cannot be looked at when the plan is made, and can be again afterwards. Root can always look.
#[test]
fn a_folder_behind_a_link_that_is_closed_to_the_next_plan() {
    // Deeper than protected names are looked for, where nothing else would hold it.
    let deep = "a/b/c/d/store";
    for (deny, link, mode) in [
        ("docs/*/a.key", "l -> ../a/b/c/d/store/s", "000"),
        ("docs/**/*.key", "l -> ../a/b/c/d/store/s", "000"),
        ("d*/*/*.key", "l -> ../a/b/c/d/store/s", "444"),
        ("docs/?/**", "l -> ../a/b/c/d/store/s", "000"),
        ("docs/?", "l -> ../a/b/c/d/store/s", "000"),
        ("docs/*.pem", "l.pem -> ../a/b/c/d/store/s/a.key", "111"),
        ("docs/*.pem", "l.pem -> ../a/b/c/d/store/s/a.key", "000"),
        ("docs/l/*", "l -> ../a/b/c/d/store/s", "000"),
        ("docs/l/a.key", "l -> ../a/b/c/d/store/s", "000"),
    ] {
        let lists = json!({"denyRead": [deny], "allowWrite": ["."]});
        let link = format!("work/docs/{link}");
        let sandbox = set_up(lists, &format!("work/{deep}/s/a.key"), &["work/docs/", &link]);
        stays_hidden(
            &sandbox,
            &format!("chmod {mode} {deep}"),
            &format!("chmod 755 {deep}; cat {deep}/s/a.key docs/*"),
        );
        run(Command::new("chmod").arg("755").arg(sandbox.path(format!("work/{deep}"))));
    }
}

/// Every entry below `~` means another place then.
#[test]
fn a_link_that_leads_to_the_home() {
    let lists = json!({"denyRead": ["~/.ssh"], "allowWrite": ["TOP"]});
    let sandbox = set_up(lists, "home/.ssh/id_rsa", &["me -> home"]);
    for script in ["ln -sfn outside ../me; rm -f ../me; mv ../me ../you", "cat ../home/.ssh/id_rsa"] {
        let mut launch = sandbox.script(&format!("{script}\necho done"));
        let (_, stdout, stderr) = run(launch.env("HOME", sandbox.path("me")));
        assert!(stdout == "done\n", "{script}: {stdout}{stderr}");
    }
}

/// Nobody can make the denied name in it, but another folder could be put in its place. As root, since nobody else can
/// give a folder away.
#[test]
fn a_folder_of_somebody_else_that_would_hold_a_denied_name() {
    let lists = json!({"allowWrite": ["."], "denyWrite": ["theirs/hook"]});
    let sandbox = set_up(lists, "work/secret", &["work/theirs/"]);
    if geteuid().is_root() {
        chown(sandbox.path("work/theirs"), Some(65534), Some(65534)).unwrap();
        run(&mut sandbox.script("mv theirs away; mkdir theirs; echo planted > theirs/hook"));
        assert_eq!(sandbox.read("work/theirs/hook"), "");
    }
}

/// Entries that lead to a file of the host by a way through `/proc`, which inside is another one.
#[test]
fn a_file_that_is_denied_by_a_way_through_proc() {
    for deny in ["/proc/self/cwd/f", "/proc/self/cwd/?", "/proc/self/rootTOP/work/f"] {
        let lists = json!({"allowWrite": ["."], "denyWrite": [deny]});
        let sandbox = set_up(lists, "work/f", &[]);
        run(&mut sandbox.script("echo overwritten > f; rm f; mv f g"));
        assert_eq!(sandbox.read("work/f"), SECRET, "{deny}");
        let lists = json!({"allowWrite": ["."], "denyRead": [deny]});
        stays_hidden(&set_up(lists, "work/f", &[]), "cat f", "cat f");
    }
}
