use std::{
    fs::Permissions,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use super::*;

#[test]
fn files_and_folders() {
    let tree = Tree::new(&["a/x", "a/y", "s/x", "h/.ssh/id"]);
    check(&tree, json!({"denyRead": []}), &[]);
    check(&tree, json!({"denyRead": ["a/x"]}), &["empty-file a/x"]);
    check(&tree, json!({"denyRead": ["s"]}), &["empty-dir s"]);
    check(&tree, json!({"denyRead": ["s/"]}), &["empty-dir s"]);
    check(&tree, json!({"denyRead": ["s/**"]}), &["empty-dir s"]);
    check(&tree, json!({"denyRead": ["./a/../a/./x", "TOP/w//a/y"]}), &["empty-file a/x", "empty-file a/y"]);
    check(&tree, json!({"denyRead": ["~/.ssh"]}), &["empty-dir h/.ssh"]);
    check(&tree, json!({"denyRead": ["~"]}), &["empty-dir h"]);
    check(&tree, json!({"denyRead": ["none", "no/such/dir", "/nonexistent/x", "a/x/y"]}), &[]);
}

#[test]
fn the_most_specific_entry_decides() {
    let tree = Tree::new(&["1/x", "1/2/x", "1/2/3/x", "1/2/3/4/x", "s/x", "s/pub/y"]);
    check(
        &tree,
        json!({"denyRead": ["1", "1/2/3"], "allowRead": ["1/2", "1/2/3/4"]}),
        &["empty-dir 1", "reopen 1/2", "empty-dir 1/2/3", "reopen 1/2/3/4"],
    );
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s/pub"]}), &["empty-dir s", "reopen s/pub"]);
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s"]}), &[]);
    // A denied file is lifted by that file only.
    check(&tree, json!({"denyRead": ["s/x"], "allowRead": ["s"]}), &["empty-file s/x"]);
    check(&tree, json!({"denyRead": ["s/x"], "allowRead": ["s/x"]}), &[]);
    check(&tree, json!({"denyRead": ["s/x"], "allowRead": ["s/*"]}), &[]);
    // An allow outside of everything denied changes nothing.
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["1"]}), &["empty-dir s"]);
}

#[test]
fn what_is_writable_is_readable() {
    let tree = Tree::new(&["s/x", "s/w/y"]);
    check(&tree, json!({"denyRead": ["s"], "allowWrite": ["s/w"]}), &["empty-dir s", "reopen-writable s/w"]);
    check(&tree, json!({"denyRead": ["s"], "allowWrite": ["s"]}), &["writable s"]);
    check(&tree, json!({"denyRead": ["s/w"], "allowWrite": ["s"]}), &["writable s", "empty-dir s/w"]);
    // A denied file is not opened by making it writable.
    check(&tree, json!({"denyRead": ["s/x"], "allowWrite": ["s/x"]}), &["empty-file s/x"]);
    check(&tree, json!({"denyRead": ["s/x"], "allowWrite": ["s"]}), &["writable s", "empty-file s/x"]);
    // What is only to be read again is not writable because of what lies around the hidden folder.
    check(
        &tree,
        json!({"denyRead": ["s"], "allowRead": ["s/w"], "allowWrite": ["."]}),
        &["writable w", "empty-dir s", "reopen s/w"],
    );
    check(
        &tree,
        json!({"denyRead": ["s"], "allowRead": ["s"], "allowWrite": ["."]}),
        &["writable w", "read-only s"],
    );
    // A write deny leaves it shown, and read-only.
    check(
        &tree,
        json!({"denyRead": ["s"], "allowWrite": ["s/w"], "denyWrite": ["s"]}),
        &["empty-dir s", "reopen s/w"],
    );
}

#[test]
fn default_write_paths_open_nothing_hidden() {
    let tree = Tree::new(&["h/.npm/_logs/", "h/.claude/debug/", "h/x"]);
    check(&tree, json!({}), &["writable h/.claude/debug", "writable h/.npm/_logs"]);
    check(&tree, json!({"denyRead": ["~"]}), &["empty-dir h"]);
    check(
        &tree,
        json!({"denyRead": ["~"], "allowRead": ["~/.npm"]}),
        &["empty-dir h", "reopen h/.npm", "writable h/.npm/_logs"],
    );
}

