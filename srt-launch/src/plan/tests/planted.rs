//! What a command leaves behind must not change what the next run with the same settings opens or denies.

use super::*;

const SYMLINK: &str = "leads through the symbolic link";

/// Nothing of `hidden` is opened, and the entry is named in a warning that says so.
#[track_caller]
fn refused(tree: &Tree, lists: Value, expected: &[&str], entry: &str) {
    let planned = tree.plan(lists.clone());
    assert_eq!(planned.mounts(), expected, "{lists}");
    let named = format!("filesystem.allowRead `{entry}`: {SYMLINK}");
    let warnings = &planned.plan.warnings;
    assert!(warnings.iter().any(|warning| warning.starts_with(&named)), "{lists}: {warnings:?}");
}

#[test]
fn an_allowed_pattern_starts_behind_no_link_that_a_command_could_make() {
    let tree = Tree::new(&["h/.ssh/id_rsa", "h/.ssh/sub/k", "docs -> ../h/.ssh", "own/x"]);
    let hidden = ["empty-dir h/.ssh", "writable w"];
    for entry in ["docs/*", "docs/**/*", "docs/*/**", "docs/id_*", "docs/sub/?", "docs/[i]d_rsa"] {
        let lists = json!({"denyRead": ["~/.ssh"], "allowRead": [entry], "allowWrite": ["."]});
        refused(&tree, lists, &hidden, entry);
    }
    refused(
        &tree,
        json!({"denyRead": ["~/.ssh/id_rsa"], "allowRead": ["docs/*"], "allowWrite": ["."]}),
        &["empty-file h/.ssh/id_rsa", "writable w"],
        "docs/*",
    );
    refused(
        &tree,
        json!({"denyRead": ["~/.ssh", "."], "allowRead": [".", "./docs/*"], "allowWrite": ["."]}),
        &["empty-dir h/.ssh", "writable w"],
        "./docs/*",
    );
    refused(
        &tree,
        json!({"denyRead": ["~/.ssh/**", "~/.ssh/*"], "allowRead": ["docs/*/**"], "allowWrite": ["."]}),
        &hidden,
        "docs/*/**",
    );
    // Where no command could have made the link, it is the user's word.
    check(
        &tree,
        json!({"denyRead": ["~/.ssh"], "allowRead": ["docs/*"], "allowWrite": ["own"]}),
        &["empty-dir h/.ssh", "reopen h/.ssh/id_rsa", "reopen h/.ssh/sub", "writable own"],
    );
}

#[test]
fn an_allowed_path_leads_through_no_link_that_a_command_could_make() {
    let tree = Tree::new(&["x/secret/sub/key", "x/pub/a -> ../secret", "x/pub/real/sub/y"]);
    let lists = |allow: &str| json!({"denyRead": ["x"], "allowRead": [allow], "allowWrite": ["x/pub"]});
    let hidden = ["empty-dir x", "reopen-writable x/pub"];
    for entry in ["x/pub/a/sub", "x/pub/a/sub/key", "x/pub/a/*", "x/pub/a/sub/*", "x/pub/real/../a/sub"] {
        refused(&tree, lists(entry), &hidden, entry);
    }
    check(&tree, lists("x/pub/real/sub"), &hidden);
    // A link that is the last name is shown as what it is.
    check(&tree, lists("x/pub/a"), &hidden);

    let mut tree = Tree::new(&["ws/cfg -> ../other", "other/pub/k", "ws/x"]);
    tree.inputs.cwd = tree.path("ws");
    let lists = json!({"denyRead": ["TOP/w"], "allowRead": [".", "./cfg/pub"], "allowWrite": ["."]});
    refused(&tree, lists, &["empty-dir w", "reopen-writable ws"], "./cfg/pub");
}

