//! Denies that mean something elsewhere and nothing here.

use super::*;

fn warnings(tree: &Tree, key: &str, entry: Value) -> Vec<String> {
    let mut lists = json!({"allowWrite": ["."]});
    lists[key] = json!([entry]);
    tree.plan(lists).plan.warnings
}

#[test]
fn what_matches_nothing_is_told() {
    let tree = Tree::new(&["a.env", "h/.ssh/id", "sub/x"]);
    for (entry, word) in [
        ("~root/.ssh", "absolute path"),
        ("~root", "absolute path"),
        ("**/*.{env,pem}", "one entry for each"),
        ("{a,b}.env", "one entry for each"),
        ("sub/{x,y}", "one entry for each"),
        ("{sub/x,y}", "one entry for each"),
        ("~/{.ssh,.aws}", "one entry for each"),
        ("$HOME/.ssh", "variables"),
        ("${HOME}/.ssh", "variables"),
        ("/srv/$USER/x", "variables"),
        ("cache-$USER", "variables"),
        ("$HOME/**/*.key", "variables"),
        ("*/$HOME", "variables"),
        ("!a.env", "remove it"),
        ("!**/*.env", "remove it"),
    ] {
        for key in ["denyRead", "denyWrite"] {
            let told = warnings(&tree, key, json!(entry));
            let named = format!("filesystem.{key} `{entry}`: nothing that is there is denied: ");
            assert!(
                told.len() == 1 && told[0].starts_with(&named) && told[0].contains(word),
                "{entry}: {told:?}"
            );
            let literal = told[0].contains("\"literal\": true");
            assert_eq!(literal, !entry.contains('*'), "{told:?}");
        }
    }
}

#[test]
fn what_is_there_is_meant() {
    let tree = Tree::new(&[
        "~root/x",
        "$HOME/y",
        "a/{b,c}",
        "k/x.{env,pem}",
        "!f",
        "${x}",
        "d/A$B.class",
        "l{,} -> nowhere",
        "h/{a,b}/x",
    ]);
    for entry in [
        "~root",
        "~root/x",
        "~root/none",
        "$HOME",
        "$HOME/y",
        "$HOME/none",
        "a/{b,c}",
        "**/*.{env,pem}",
        "k/?.{env,pem}",
        "!f",
        "${x}",
        "d/A$B.class",
        "d/*$B.class",
        "l{,}",
        "!?",
        "~/{a,b}",
        "~/{a,b}/none",
        // No sign of anything.
        "none",
        "~",
        "~/none",
        "a{b",
        "a}b,{c",
        "{a}",
        "US$",
        "1$2",
        "a!b",
        "a~b",
        "sub/~root",
        "**/*.none",
    ] {
        for key in ["denyRead", "denyWrite"] {
            assert_eq!(warnings(&tree, key, json!(entry)), [""; 0], "{entry}");
        }
    }
    for entry in ["~nobody/x", "$NONE/x", "{x,y}", "!x"] {
        assert_eq!(warnings(&tree, "denyRead", json!({"path": entry, "literal": true})), [""; 0], "{entry}");
        assert_eq!(warnings(&tree, "allowRead", json!(entry)), [""; 0], "{entry}");
    }
}