#[test]
fn a_denied_root_is_its_folders() {
    let tree = Tree::new(&["x"]);
    let planned = tree.plan(json!({"denyRead": ["/"], "allowRead": ["/usr", "."]}));
    let line = |path: &str| {
        planned.plan.mounts.iter().find(|mount| mount.target == Path::new(path)).map(|m| &m.kind)
    };
    assert_eq!(line("/etc"), Some(&MountKind::EmptyDir));
    assert_eq!(line("/usr"), None);
    assert_eq!(line("/tmp"), Some(&MountKind::EmptyDir));
    for own in ["/", "/proc", "/dev", "/sys"] {
        assert_eq!(line(own), None, "{own}");
    }
    assert_eq!(planned.mounts(), ["reopen w"]);
    let planned = tree.plan(json!({"denyRead": ["/"], "allowRead": ["/"]}));
    assert!(
        // Whose it is on this machine decides its name.
        planned.plan.mounts.iter().all(|mount| mount.target.to_string_lossy().starts_with("/tmp/claude")),
        "{:?}",
        planned.plan.mounts
    );
}

#[test]
fn links() {
    let tree = Tree::new(&[
        "real/key",
        "a.pem -> real/key",
        "ln -> real",
        "dang -> nowhere",
        "c1 -> c2",
        "c2 -> c1",
        "o",
    ]);
    check(&tree, json!({"denyRead": ["a.pem"]}), &["empty-file real/key"]);
    check(&tree, json!({"denyRead": ["*.pem"]}), &["empty-file real/key"]);
    check(&tree, json!({"denyRead": ["ln"]}), &["empty-dir real"]);
    check(&tree, json!({"denyRead": ["ln/key"]}), &["empty-file real/key"]);
    check(&tree, json!({"denyRead": ["dang", "c1", "c*", "da*"]}), &[]);
    // Where the command could replace the link, it stays.
    check(
        &tree,
        json!({"denyRead": ["ln/key"], "allowWrite": ["."]}),
        &["pin ln", "pin real", "writable w", "empty-file real/key"],
    );
}

#[test]
fn a_link_to_the_root_hides_what_holds_it() {
    let tree = Tree::new(&["d/root -> /", "d/x", "e/up -> ..", "e/x"]);
    check(&tree, json!({"denyRead": ["d/root"]}), &["empty-dir d"]);
    check(&tree, json!({"denyRead": ["d/ro*"]}), &["empty-dir d"]);
    check(&tree, json!({"denyRead": ["e/*"]}), &["empty-dir w"]);
}

#[test]
fn allowed_links_show_nothing_that_is_denied() {
    let tree = Tree::new(&[
        "s/x",
        "s/doc",
        "s/key/id",
        "k/doc",
        "s/in -> doc",
        "s/out -> ../k/doc",
        "s/pub -> key",
        "s/far -> ../k",
        "ls -> s",
    ]);
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s/in"]}), &["empty-dir s", "reopen s/in <- s/doc"]);
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s/i*"]}), &["empty-dir s", "reopen s/in <- s/doc"]);
    check(
        &tree,
        json!({"denyRead": ["s"], "allowRead": ["s/pub"]}),
        &["empty-dir s", "reopen s/pub <- s/key"],
    );
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s/out"]}), &["empty-dir s"]);
    check(
        &tree,
        json!({"denyRead": ["s", "k/doc"], "allowRead": ["s/out"]}),
        &["empty-file k/doc", "empty-dir s"],
    );
    for deny in ["s/key", "s/key/id", "**/id", "s/k*"] {
        let planned = tree.plan(json!({"denyRead": ["s", deny], "allowRead": ["s/pub"]}));
        assert_eq!(planned.mounts(), ["empty-dir s"], "{deny}");
    }
    // A deny that another entry lifts is none.
    check(
        &tree,
        json!({"denyRead": ["s", "s/doc"], "allowRead": ["s/in", "s/doc"]}),
        &["empty-dir s", "reopen s/doc", "reopen s/in <- s/doc"],
    );
    // Through a link in the denied folder: shown where it really is, unless another entry denies that.
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s/pub/id"]}), &["empty-dir s", "reopen s/key/id"]);
    check(&tree, json!({"denyRead": ["s", "s/key"], "allowRead": ["s/pub/id"]}), &["empty-dir s"]);
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s/far/doc"]}), &["empty-dir s"]);
    check(
        &tree,
        json!({"denyRead": ["s", "k"], "allowRead": ["s/far/doc"]}),
        &["empty-dir k", "empty-dir s"],
    );
    // Through a link outside of it.
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["ls/key"]}), &["empty-dir s", "reopen s/key"]);
    check(
        &tree,
        json!({"denyRead": ["s"], "allowRead": ["ls/key"], "allowWrite": ["."]}),
        &["writable w", "empty-dir s"],
    );
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["ls"]}), &["empty-dir s"]);
}

