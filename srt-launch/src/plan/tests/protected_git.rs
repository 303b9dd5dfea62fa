//! What is protected of repositories, in every layout.

use super::*;

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
