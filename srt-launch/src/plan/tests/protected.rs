use std::{fs::Permissions, os::unix::fs::PermissionsExt};

use super::{reads::in_a_child, *};

const NAMES: [&str; 11] = [
    ".bash_profile",
    ".bashrc",
    ".gitconfig",
    ".gitmodules",
    ".idea",
    ".mcp.json",
    ".profile",
    ".ripgreprc",
    ".vscode",
    ".zprofile",
    ".zshrc",
];

#[test]
fn absent_names_of_the_working_directory() {
    let tree = Tree::new(&["f"]);
    let mut expected: Vec<String> = NAMES.iter().map(ToString::to_string).collect();
    expected.insert(2, ".claude/".into());
    let planned = tree.plan(json!({"allowWrite": ["."]}));
    assert_eq!(planned.placeholders(), expected);
    assert_eq!(planned.mounts(), ["writable w"]);
    for placeholder in planned.plan.placeholders.iter().filter(|p| p.path.starts_with(tree.path("."))) {
        assert!(
            planned.plan.mounts.iter().any(|m| m.target == placeholder.path && m.kind == MountKind::ReadOnly)
        );
    }
    assert_eq!(tree.plan(json!({"allowWrite": ["f"]})).placeholders(), [""; 0]);
}

#[test]
fn present_names_are_read_only() {
    for name in NAMES {
        let tree = Tree::new(&[name]);
        check(&tree, json!({"allowWrite": ["."]}), &["writable w", &format!("read-only {name}")]);
    }
    for name in [".vscode", ".idea", ".claude/commands", ".claude/agents"] {
        let tree = Tree::new(&[&format!("{name}/")]);
        let pin: &[&str] = if name.contains('/') { &["pin .claude"] } else { &[] };
        let read_only = format!("read-only {name}");
        let expected = [pin, &["writable w", &read_only]].concat();
        check(&tree, json!({"allowWrite": ["."]}), &expected);
    }
    let tree = Tree::new(&[".claude/settings.json"]);
    let placeholders = tree.plan(json!({"allowWrite": ["."]})).placeholders();
    assert!(
        placeholders.contains(&".claude/commands".into()) && placeholders.contains(&".claude/agents".into())
    );
}

#[test]
fn every_writable_root_and_home_are_looked_at() {
    let mut tree = Tree::new(&["h/.bashrc", "h/.vscode/x", "h/p/.mcp.json", "h/q/.git/config", "other/f"]);
    tree.inputs.cwd = tree.path("other");
    let planned = tree.plan(json!({"allowWrite": ["~/p", "~/q"]}));
    assert_eq!(
        planned.mounts(),
        [
            "pin h/q/.git",
            "writable h/p",
            "read-only h/p/.mcp.json",
            "writable h/q",
            "read-only h/q/.git/config"
        ]
    );
    for name in ["h/p/.bashrc", "h/q/.profile", "h/q/.git/hooks"] {
        assert!(planned.placeholders().contains(&name.into()), "{name}");
    }
    // A home somewhere below a writable root.
    let top = json!({"allowWrite": ["TOP"]});
    let planned = tree.plan(top);
    for name in ["h/.profile", "other/.profile", ".profile"] {
        let found = planned.plan.placeholders.iter().any(|p| p.path.ends_with(name));
        assert!(found, "{name}");
    }
    assert!(planned.mounts().contains(&"read-only h/.bashrc".into()));
}

#[test]
fn naming_a_protected_path_does_not_open_it() {
    let mut tree = Tree::new(&[".vscode/x", "q/.vscode/x", "h/.bashrc", "q/.claude/agents/x"]);
    check(&tree, json!({"allowWrite": [".vscode", "q/.vscode", "~/.bashrc", "q/.claude/agents"]}), &[]);
    // Whoever works in such a folder means to.
    tree.inputs.cwd = tree.path(".vscode");
    check(&tree, json!({"allowWrite": ["."]}), &["writable .vscode"]);
}

/// Nobody looks at the folder above `.claude` for what it protects in there.
#[test]
fn a_root_that_is_half_of_a_protected_name() {
    let parts = ["commands", "agents"];
    for (cwd, root) in [(".", "a/.claude"), ("a/.claude", "."), ("a/.claude/commands", "..")] {
        let mut tree = Tree::new(&["a/.claude/commands/x", "a/.claude/settings.json"]);
        tree.inputs.cwd = tree.path(cwd);
        let planned = tree.plan(json!({"allowWrite": [root]}));
        let [present, absent] = parts.map(|part| format!("a/.claude/{part}"));
        assert_eq!(planned.mounts(), ["writable a/.claude".into(), format!("read-only {present}")]);
        assert!(planned.placeholders().contains(&absent), "{cwd}");
    }
    // Within another root, too, and without anything in it.
    let tree = Tree::new(&["a/b/c/d/.claude/f"]);
    let planned = tree.plan(json!({"allowWrite": [".", "a/b/c/d/.claude"]}));
    for part in parts {
        assert!(planned.placeholders().contains(&format!("a/b/c/d/.claude/{part}")));
    }
}