#[test]
fn globs() {
    let tree = Tree::new(&["d/a.pem", "d/b.txt", "d/sub/c.pem", "d/sub/.hid.pem", "e/"]);
    check(&tree, json!({"denyRead": ["d/*.pem"]}), &["empty-file d/a.pem"]);
    check(&tree, json!({"denyRead": ["TOP/w/**/c.pem"]}), &["empty-file d/sub/c.pem"]);
    check(&tree, json!({"denyRead": ["*/sub"]}), &["empty-dir d/sub"]);
    check(
        &tree,
        json!({"denyRead": ["d/**.pem"]}),
        &["empty-file d/a.pem", "empty-file d/sub/.hid.pem", "empty-file d/sub/c.pem"],
    );
    check(&tree, json!({"denyRead": ["**/*.none", "nodir/*.x"]}), &[]);
    check(
        &tree,
        json!({"denyRead": ["d/**/**/?.pem", "**/**/**/e"]}),
        &["empty-file d/a.pem", "empty-file d/sub/c.pem", "empty-dir e"],
    );
    // An empty folder has nothing in it that a /** could match.
    check(&tree, json!({"denyRead": ["?/**"]}), &["empty-dir d"]);
    check(&tree, json!({"denyRead": ["?"]}), &["empty-dir d", "empty-dir e"]);
}

#[test]
fn a_pattern_in_the_first_component_is_named() {
    let tree = Tree::new(&["a.pem"]);
    let planned = tree
        .plan(json!({"denyRead": ["/**/*.csbpem", "/t*/x"], "denyWrite": ["/*x/y"], "allowRead": ["/?"]}));
    assert_eq!(planned.mounts(), [""; 0]);
    for entry in [
        "filesystem.denyRead `/**/*.csbpem`",
        "filesystem.denyRead `/t*/x`",
        "filesystem.denyWrite `/*x/y`",
        "filesystem.allowRead `/?`",
    ] {
        let named = planned.plan.warnings.iter().filter(|warning| warning.starts_with(entry)).count();
        assert_eq!(named, 1, "{entry}: {:?}", planned.plan.warnings);
    }
}

#[test]
fn globs_go_through_links_but_not_back_up() {
    let tree = Tree::new(&[
        "d/k.key",
        "d/sub/k.key",
        "out/k.key",
        "out/deep/k.key",
        "d/ln -> ../out",
        "d/up -> ..",
        "d/root -> /",
        "d/self -> .",
        "out/back -> ../d",
    ]);
    let all =
        ["empty-file d/k.key", "empty-file d/sub/k.key", "empty-file out/deep/k.key", "empty-file out/k.key"];
    check(&tree, json!({"denyRead": ["d/**/*.key"]}), &all);
    check(&tree, json!({"denyRead": ["d/*/k.key"]}), &["empty-file d/sub/k.key", "empty-file out/k.key"]);
    // An allow is not: it matches the link itself.
    check(&tree, json!({"denyRead": ["out"], "allowRead": ["d/*/k.key"]}), &["empty-dir out"]);
}

