//! Random settings, and random things a command does with what they let it write: whatever it does, the next plan shows
//! and opens no file that the first one did not.

use std::{collections::BTreeSet, fs::FileType, os::unix::fs::symlink};

use proptest::{prelude::*, sample::select, sample::subsequence};

use super::*;

const FILES: [&str; 9] = [
    "x/pub/a/key",
    "x/pub/b/key",
    "x/pub/f",
    "x/secret/a/key",
    "x/secret/f",
    "store/a/key",
    "store/b/key",
    "h/s/a/key",
    "h/s/f",
];
const LINKS: [&str; 7] = [
    "l -> store",
    "x/l -> pub",
    "x/pub/l -> ../secret",
    "d -> ../h/s",
    "store/m -> ../x/pub",
    "x/secret/n -> a",
    "h/t -> s",
];
const PATHS: [&str; 36] = [
    ".",
    "x",
    "x/pub",
    "x/pub/a",
    "x/pub/a/key",
    "x/pub/l/a",
    "x/secret",
    "x/secret/a",
    "x/secret/n",
    "x/l/a",
    "x/new/a",
    "store",
    "store/a",
    "store/a/key",
    "store/m/a",
    "l",
    "l/a",
    "l/a/key",
    "d",
    "d/a",
    "d/f",
    "new/a",
    "~",
    "~/s",
    "~/s/a",
    "~/s/f",
    "~/t/a",
    "TOP/w/x/pub/b",
    "TOP/w/l/b",
    "TOP/h/s/f",
    "TOP",
    "x/pub/f",
    "x/secret/f",
    "l/b/key",
    "store/b",
    "x/l",
];
const PATTERNS: [&str; 24] = [
    "x/*",
    "x/*/a",
    "x/pub/*",
    "x/pub/a/*",
    "x/pub/*/key",
    "x/**/key",
    "x/l/*",
    "l/*",
    "l/*/key",
    "l/**/key",
    "?/a",
    "?/**",
    "*/a/*",
    "**/key",
    "**/f",
    "d/*",
    "~/s/*",
    "~/?/f",
    "~/t/*",
    "store/*/**",
    "x/pub/l/*",
    "new/*",
    "x/*/**",
    "store/m/*",
];
/// Where a command puts something, and what it puts there or leads there.
const PLACES: [&str; 26] = [
    "x",
    "x/pub",
    "x/pub/a",
    "x/pub/b",
    "x/pub/f",
    "x/pub/a/key",
    "x/secret",
    "x/secret/a",
    "x/secret/f",
    "x/l",
    "x/pub/l",
    "store",
    "store/a",
    "store/b",
    "store/a/key",
    "store/m",
    "l",
    "d",
    "new",
    "x/new",
    "h",
    "h/s",
    "h/s/a",
    "h/s/f",
    "h/t",
    "x/pub/new",
];

#[derive(Debug, Clone, Copy)]
enum Act {
    Link,
    Folder,
    Move,
    Exchange,
    HardLink,
}

fn entries(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop_oneof![select(&PATHS[..]), select(&PATTERNS[..])], 0..=most)
}

fn acts() -> impl Strategy<Value = Vec<(Act, &'static str, &'static str)>> {
    let act = prop_oneof![
        6 => Just(Act::Link), 1 => Just(Act::Folder), 2 => Just(Act::Move), 1 => Just(Act::Exchange),
        1 => Just(Act::HardLink),
    ];
    prop::collection::vec((act, select(&PLACES[..]), select(&PLACES[..])), 1..4)
}

/// What is on the host, resolved, by what it is.
fn walk(top: &Path, wanted: fn(&FileType) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(top).into_iter().flatten().flatten() {
        let kind = entry.file_type().unwrap();
        if wanted(&kind) {
            found.push(entry.path());
        }
        if kind.is_dir() {
            found.extend(walk(&entry.path(), wanted));
        }
    }
    found
}

