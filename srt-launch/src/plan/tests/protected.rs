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
fn git_directories_in_every_layout() {
    let protected = |entries: &[&str], cwd: &str, allow: &str| {
        let mut tree = Tree::new(entries);
        tree.inputs.cwd = tree.path(cwd);
        let planned = tree.plan(json!({"allowWrite": [allow]}));
        let mounts = planned
            .mounts()
            .into_iter()
            .filter(|line| line.contains("read-only"))
            .map(|line| line.replace("read-only ", ""));
        let git = |name: &String| name.ends_with("/hooks") || name.ends_with("/config");
        let mut all: Vec<String> = mounts.chain(planned.placeholders().into_iter().filter(git)).collect();
        all.sort();
        all
    };
    // An ordinary one; hooks that are not there cannot be made.
    assert_eq!(
        protected(&[".git/HEAD", ".git/config", ".git/hooks/x"], ".", "."),
        [".git/config", ".git/hooks"]
    );
    assert_eq!(protected(&[".git/HEAD", ".git/config"], ".", "."), [".git/config", ".git/hooks"]);
    assert_eq!(
        protected(&[".git/config.worktree"], ".", "."),
        [".git/config", ".git/config.worktree", ".git/hooks"]
    );
    // None: it may be made.
    assert_eq!(protected(&["f"], ".", "."), [""; 0]);
    // Bare, as working directory and below it.
    let bare = ["bare/HEAD", "bare/objects/", "bare/refs/", "bare/config"];
    assert_eq!(protected(&bare, "bare", "."), ["bare/config", "bare/hooks"]);
    assert_eq!(protected(&bare, ".", "."), ["bare/config", "bare/hooks"]);
    // A separate git directory.
    let separate = |tree: &Tree| {
        fs::write(tree.path("work/.git"), format!("gitdir: {}\n", tree.path("sep").display())).unwrap()
    };
    let mut tree = Tree::new(&["sep/HEAD", "sep/config", "sep/hooks/", "work/f"]);
    separate(&tree);
    let planned = tree.plan(json!({"allowWrite": ["."]}));
    assert_eq!(
        planned.mounts(),
        [
            "pin sep",
            "pin work",
            "writable w",
            "read-only sep/config",
            "read-only sep/hooks",
            "read-only work/.git"
        ]
    );
    tree.inputs.cwd = tree.path("work");
    assert_eq!(tree.plan(json!({"allowWrite": ["."]})).mounts(), ["writable work", "read-only work/.git"]);
    // A worktree, with the repository writable: what both share is protected.
    let tree = Tree::new(&["main/.git/HEAD", "main/.git/config", "main/.git/worktrees/wt/HEAD", "wt/f"]);
    fs::write(tree.path("wt/.git"), format!("gitdir: {}\n", tree.path("main/.git/worktrees/wt").display()))
        .unwrap();
    fs::write(tree.path("main/.git/worktrees/wt/commondir"), "../..\n").unwrap();
    let mut inputs = tree.inputs.clone();
    inputs.cwd = tree.path("wt");
    let tree = Tree { inputs, ..tree };
    let planned = tree.plan(json!({"allowWrite": [".", "../main/.git"]}));
    assert_eq!(
        planned.mounts(),
        [
            "pin main/.git/worktrees",
            "pin main/.git/worktrees/wt",
            "writable main/.git",
            "read-only main/.git/config",
            "read-only main/.git/worktrees/wt/commondir",
            "writable wt",
            "read-only wt/.git"
        ]
    );
    for name in ["main/.git/hooks", "main/.git/commondir"] {
        assert!(planned.placeholders().contains(&name.into()), "{name}");
    }
    // Submodules, one of them with a slash in its name.
    assert_eq!(
        protected(
            &[
                ".git/HEAD",
                ".git/config",
                ".git/hooks/",
                ".git/modules/sub/HEAD",
                ".git/modules/sub/config",
                ".git/modules/libs/foo/HEAD",
                ".git/modules/libs/foo/hooks/",
                ".git/modules/libs/foo/config",
                ".git/modules/sub/modules/inner/HEAD",
                ".git/modules/sub/modules/inner/config",
                ".git/modules/sub/hooks/",
                ".git/modules/sub/modules/inner/hooks/",
            ],
            ".",
            "."
        ),
        [
            ".git/config",
            ".git/hooks",
            ".git/modules/libs/foo/config",
            ".git/modules/libs/foo/hooks",
            ".git/modules/sub/config",
            ".git/modules/sub/hooks",
            ".git/modules/sub/modules/inner/config",
            ".git/modules/sub/modules/inner/hooks",
        ]
    );
    // A link instead of a directory: it has to stay as well.
    let tree = Tree::new(&["store/HEAD", "store/config", "store/hooks/", ".git -> store"]);
    check(
        &tree,
        json!({"allowWrite": ["."]}),
        &["pin .git", "pin store", "writable w", "read-only store/config", "read-only store/hooks"],
    );
}