#[test]
fn globs_deny_inside_what_is_allowed() {
    let tree = Tree::new(&["s/p/a.key", "s/p/a.txt", "s/q", "s/w/y", "s/w/z/q", "s/w/e/"]);
    check(
        &tree,
        json!({"denyRead": ["s", "**/*.key"], "allowRead": ["s/p"]}),
        &["empty-dir s", "reopen s/p", "empty-file s/p/a.key"],
    );
    // Under a literal /** the folder is denied; under a pattern every entry of it is.
    check(&tree, json!({"denyRead": ["s/**"], "allowRead": ["s/w"]}), &["empty-dir s", "reopen s/w"]);
    check(
        &tree,
        json!({"denyRead": ["*s/**"], "allowRead": ["s/w"]}),
        &["empty-dir s", "reopen s/w", "empty-dir s/w/e", "empty-file s/w/y", "empty-dir s/w/z"],
    );
    check(
        &tree,
        json!({"denyRead": ["*s/**"], "allowRead": ["s"]}),
        &["empty-dir s/p", "empty-file s/q", "empty-dir s/w"],
    );
    check(
        &tree,
        json!({"denyRead": ["*s/**"], "allowWrite": ["s/w"]}),
        &["empty-dir s", "reopen-writable s/w", "empty-dir s/w/e", "empty-file s/w/y", "empty-dir s/w/z"],
    );
    check(&tree, json!({"denyRead": ["*s/**"], "allowRead": ["*s/**"]}), &[]);
}

#[test]
fn links_in_a_folder_denied_by_its_contents_deny_what_they_lead_to() {
    let tree = Tree::new(&["s/x", "s/d/out -> ../../k", "k/doc", "o/f", "s/f -> ../o/f"]);
    check(&tree, json!({"denyRead": ["s/**"]}), &["empty-dir s"]);
    check(&tree, json!({"denyRead": ["*s/**"]}), &["empty-dir k", "empty-file o/f", "empty-dir s"]);
}

#[test]
fn an_allowed_pattern_lifts_every_file_it_names() {
    let tree = Tree::new(&["s/x", "s/d/y.key"]);
    check(&tree, json!({"denyRead": ["s/x", "**/*.key"], "allowRead": ["*s/**"]}), &[]);
    check(
        &tree,
        json!({"denyRead": ["s/x", "**/*.key"], "allowRead": ["s/**"]}),
        &["empty-file s/d/y.key", "empty-file s/x"],
    );
}

#[test]
fn names_with_pattern_characters() {
    for name in ["[WIP] project", "notes (draft?)", "build*", "[user-id]", "list[].ts", "a]b[c"] {
        let file = format!("{name}/keep");
        let tree = Tree::new(&[&file, "other/o"]);
        check(&tree, json!({"denyRead": [file]}), &[&format!("empty-file {file}")]);
        check(
            &tree,
            json!({"denyRead": [{"path": file, "literal": true}]}),
            &[&format!("empty-file {file}")],
        );
    }
    let tree = Tree::new(&["[ab]/k", "a/k", "c/k", "[WIP] p/a/.env", "[WIP] p/b", "W p/x/.env"]);
    check(&tree, json!({"denyRead": ["[ab]/k"]}), &["empty-file [ab]/k", "empty-file a/k"]);
    check(
        &tree,
        json!({"denyRead": ["[WIP] p/**/.env"]}),
        &["empty-file W p/x/.env", "empty-file [WIP] p/a/.env"],
    );
    let tree = Tree::new(&["*.env", "a.env", "d/**", "d/x"]);
    check(&tree, json!({"denyRead": [{"path": "*.env", "literal": true}]}), &["empty-file *.env"]);
    check(&tree, json!({"denyRead": [{"path": "d/**", "literal": true}]}), &["empty-file d/**"]);
}

#[test]
fn an_allow_by_name_takes_no_link_on_the_way() {
    let tree = Tree::new(&["s/[x]/y", "s/a*b/y", "s/key/y", "s/l*k -> key"]);
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s/[x]/y"]}), &["empty-dir s", "reopen s/[x]/y"]);
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s/a*b"]}), &["empty-dir s", "reopen s/a*b"]);
    check(&tree, json!({"denyRead": ["s"], "allowRead": ["s/l*k/y"]}), &["empty-dir s"]);
}