/// A deny that holds now need not have held when the link was made: its pattern matches what a command made.
#[test]
fn what_is_denied_by_a_pattern_may_hold_planted_links() {
    let tree = Tree::new(&[
        "h/.ssh/k",
        "app/dist/x -> ../../../h/.ssh",
        "x/secret/sub/k",
        "x/pub/d1/l -> ../../secret",
    ]);
    for key in ["denyWrite", "denyRead"] {
        let deny_read = if key == "denyRead" { json!(["~/.ssh", "**/dist"]) } else { json!(["~/.ssh"]) };
        let deny_write = if key == "denyWrite" { json!(["**/dist"]) } else { json!([]) };
        for entry in ["app/dist/x/k", "app/dist/x/*"] {
            let planned = tree.plan(json!({
                "denyRead": deny_read, "denyWrite": deny_write, "allowRead": [entry], "allowWrite": ["."],
            }));
            assert!(!planned.mounts().iter().any(|mount| mount.contains(".ssh/k")), "{:?}", planned.mounts());
            assert!(planned.plan.warnings.iter().any(|warning| warning.contains(SYMLINK)), "{key} {entry}");
        }
    }
    refused(
        &tree,
        json!({"denyRead": ["x", "x/pub/d*"], "allowRead": ["x/pub/d1/l/sub"], "allowWrite": ["x/pub"]}),
        &["empty-dir x", "reopen-writable x/pub", "empty-dir x/pub/d1"],
        "x/pub/d1/l/sub",
    );
}

#[test]
fn a_shown_link_leads_through_no_other_that_a_command_could_make() {
    let tree = Tree::new(&["s/in -> ../o/l", "o/l -> ../s/key", "s/key/id", "s/two -> in2", "s/in2 -> key"]);
    refused(
        &tree,
        json!({"denyRead": ["s"], "allowRead": ["s/in"], "allowWrite": ["o"]}),
        &["writable o", "empty-dir s"],
        "s/in",
    );
    check(
        &tree,
        json!({"denyRead": ["s"], "allowRead": ["s/in", "s/two"], "allowWrite": []}),
        &["empty-dir s", "reopen s/in <- s/key", "reopen s/two <- s/key"],
    );
    check(
        &tree,
        json!({"denyRead": ["s"], "allowRead": ["s/two"], "allowWrite": ["."]}),
        &["writable w", "empty-dir s", "reopen s/two <- s/key"],
    );
}

/// What is readable anyway is not worth a warning, which is an error under `--strict`.
#[test]
fn links_within_what_is_readable_are_not_warned_of() {
    let mut tree = Tree::new(&["ws/docs -> real", "ws/real/x"]);
    tree.inputs.cwd = tree.path("ws");
    for allow in ["docs/*", "docs/x", "docs"] {
        let planned =
            tree.plan(json!({"denyRead": ["TOP/w"], "allowRead": [".", allow], "allowWrite": ["."]}));
        assert_eq!(planned.mounts(), ["empty-dir w", "reopen-writable ws"]);
        assert_eq!(planned.plan.warnings, [""; 0]);
    }
}

/// Root's command can replace a link of the system's in what it may write, and gets what that leads to in the next run.
#[test]
fn links_of_the_system_are_followed_where_no_command_can_replace_them() {
    let run = Path::new("/var/run");
    // Not every machine has it.
    let (true, Ok(place)) = (run.is_symlink(), fs::canonicalize(run)) else { return };
    let tree = Tree::new(&["l -> x", "x/"]);
    let root = geteuid().is_root();
    for (allow, opened, warned) in [
        (json!(["/var/run"]), true, false),
        (json!(["/var", "/var/run"]), !root, root),
        // What is writable anyway is not worth a warning.
        (json!(["/", "/var/run"]), !root, false),
        (json!([".", "l"]), false, false),
    ] {
        let plan = tree.plan(json!({"denyRead": [], "allowWrite": allow})).plan;
        let told = plan.warnings.iter().any(|warning| warning.contains(SYMLINK));
        assert_eq!(told, warned, "{allow}: {:?}", plan.warnings);
        if allow[0] == "/var" || allow.as_array().unwrap().len() == 1 {
            assert_eq!(plan.mounts.iter().any(|mount| mount.target == place), opened, "{allow}");
        }
    }
}

