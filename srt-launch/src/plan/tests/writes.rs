use std::{fs::Permissions, os::unix::fs::PermissionsExt};

use super::{compile::is_own_tree, *};

#[test]
fn what_is_allowed_and_nothing_else() {
    let tree = Tree::new(&["f", "a/x", "a/b/x", "h/x"]);
    check(&tree, json!({}), &[]);
    check(&tree, json!({"allowWrite": ["."]}), &["writable w"]);
    check(&tree, json!({"allowWrite": ["a/x", "f"]}), &["writable a/x", "writable f"]);
    check(&tree, json!({"allowWrite": ["a/**"]}), &["writable a"]);
    check(&tree, json!({"allowWrite": ["none/dir", "f/x"]}), &[]);
    // One mount for folders in one another, so that a file can be renamed between them.
    check(&tree, json!({"allowWrite": ["a/b", ".", "a"]}), &["writable w"]);
    check(&tree, json!({"allowWrite": ["a", "~"]}), &["writable h", "writable a"]);
}

#[test]
fn denies_win_wherever_they_are() {
    let tree = Tree::new(&["f", "a/x", "a/b/x"]);
    check(&tree, json!({"allowWrite": ["."], "denyWrite": ["f"]}), &["writable w", "read-only f"]);
    check(&tree, json!({"allowWrite": [".", "a/b"], "denyWrite": ["a"]}), &["writable w", "read-only a"]);
    check(&tree, json!({"allowWrite": ["a"], "denyWrite": ["a"]}), &[]);
    check(&tree, json!({"allowWrite": ["a"], "denyWrite": ["/"]}), &[]);
    check(&tree, json!({"allowWrite": ["."], "denyWrite": ["a/**"]}), &["writable w", "read-only a"]);
    let planned = tree.plan(json!({"allowWrite": ["a/b"], "denyWrite": ["a"]}));
    assert!(
        planned.plan.notes.iter().any(|note| note.contains("`a/b`") && note.contains("`a`")),
        "{:?}",
        planned.plan.notes
    );
}

#[test]
fn globs_in_deny_write_are_enforced() {
    let tree = Tree::new(&[
        "a/k.lock",
        "a/b/k.lock",
        "a/b/x",
        "real/t.lock",
        "l.lock -> real/t.lock",
        "g/gen/x",
        "h/gen/y",
    ]);
    check(
        &tree,
        json!({"allowWrite": ["."], "denyWrite": ["**/*.lock"]}),
        &[
            "pin a",
            "pin a/b",
            "pin l.lock",
            "pin real",
            "writable w",
            "read-only a/b/k.lock",
            "read-only a/k.lock",
            "read-only real/t.lock",
        ],
    );
    check(
        &tree,
        json!({"allowWrite": ["a/b"], "denyWrite": ["**/*.lock"]}),
        &["writable a/b", "read-only a/b/k.lock"],
    );
    check(
        &tree,
        json!({"allowWrite": ["."], "denyWrite": ["?/gen/**"]}),
        &["pin g", "writable w", "read-only g/gen"],
    );
}

#[test]
fn globs_in_allow_write_are_named_and_skipped() {
    let tree = Tree::new(&["src/a.ts", "[s]rc/x", "d*/f", "dx/f"]);
    let planned = tree.plan(json!({"allowWrite": ["src/*.ts", "sr?/a.ts", "/*/x"]}));
    assert_eq!(planned.mounts(), [""; 0]);
    assert_eq!(planned.plan.warnings.len(), 3, "{:?}", planned.plan.warnings);
    // What is also a name is opened by that name.
    check(&tree, json!({"allowWrite": ["[s]rc"]}), &["writable [s]rc"]);
    check(&tree, json!({"allowWrite": [{"path": "d*", "literal": true}]}), &["writable d*"]);
    assert!(tree.plan(json!({"allowWrite": ["[s]rc", "d*"]})).plan.warnings.is_empty());
}

#[test]
fn links_do_not_widen_what_is_writable() {
    let tree = Tree::new(&["real/f", "h/x", "w -> real", "up -> ../h", "lf -> real/f"]);
    for entry in ["w", "up", "lf", "w/f"] {
        let planned = tree.plan(json!({"allowWrite": [entry]}));
        assert_eq!(planned.mounts(), [""; 0], "{entry}");
        let warning = format!("filesystem.allowWrite `{entry}`: leads through the symbolic link");
        assert!(planned.plan.warnings[0].starts_with(&warning), "{:?}", planned.plan.warnings);
    }
}