#[test]
fn the_working_directory_may_have_any_name() {
    let mut tree = Tree::new(&["[a*]/x.pem", "a/x.pem"]);
    tree.inputs.cwd = tree.path("[a*]");
    check(&tree, json!({"denyRead": ["*.pem"]}), &["empty-file [a*]/x.pem"]);
}

#[test]
fn own_trees() {
    let tree = Tree::new(&["null -> /dev/null", "self -> /proc/self"]);
    let planned = tree.plan(json!({
        "denyRead": ["/proc", "/dev", "/dev/null", "/proc/self/environ", "/proc/1", "/dev/*", "nu*", "se*", "/proc/cpuinfo", "/sys/kernel"],
    }));
    let shown = tree.plan(json!({"denyRead": ["/proc/sys"], "allowRead": ["/proc/sys/kernel/ostyp*"]})).plan;
    assert!(shown.mounts.iter().any(|mount| mount.target == Path::new("/proc/sys/kernel/ostype")));
    let kinds: BTreeMap<&Path, &MountKind> =
        planned.plan.mounts.iter().map(|m| (m.target.as_path(), &m.kind)).collect();
    assert_eq!(kinds.get(Path::new("/proc/cpuinfo")), Some(&&MountKind::EmptyFile));
    assert_eq!(kinds.get(Path::new("/sys/kernel")), Some(&&MountKind::EmptyDir));
    assert!(
        kinds.keys().all(
            |path| !path.starts_with("/dev") && (!path.starts_with("/proc") || path.ends_with("cpuinfo"))
        )
    );
}

/// What cannot be looked at: only an ordinary user meets it.
#[test]
fn what_cannot_be_inspected_hides_the_folder_above() {
    if geteuid().is_root() {
        return in_a_child(&|| unsearchable());
    }
    unsearchable();
}

fn unsearchable() {
    let tree = Tree::for_anybody(&[
        "lock/p/k",
        "lock/f",
        "o",
        "nos/a.pem",
        "nos/d/b.pem",
        "ln -> lock/p",
        "lf -> lock/p/k",
    ]);
    for (name, mode) in [("lock", 0o000), ("nos", 0o444)] {
        fs::set_permissions(tree.path(name), Permissions::from_mode(mode)).unwrap();
    }
    let hidden = &["empty-dir lock"];
    let others = fs::metadata(tree.path("lock")).unwrap().uid() != tree.inputs.uid;
    check(&tree, json!({"denyRead": ["lock/p/k"]}), hidden);
    check(&tree, json!({"denyRead": ["lock/p/k"], "allowRead": ["lock/p", "lock"]}), hidden);
    check(&tree, json!({"denyRead": ["lock/p/k"], "allowWrite": ["lock"]}), hidden);
    check(&tree, json!({"denyRead": ["ln"]}), hidden);
    check(&tree, json!({"denyRead": ["lock/*.pem", "nos/*.pem"]}), &["empty-dir lock", "empty-dir nos"]);
    check(&tree, json!({"denyRead": ["**/*.pem"]}), &["empty-dir lock", "empty-dir nos"]);
    // Where it belongs to another user, the command cannot open it.
    check(&tree, json!({"denyRead": ["lf*"]}), if others { &["empty-file lf"] } else { hidden });
    check(&tree, json!({"denyRead": ["l?/x"]}), if others { &[] } else { hidden });
    check(&tree, json!({"denyRead": ["l?/**"]}), if others { &[] } else { hidden });
    check(&tree, json!({"denyRead": ["nos/d/b.pem"]}), &["empty-dir nos"]);
    for name in ["lock", "nos"] {
        fs::set_permissions(tree.path(name), Permissions::from_mode(0o755)).unwrap();
    }
}

/// Runs a check as an ordinary user, in a thread of its own: credentials belong to threads.
pub(super) fn in_a_child(check: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| {
        let done = scope.spawn(|| {
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65534));
            check();
        });
        done.join().unwrap();
    });
}
