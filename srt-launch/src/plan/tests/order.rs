use proptest::{prelude::*, sample::subsequence};

use super::*;

/// Entries whose rules meet in every way: above one another, the same place by two names, patterns, links.
const ENTRIES: [&str; 16] = [
    ".", "a", "a/b", "a/b/c", "a/x", "a/**", "*/b", "**/x", "a/*", "l", "l/c", "a/ln", "none", "/", "~",
    "[ab]/x",
];

fn list() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(ENTRIES.to_vec(), 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same settings give the same plan, whatever the order of their entries.
    #[test]
    fn order_makes_no_difference(
        (lists, shuffled) in [list(), list(), list(), list()].prop_flat_map(|lists| {
            let shuffled = lists.clone().map(|list| Just(list).prop_shuffle());
            (Just(lists), shuffled)
        })
    ) {
        let tree = Tree::new(&["a/b/c/x", "a/x", "b/x", "h/y", "a/ln -> b", "l -> a/b", "a/.bashrc", "b/.git/config"]);
        let plan = |[deny_read, allow_read, allow_write, deny_write]: [Vec<&'static str>; 4]| {
            let lists = json!({
                "denyRead": deny_read, "allowRead": allow_read, "allowWrite": allow_write, "denyWrite": deny_write,
            });
            let mut plan = tree.plan(lists).plan;
            // Other tests make and remove trees beside this one, in which the search from `/` finds protected names.
            let (tree, all) = (tree.top(), fs::canonicalize(std::env::temp_dir()).unwrap());
            let stays = |path: &Path| path.starts_with(&tree) || tree.starts_with(path) || !path.starts_with(&all);
            plan.mounts.retain(|mount| stays(&mount.target));
            plan.placeholders.retain(|placeholder| stays(&placeholder.path));
            let told = |text: &String| !text.contains(&*all.to_string_lossy()) || text.contains(&*tree.to_string_lossy());
            plan.warnings.retain(told);
            plan.notes.retain(told);
            plan
        };
        let (one, other) = (plan(lists), plan(shuffled));
        prop_assert_eq!(one.mounts, other.mounts);
        prop_assert_eq!(one.placeholders, other.placeholders);
        prop_assert_eq!(one.warnings, other.warnings);
        prop_assert_eq!(one.notes, other.notes);
        prop_assert_eq!(one.root, other.root);
    }

    /// What a plan must be for the apply step, and never more writable than asked.
    #[test]
    fn every_plan_is_sound(deny_read in list(), allow_read in list(), allow_write in list(), deny_write in list()) {
        let tree = Tree::new(&["a/b/c/x", "a/x", "b/x", "h/y", "a/ln -> b", "l -> a/b", "a/.bashrc", "b/.git/config"]);
        let planned = tree.plan(json!({
            "denyRead": deny_read, "allowRead": allow_read, "allowWrite": allow_write, "denyWrite": deny_write,
        }));
        let plan = &planned.plan;
        let pins = plan.mounts.iter().take_while(|mount| mount.kind == MountKind::Pin).count();
        prop_assert!(plan.mounts[pins..].iter().all(|mount| mount.kind != MountKind::Pin), "pins come first");
        for (kind, mounts) in [("pins", &plan.mounts[..pins]), ("others", &plan.mounts[pins..])] {
            prop_assert!(mounts.windows(2).all(|pair| pair[0].target < pair[1].target), "{} in order, each once", kind);
        }
        for mount in &plan.mounts[pins..] {
            let above = plan.mounts[pins..].iter().rfind(|m| m.target != mount.target && mount.target.starts_with(&m.target));
            let in_empty = above.is_some_and(|above| above.kind == MountKind::EmptyDir);
            prop_assert_eq!(in_empty, matches!(mount.kind, MountKind::Reopen { .. }), "{:?} in {:?}", mount, above);
            if matches!(mount.kind, MountKind::Writable | MountKind::Reopen { writable: true, .. }) {
                // What is shown again within a denied folder is read-only too, but says nothing about what an entry of
                // `allowWrite` names below it.
                let denies = |m: &Mount| m.kind == MountKind::ReadOnly
                    && !matches!(&m.why, Reason::Setting { key, .. } if *key != "filesystem.denyWrite");
                prop_assert!(
                    !plan.mounts.iter().any(|m| denies(m) && mount.target.starts_with(&m.target)),
                    "{:?} lies in something that must not be written", mount
                );
            }
        }
        if !plan.root.writable {
            for pin in &plan.mounts[..pins] {
                let buried = plan.mounts[pins..].iter().any(|m| pin.target.starts_with(&m.target) && m.target != pin.target);
                prop_assert!(buried, "{:?} shows", pin);
            }
        }
        for placeholder in &plan.placeholders {
            prop_assert!(!placeholder.path.exists());
        }
    }
}