#[test]
fn a_home_behind_a_link_is_a_home() {
    let mut tree = Tree::new(&["h/proj/x", "home -> ../h"]);
    tree.inputs.home = tree.path("home");
    check(&tree, json!({"allowWrite": ["~/proj"]}), &["writable h/proj"]);
    check(&tree, json!({"denyRead": ["~"], "allowRead": ["~/proj"]}), &["empty-dir h", "reopen h/proj"]);
}

#[test]
fn absent_names_get_placeholders() {
    let tree = Tree::new(&["d/f"]);
    let planned = tree.plan(json!({"allowWrite": ["d"], "denyWrite": ["d/no", "d/q/r/s", "d/q/t", {"path": "d/x*", "literal": true}]}));
    assert_eq!(
        planned.placeholders().iter().filter(|p| !p.contains("/.")).collect::<Vec<_>>(),
        ["d/no", "d/q/", "d/x*"]
    );
    for name in ["d/no", "d/q", "d/x*"] {
        let target = tree.path(name);
        let mount = planned.plan.mounts.iter().find(|mount| mount.target == target).unwrap();
        assert_eq!(mount.kind, MountKind::ReadOnly, "{name}");
    }
    // What nobody can write needs nothing.
    assert_eq!(tree.plan(json!({"allowWrite": ["none"], "denyWrite": ["d/no"]})).placeholders(), [""; 0]);
    assert_eq!(tree.plan(json!({"allowWrite": ["d"], "denyWrite": ["d", "d/no"]})).placeholders(), [""; 0]);
    assert_eq!(
        tree.plan(json!({"allowWrite": ["."], "denyRead": ["d"], "denyWrite": ["d/no"]}))
            .placeholders()
            .iter()
            .filter(|p| p.starts_with("d/"))
            .count(),
        0
    );
    // Below a file nothing can be made; the file has to stay one.
    check(&tree, json!({"allowWrite": ["d"], "denyWrite": ["d/f/x"]}), &["writable d", "read-only d/f"]);
    // Links that lead nowhere: the place they lead to, and the links.
    let tree = Tree::new(&["d/dang -> new/x", "d/out -> /nonexistent-srt/x", "d/c -> c2", "d/c2 -> c"]);
    let planned = tree.plan(json!({"allowWrite": ["d"], "denyWrite": ["d/dang", "d/out", "d/c"]}));
    assert_eq!(planned.mounts(), ["pin d/c", "pin d/c2", "pin d/dang", "pin d/out", "writable d"]);
    assert!(planned.placeholders().contains(&"d/new/".to_string()));
}

#[test]
fn placeholders_of_others_are_absent_and_held() {
    let mut tree = Tree::new(&["d/x", "d/.bashrc", "d/sub/theirs", "e/theirs"]);
    let ghost = |name: &str| Placeholder { path: tree.path(name), directory: false, mode: 0o444 };
    let ghosts = vec![ghost("d/.bashrc"), ghost("d/sub/theirs"), ghost("e/theirs")];
    tree.inputs.foreign_placeholders = ghosts;
    let planned =
        tree.plan(json!({"allowWrite": ["d"], "denyRead": ["d/**/theirs"], "denyWrite": ["d/**/theirs"]}));
    let placeholders = planned.placeholders();
    for name in ["d/.bashrc", "d/sub/theirs"] {
        assert!(placeholders.contains(&name.to_string()), "{name} {placeholders:?}");
    }
    assert!(!placeholders.contains(&"e/theirs".to_string()));
    assert_eq!(planned.mounts(), ["pin d/sub", "writable d"]);
}