#[test]
fn links_to_where_entries_start_are_kept() {
    let mut tree = Tree::new(&["homes/me/.ssh/k", "home -> homes/me", "ws/x", "cwd -> ws"]);
    tree.inputs.home = tree.path("home");
    tree.inputs.cwd = tree.path("cwd");
    check(
        &tree,
        json!({"denyRead": ["~/.ssh"], "allowWrite": ["TOP/w"]}),
        &[
            "pin cwd",
            "pin home",
            "pin homes",
            "pin homes/me",
            "pin ws",
            "writable w",
            "empty-dir homes/me/.ssh",
        ],
    );
}

#[test]
fn links_that_denied_patterns_lead_through_are_kept() {
    let tree = Tree::new(&["store/a.key", "store/s/b.key", "docs -> store"]);
    let read = ["pin docs", "pin store", "writable w", "empty-file store/a.key"];
    for entry in ["docs/*.key", "d*/*.key", "d*/a.key", "?ocs/a.key"] {
        check(&tree, json!({"denyRead": [entry], "allowWrite": ["."]}), &read);
        let write = ["pin docs", "pin store", "writable w", "read-only store/a.key"];
        check(&tree, json!({"denyWrite": [entry], "allowWrite": ["."]}), &write);
    }
    check(
        &tree,
        json!({"denyRead": ["docs/**/*.key"], "allowWrite": ["."]}),
        &[
            "pin docs",
            "pin store",
            "pin store/s",
            "writable w",
            "empty-file store/a.key",
            "empty-file store/s/b.key",
        ],
    );
    check(
        &tree,
        json!({"denyRead": ["d*/**"], "allowWrite": ["."]}),
        &["pin docs", "writable w", "empty-dir store"],
    );
    // In several steps, and where what would match is not there yet.
    let tree = Tree::new(&["a/l -> ../b", "b/m -> ../c/d", "c/d/x.key", "e -> f", "f -> g", "g/"]);
    check(
        &tree,
        json!({"denyRead": ["a/*/*/x.key"], "allowWrite": ["."]}),
        &["pin a", "pin a/l", "pin b", "pin b/m", "pin c", "pin c/d", "writable w", "empty-file c/d/x.key"],
    );
    check(&tree, json!({"denyRead": ["e/*.key"], "allowWrite": ["."]}), &["pin e", "pin f", "writable w"]);
}

/// Nobody can make the name in it, but whoever owns what it lies in can put another folder in its place. Only root can
/// give a folder to somebody else.
#[test]
fn a_folder_of_somebody_else_that_would_hold_a_denied_name_is_kept() {
    let tree = Tree::new(&["a/theirs/x"]);
    if geteuid().is_root() {
        std::os::unix::fs::chown(tree.path("a/theirs"), Some(65534), Some(65534)).unwrap();
        for entry in ["a/theirs/absent", "a/theirs/absent/too"] {
            let lists = json!({"denyWrite": [entry], "allowWrite": ["a"]});
            check(&tree, lists, &["pin a/theirs", "writable a"]);
        }
    }
    // Nor is `/` kept, where an ordinary user can make nothing.
    let planned = tree.plan(json!({"allowWrite": ["/"], "denyWrite": ["/absent"]}));
    assert!(planned.plan.mounts.iter().all(|mount| mount.target != Path::new("/")));
}

/// Package managers link thousands of packages into one another: none of these has to stay what it is.
#[test]
fn links_that_a_match_does_not_need_are_free() {
    let tree = Tree::new(&[
        "n/.p/a/.env",
        "n/a -> .p/a",
        "n/b -> .p/a",
        "n/c -> .p",
        "o/d -> ../n/.p/none",
        "none/",
    ]);
    check(
        &tree,
        json!({"denyRead": ["**/.env*"], "allowWrite": ["."]}),
        &["pin n", "pin n/.p", "pin n/.p/a", "writable w", "empty-file n/.p/a/.env"],
    );
    // Of several ways that all need a link, one.
    check(
        &tree,
        json!({"denyRead": ["n/?/.env*"], "allowWrite": ["."]}),
        &["pin n", "pin n/.p", "pin n/.p/a", "pin n/a", "writable w", "empty-file n/.p/a/.env"],
    );
}
