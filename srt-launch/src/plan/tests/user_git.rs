//! What the user's own configuration of git makes it obey in every repository.

use std::fs;

use serde_json::json;

use super::Tree;

/// Git obeys the user's configuration in every repository: what it names elsewhere is as good as the file.
#[test]
fn what_the_users_git_configuration_names_is_protected() {
    let tree = Tree::new(&["h/.local.cfg", "h/hooks/x", "h/cond", "r/.git/config", "r/.shared/x", "h/ok"]);
    let text = "[include]\npath = .local.cfg\n[includeIf \"gitdir:x\"]\npath = ~/cond\n[core]\nhooksPath = ~/hooks\n";
    fs::write(tree.path("h/.gitconfig"), text).unwrap();
    fs::write(tree.path("h/cond"), "[core]\nhooksPath = .shared\n").unwrap();
    let planned = tree.plan(json!({"allowWrite": ["~", "r"], "denyWrite": ["h/none"]}));
    let mounts = planned.mounts();
    for name in ["h/.gitconfig", "h/.local.cfg", "h/cond", "h/hooks", "r/.shared", "r/.git/config"] {
        assert!(mounts.contains(&format!("read-only {name}")), "{name}: {mounts:?}");
    }
    assert!(!mounts.contains(&"read-only h/ok".into()));
}

/// `~/.gitconfig` is not the only file of the user's that git obeys.
#[test]
fn git_configuration_elsewhere_is_protected() {
    let mut tree =
        Tree::new(&["h/.config/git/config", "h/.config/x", "h/hooks/x", "x/git/", "named", "h/ok"]);
    fs::write(tree.path("h/.config/git/config"), "[core]\nhooksPath = ~/hooks\n").unwrap();
    tree.inputs.env.insert("XDG_CONFIG_HOME".into(), tree.path("x").into());
    tree.inputs.env.insert("GIT_CONFIG_GLOBAL".into(), tree.path("named").into());
    let planned = tree.plan(json!({"allowWrite": ["~", "."]}));
    let mounts = planned.mounts();
    for name in ["h/.config/git/config", "h/hooks", "named"] {
        assert!(mounts.contains(&format!("read-only {name}")), "{name}: {mounts:?}");
    }
    assert!(planned.placeholders().contains(&"x/git/config".into()), "{:?}", planned.placeholders());
    for name in ["h/.config", "h/.config/x", "h/ok"] {
        assert!(!mounts.contains(&format!("read-only {name}")), "{name}: {mounts:?}");
    }

    // Git's folder is not there and must not be made; the one above it is everybody's.
    let tree = Tree::new(&["h/.config/x"]);
    assert!(tree.plan(json!({"allowWrite": ["~"]})).placeholders().contains(&"h/.config/git/".into()));
    let tree = Tree::new(&["h/ok"]);
    assert!(!tree.plan(json!({"allowWrite": ["~"]})).placeholders().iter().any(|p| p.contains(".config")));
    // No device becomes read-only because it is named so.
    let mut tree = Tree::new(&["h/ok"]);
    tree.inputs.env.insert("GIT_CONFIG_GLOBAL".into(), "/dev/null".into());
    let mounts = tree.plan(json!({"allowWrite": ["/"]})).plan.mounts;
    assert!(!mounts.iter().any(|mount| mount.target.ends_with("null")));
}