#[test]
fn naming_a_part_of_what_is_protected_does_not_open_it() {
    let mut tree = Tree::new(&[
        "q/.vscode/sub/x",
        "r/.git/HEAD",
        "r/.git/objects/",
        "r/.git/refs/",
        "r/.git/hooks/sub/x",
        "r/.husky/sub/x",
        "r/src/x",
        "wt/.git",
    ]);
    fs::write(tree.path("r/.git/config"), "[core]\nhooksPath = .husky\n").unwrap();
    let parts = ["q/.vscode/sub", "r/.git/config", "r/.git/hooks/sub", "r/.husky/sub", "wt/.git"];
    for part in parts {
        check(&tree, json!({"allowWrite": [part]}), &[]);
    }
    check(&tree, json!({"allowWrite": ["r/src"]}), &["writable r/src"]);
    // Hooks are no place to work in.
    tree.inputs.cwd = tree.path("r/.git/hooks");
    check(&tree, json!({"allowWrite": ["."]}), &[]);
    tree.inputs.cwd = tree.path("q/.vscode");
    check(&tree, json!({"allowWrite": ["sub"]}), &["writable q/.vscode/sub"]);
}

#[test]
fn the_search_ends_where_it_shall() {
    let tree = Tree::new(&[
        "a/b/.bashrc",
        "a/b/c/.bashrc",
        "a/.vscode/f",
        "a/b/.vscode/f",
        "a/.claude/commands/f",
        "a/b/.claude/commands/f",
        "a/.idea/",
        "a/.git/hooks/x",
        "a/.git/config",
        "a/b/.git/config",
    ]);
    check(
        &tree,
        json!({"allowWrite": ["."]}),
        &[
            "pin a",
            "pin a/.claude",
            "pin a/.git",
            "pin a/b",
            "writable w",
            "read-only a/.claude/commands",
            "read-only a/.git/config",
            "read-only a/.git/hooks",
            "read-only a/.idea",
            "read-only a/.vscode",
            "read-only a/b/.bashrc",
        ],
    );
    let depth = |depth: u32| {
        let planned =
            tree.plan_all(json!({"filesystem": {"allowWrite": ["."]}, "mandatoryDenySearchDepth": depth}));
        planned.mounts().into_iter().filter(|line| line.starts_with("read-only")).collect::<Vec<_>>()
    };
    assert_eq!(depth(1), [""; 0]);
    assert_eq!(depth(2), [""; 0]);
    assert!(
        depth(4).contains(&"read-only a/b/c/.bashrc".into())
            && depth(4).contains(&"read-only a/b/.vscode".into())
    );
    let tree = Tree::new(&["a/.bashrc", "a/.vscode/f", ".zshrc"]);
    let two = tree.plan_all(json!({"filesystem": {"allowWrite": ["."]}, "mandatoryDenySearchDepth": 2}));
    assert_eq!(two.mounts(), ["pin a", "writable w", "read-only .zshrc", "read-only a/.bashrc"]);
    let one = tree.plan_all(json!({"filesystem": {"allowWrite": ["."]}, "mandatoryDenySearchDepth": 1}));
    assert_eq!(one.mounts(), ["writable w", "read-only .zshrc"]);
}

#[test]
fn links_at_protected_names() {
    let tree = Tree::new(&[
        "dot/bashrc",
        "dot/o",
        ".bashrc -> dot/bashrc",
        ".zshrc -> .zshrc",
        ".profile -> dot/none",
        ".idea -> ../h",
    ]);
    let planned = tree.plan(json!({"allowWrite": ["."]}));
    assert_eq!(
        planned.mounts(),
        [
            "pin .bashrc",
            "pin .idea",
            "pin .profile",
            "pin .zshrc",
            "pin dot",
            "writable w",
            "read-only dot/bashrc"
        ]
    );
    assert!(planned.placeholders().contains(&"dot/none".into()));
}

#[test]
fn odd_things_at_protected_names() {
    let tree = Tree::new(&[".bashrc/x", ".vscode", ".claude", ".git"]);
    check(
        &tree,
        json!({"allowWrite": ["."]}),
        &["writable w", "read-only .bashrc", "read-only .claude", "read-only .git", "read-only .vscode"],
    );
    let tree = Tree::new(&[".git/modules", ".git/hooks -> nowhere/x", ".git/config/"]);
    let planned = tree.plan(json!({"allowWrite": ["."]}));
    assert_eq!(planned.mounts(), ["pin .git", "pin .git/hooks", "writable w", "read-only .git/config"]);
    assert!(planned.placeholders().contains(&".git/nowhere/".into()));
}

#[test]
fn a_folder_that_cannot_be_read_is_denied_whole() {
    let run = || {
        let tree = Tree::for_anybody(&["lock/.bashrc", "lock/f"]);
        fs::set_permissions(tree.path("lock"), Permissions::from_mode(0o333)).unwrap();
        let planned = tree.plan(json!({"allowWrite": ["."]}));
        fs::set_permissions(tree.path("lock"), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(planned.mounts(), ["writable w", "read-only lock"]);
    };
    if geteuid().is_root() { in_a_child(&run) } else { run() }
}
