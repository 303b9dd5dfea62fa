//! What a command leaves behind must not change what the next run with the same settings opens or denies.

use super::*;

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