#[test]
fn a_folder_its_owner_could_open_again_is_read_only() {
    let tree = Tree::new(&["z/f"]);
    let mode = |mode| fs::set_permissions(tree.path("z"), Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let lists = json!({"allowWrite": ["."], "denyWrite": ["z/absent"]});
    if geteuid().is_root() {
        // Permissions do not stop uid 0, so the placeholder can be made.
        assert!(tree.plan(lists).placeholders().contains(&"z/absent".to_string()));
    } else {
        check(&tree, lists, &["writable w", "read-only z"]);
    }
    mode(0o755);
}

#[test]
fn ancestors_are_pinned_up_to_the_root_that_covers_them() {
    let tree = Tree::new(&["a/b/c/f", "a/b/s/x", "o/f"]);
    check(
        &tree,
        json!({"allowWrite": ["."], "denyWrite": ["a/b/c/f"]}),
        &["pin a", "pin a/b", "pin a/b/c", "writable w", "read-only a/b/c/f"],
    );
    check(
        &tree,
        json!({"allowWrite": ["."], "denyRead": ["a/b/s", "a/b/c/f"]}),
        &["pin a", "pin a/b", "pin a/b/c", "writable w", "empty-file a/b/c/f", "empty-dir a/b/s"],
    );
    check(
        &tree,
        json!({"allowWrite": ["a/b"], "denyWrite": ["a/b/c"]}),
        &["writable a/b", "read-only a/b/c"],
    );
    // A root in another one is an ancestor like any other.
    check(
        &tree,
        json!({"allowWrite": [".", "a/b"], "denyWrite": ["a/b/c"]}),
        &["pin a", "pin a/b", "writable w", "read-only a/b/c"],
    );
    check(
        &tree,
        json!({"allowWrite": ["a/b"], "denyRead": ["a"], "denyWrite": ["a/b/c/f"]}),
        &["pin a/b/c", "empty-dir a", "reopen-writable a/b", "read-only a/b/c/f"],
    );
    // Nothing can be moved in what is read-only.
    check(&tree, json!({"allowWrite": ["o"], "denyRead": ["a/b/s"]}), &["empty-dir a/b/s", "writable o"]);
}

#[test]
fn a_writable_root_has_covers_over_its_pins() {
    let tree = Tree::new(&["a/f", "l -> a"]);
    let planned = tree.plan(json!({"allowWrite": ["/"], "denyWrite": ["a/f", "l/f"]}));
    assert!(planned.plan.root.writable);
    let mounts = &planned.plan.mounts;
    let at = |kind: &MountKind, path: &Path| {
        mounts.iter().position(|mount| mount.kind == *kind && mount.target == path)
    };
    let top: PathBuf = planned.top.iter().take(2).collect();
    let cover = at(&MountKind::Writable, &top).unwrap();
    for pinned in [tree.path("a"), tree.path("l"), planned.top.join("w"), planned.top.clone()] {
        assert!(at(&MountKind::Pin, &pinned).unwrap() < cover, "{pinned:?}");
    }
    assert!(at(&MountKind::ReadOnly, &tree.path("a/f")).unwrap() > cover);
    assert_eq!(at(&MountKind::Pin, &top), None);
    assert!(at(&MountKind::ReadOnly, Path::new("/sys")).is_some());
    let planned = tree.plan(json!({"allowWrite": ["/", "/sys"]}));
    assert!(planned.plan.mounts.iter().all(|mount| mount.target != Path::new("/sys")));
}

#[test]
fn disabled_restricts_nothing() {
    let tree = Tree::new(&["s/x", ".bashrc", ".git/config"]);
    let planned = tree.plan(json!({"disabled": true, "denyRead": ["s"], "denyWrite": ["s"]}));
    assert!(planned.plan.root.writable);
    assert_eq!(planned.mounts(), [""; 0]);
    assert_eq!(planned.placeholders(), [""; 0]);
}

#[test]
fn programs_that_could_be_replaced_are_warned_of() {
    let mut tree = Tree::new(&["h/bin/srt", "f"]);
    tree.inputs.programs = Some(tree.path("h/bin"));
    for (lists, warned) in [
        (json!({"allowWrite": ["."]}), false),
        (json!({"allowWrite": ["~"]}), true),
        (json!({"allowWrite": ["~/b*", "~/bin/**"]}), true),
        (json!({"allowWrite": ["~"], "denyWrite": ["~/bin"]}), false),
        (json!({"disabled": true}), true),
    ] {
        let planned = tree.plan(lists.clone());
        let told = planned.plan.warnings.iter().any(|warning| warning.contains("where srt itself is"));
        assert_eq!(told, warned, "{lists}: {:?}", planned.plan.warnings);
    }
}

#[test]
fn own_trees_are_not_opened() {
    let tree = Tree::new(&[]);
    let planned = tree.plan(json!({"allowWrite": ["/dev/null", "/dev/stdout", "/dev/shm", "/dev/tty", "/dev"], "denyWrite": ["/dev/null", "/proc/x"]}));
    assert!(planned.plan.warnings.is_empty(), "{:?}", planned.plan.warnings);
    let planned = tree.plan(json!({"allowWrite": ["/dev/kvm", "/proc/self/oom_score_adj"]}));
    assert_eq!(planned.plan.warnings.len(), 2);
    assert!(
        planned
            .plan
            .mounts
            .iter()
            .all(|mount| !mount.target.starts_with("/dev") && !mount.target.starts_with("/proc"))
    );
}

/// A path in `/proc` may lead out of it: what it leads to counts.
#[test]
fn what_own_trees_lead_to_is_denied() {
    let mut tree = Tree::new(&["d/f", "set.json"]);
    tree.inputs.settings_file =
        Some(PathBuf::from(format!("/proc/self/root{}", tree.path("set.json").display())));
    let [literal, pattern, absent] =
        ["f", "?", "absent"].map(|name| format!("/proc/self/rootTOP/w/d/{name}"));
    let settings = "read-only set.json";
    for entry in [&literal, &pattern] {
        check(
            &tree,
            json!({"allowWrite": ["."], "denyWrite": [entry]}),
            &["pin d", "writable w", "read-only d/f", settings],
        );
        check(
            &tree,
            json!({"allowWrite": ["."], "denyRead": [entry]}),
            &["pin d", "writable w", "empty-file d/f", settings],
        );
    }
    let planned = tree.plan(json!({"allowWrite": ["."], "denyWrite": [absent]}));
    assert!(planned.placeholders().contains(&"d/absent".into()), "{:?}", planned.placeholders());
}

/// A pin in `/dev` or `/proc` would be covered by the host's, in the place of ours: its memory, its devices, its
/// processes, for uid 0 the switches of its kernel.
#[test]
fn a_writable_root_does_not_bring_back_the_trees_of_the_host() {
    let mut tree = Tree::new(&["set.json -> /dev/null", "shm -> /dev/shm", "a/"]);
    tree.inputs.settings_file = Some("set.json".into());
    tree.inputs.own_state = vec![PathBuf::from("/dev/null")];
    for lists in [
        json!({"disabled": true}),
        json!({"allowWrite": ["/"], "denyRead": ["/proc/cpuinfo", "/proc/sys"],
            "allowRead": ["/proc/sys/kernel"], "denyWrite": ["shm/x", "shm", "/dev/null", "/proc/cpuinfo"]}),
        json!({"allowWrite": ["/", "/proc", "/dev", "shm", "a"], "denyRead": ["a", "/proc/cpuinfo"]}),
    ] {
        let planned = tree.plan(lists.clone());
        for mount in planned.plan.mounts.iter().filter(|mount| is_own_tree(&mount.target)) {
            let harmless = matches!(
                mount.kind,
                MountKind::EmptyDir | MountKind::EmptyFile | MountKind::Reopen { writable: false, .. }
            );
            assert!(harmless, "{lists}: {mount:?}");
        }
        assert!(planned.plan.placeholders.iter().all(|one| !is_own_tree(&one.path)), "{lists}");
    }
}

#[test]
fn what_is_ours_is_kept_from_the_command() {
    let mut tree = Tree::new(&["ca.key", "ca.pem", "set.json", "state/m"]);
    tree.inputs.settings_file = Some("set.json".into());
    tree.inputs.own_state = vec![tree.path("state")];
    let tls = json!({"tlsTerminate": {"caCertPath": "ca.pem", "caKeyPath": "ca.key"}});
    let planned = tree.plan_all(
        json!({"network": tls, "filesystem": {"allowWrite": ["."], "allowRead": ["ca.key", "state"]}}),
    );
    assert_eq!(
        planned.mounts(),
        ["writable w", "empty-file ca.key", "read-only set.json", "empty-dir state"]
    );
    let proxy = json!({"parentProxy": {"https": "http://u:p@proxy.corp:3128"}});
    let planned = tree.plan_all(json!({"network": proxy}));
    assert_eq!(planned.mounts(), ["empty-file set.json", "empty-dir state"]);
}