/// What a command can do with a place.
fn access(plan: &Plan, path: &Path) -> (bool, bool) {
    let mounts = plan.mounts.iter().rev().filter(|mount| mount.kind != MountKind::Pin);
    match mounts.map(|m| (m, path.starts_with(&m.target))).find(|(_, in_it)| *in_it).map(|(m, _)| &m.kind) {
        None => (true, plan.root.writable),
        Some(MountKind::Writable) => (true, true),
        Some(MountKind::ReadOnly) => (true, false),
        Some(MountKind::Reopen { writable, .. }) => (true, *writable),
        Some(_) => (false, false),
    }
}

/// The files, by what is in them, that a plan shows and that it lets write.
fn given(plan: &Plan, top: &Path) -> [BTreeSet<String>; 2] {
    let mut given = [BTreeSet::new(), BTreeSet::new()];
    for file in walk(top, FileType::is_file) {
        let shown = plan.mounts.iter().any(|mount| {
            matches!(&mount.kind, MountKind::Reopen { source, .. } if *source != mount.target && file.starts_with(source))
        });
        let (readable, writable) = access(plan, &file);
        let name = fs::read_to_string(&file).unwrap();
        if readable || shown {
            given[0].insert(name.clone());
        }
        if writable {
            given[1].insert(name);
        }
    }
    given
}

/// Does what the kernel lets a command do: it takes only names that carry no mount, in folders that are writable.
fn act(tree: &Tree, plan: &Plan, (what, place, other): (Act, &str, &str)) {
    let (place, other) = (tree.path(place), tree.path(other));
    let resolved =
        |path: &Path| path.parent().is_some_and(|up| fs::canonicalize(up).is_ok_and(|real| real == up));
    let free = |path: &Path| {
        resolved(path)
            && access(plan, path.parent().unwrap()).1
            && plan.mounts.iter().all(|mount| mount.target != path)
    };
    if !free(&place) {
        return;
    }
    let aside = place.with_extension("old");
    if aside.symlink_metadata().is_ok() {
        return;
    }
    match what {
        Act::Move | Act::Exchange
            if !free(&other) || other.starts_with(&place) || place.starts_with(&other) => {}
        Act::Link => {
            let _ = fs::rename(&place, &aside);
            let _ = symlink(&other, &place);
        }
        Act::Folder => {
            let _ = fs::rename(&place, &aside);
            let _ = fs::create_dir(&place);
        }
        Act::Move => {
            let _ = fs::rename(&place, &aside);
            let _ = fs::rename(&other, &place);
        }
        Act::Exchange => {
            if fs::rename(&place, &aside).is_ok() {
                let _ = fs::rename(&other, &place);
                let _ = fs::rename(&aside, &other);
            }
        }
        Act::HardLink => {
            if free(&other) && access(plan, &other).1 {
                let _ = fs::rename(&place, &aside);
                let _ = fs::hard_link(&other, &place);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_command_gains_nothing_for_the_next(
        links in subsequence(LINKS.to_vec(), 0..=LINKS.len()),
        deny_read in entries(3),
        allow_read in entries(3),
        allow_write in prop::collection::vec(select(&PATHS[..]), 0..3),
        all in any::<bool>(),
        deny_write in entries(2),
        rounds in prop::collection::vec(acts(), 1..3),
    ) {
        let tree = Tree::new(&[&FILES[..], &links[..]].concat());
        let mut allow_write = allow_write;
        if all {
            allow_write.push(".");
        }
        let lists = json!({
            "denyRead": deny_read, "allowRead": allow_read, "allowWrite": allow_write, "denyWrite": deny_write,
        });
        let mut plan = tree.plan(lists.clone()).plan;
        let [readable, writable] = given(&plan, &tree.top());
        for round in rounds {
            for one in round {
                act(&tree, &plan, one);
            }
            plan = tree.plan(lists.clone()).plan;
            let [now_readable, now_writable] = given(&plan, &tree.top());
            let more = |now: &BTreeSet<String>, then: &BTreeSet<String>| now.difference(then).cloned().collect::<Vec<_>>();
            prop_assert_eq!(more(&now_readable, &readable), Vec::<String>::new(), "read {}", lists);
            prop_assert_eq!(more(&now_writable, &writable), Vec::<String>::new(), "written {}", lists);
        }
    }
}