#[test]
fn what_says_where_git_finds_hooks_and_configuration() {
    let tree = Tree::new(&[
        ".git/HEAD",
        ".git/hooks/",
        ".git/worktrees/a/HEAD",
        ".git/worktrees/a/commondir",
        ".git/modules/m/HEAD",
        "conf/included",
        "conf/other",
        "scripts/pre-commit",
    ]);
    let config = "[core]\nhooksPath = scripts\n[include]\npath = ../conf/included\n\
                  [include]\npath = ../conf/absent\n[extensions]\nworktreeConfig = true\n";
    fs::write(tree.path(".git/config"), config).unwrap();
    let planned = tree.plan(json!({"allowWrite": ["."]}));
    let shut = planned.mounts().into_iter().filter(|line| line.starts_with("read-only"));
    assert_eq!(
        shut.collect::<Vec<_>>(),
        [
            "read-only .git/config",
            "read-only .git/hooks",
            "read-only .git/worktrees/a/commondir",
            "read-only conf/included",
            "read-only scripts"
        ]
    );
    for name in [
        ".git/commondir",
        ".git/config.worktree",
        ".git/modules/m/commondir",
        ".git/worktrees/a/config.worktree",
        "conf/absent",
    ] {
        assert!(planned.placeholders().contains(&name.into()), "{name}");
    }
    let planned = tree.plan(json!({"allowWrite": ["."], "allowGitConfig": true}));
    let shut = planned.mounts().into_iter().filter(|line| line.starts_with("read-only"));
    assert_eq!(
        shut.collect::<Vec<_>>(),
        ["read-only .git/hooks", "read-only .git/worktrees/a/commondir", "read-only scripts"]
    );
}

/// The search does not reach these, but git at the top does.
#[test]
fn git_files_of_submodules_and_worktrees_however_deep() {
    let tree = Tree::new(&[
        ".git/HEAD",
        ".git/config",
        ".git/hooks/",
        ".git/worktrees/wt/HEAD",
        ".git/modules/foo/HEAD",
        ".git/modules/sparse/HEAD",
        "a/b/c/foo/.git",
        "a/b/c/foo/f",
        "a/b/c/sparse/.git",
        "a/b/c/wt/.git",
        "a/b/c/own/.git/HEAD",
        "a/b/c/own/.git/config",
        "a/b/c/own/.git/hooks/",
        "a/b/c/other/.git",
    ]);
    fs::write(tree.path(".git/modules/foo/config"), "[core]\nworktree = ../../../a/b/c/foo\n").unwrap();
    fs::write(tree.path(".git/modules/sparse/config.worktree"), "[core]\nworktree=../../../a/b/c/sparse\n")
        .unwrap();
    let gitdir = format!("{}\n", tree.path("a/b/c/wt/.git").display());
    fs::write(tree.path(".git/worktrees/wt/gitdir"), gitdir).unwrap();
    let modules = "[submodule \"own\"]\npath = a/b/c/own\n[submodule \"out\"]\npath = ../h\n";
    fs::write(tree.path(".gitmodules"), modules).unwrap();
    let shut = |planned: Planned| -> Vec<String> {
        let shut =
            planned.mounts().into_iter().filter_map(|line| Some(line.strip_prefix("read-only ")?.into()));
        shut.collect()
    };
    let expected = [
        ".git/config",
        ".git/hooks",
        ".git/modules/foo/config",
        ".git/modules/sparse/config.worktree",
        ".git/worktrees/wt/gitdir",
        ".gitmodules",
        "a/b/c/foo/.git",
        "a/b/c/own/.git/config",
        "a/b/c/own/.git/hooks",
        "a/b/c/sparse/.git",
        "a/b/c/wt/.git",
    ];
    let planned = tree.plan(json!({"allowWrite": ["."]}));
    assert!(planned.mounts().contains(&"pin a/b/c/foo".into()));
    assert_eq!(shut(planned), expected);
    assert_eq!(shut(tree.plan(json!({"allowWrite": ["a"]}))), expected[6..]);
    assert_eq!(shut(tree.plan(json!({"allowWrite": ["a/b/c/foo/f"]}))), [""; 0]);
    // A work tree that is the top itself: the git directory in it is no file, and stays writable.
    fs::write(tree.path(".git/config"), "[core]\nworktree = ..\n").unwrap();
    assert_eq!(shut(tree.plan(json!({"allowWrite": ["."]}))), expected);
}

#[test]
fn git_configuration_can_be_opened_and_hooks_cannot() {
    let tree = Tree::new(&[".git/HEAD", ".git/config", ".git/hooks/x"]);
    check(
        &tree,
        json!({"allowWrite": ["."], "allowGitConfig": true}),
        &["pin .git", "writable w", "read-only .git/hooks"],
    );
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
        let tree = Tree::new(&["lock/.bashrc", "lock/f"]);
        fs::set_permissions(tree.path("lock"), Permissions::from_mode(0o333)).unwrap();
        let planned = tree.plan(json!({"allowWrite": ["."]}));
        fs::set_permissions(tree.path("lock"), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(planned.mounts(), ["writable w", "read-only lock"]);
    };
    if geteuid().is_root() { in_a_child(&run) } else { run() }
}
