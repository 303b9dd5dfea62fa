use srt_shared::glob::Pattern;

use super::{
    super::{
        mount_table::RemoteMounts,
        walk::{Findings, Links, Search},
    },
    *,
};

fn remote(tree: &Tree, name: &str) -> RemoteMounts {
    // As the kernel writes a blank.
    let path = tree.path(name).display().to_string().replace(' ', "\\040");
    RemoteMounts::parse(format!("30 22 0:40 / {path} rw - nfs4 srv:/ rw\n").as_bytes())
}

fn hits(findings: &Findings, tree: &Tree) -> Vec<String> {
    let mut hits: Vec<String> = findings
        .hits
        .iter()
        .map(|hit| hit.path.strip_prefix(tree.top().join("w")).unwrap().to_str().unwrap().into())
        .collect();
    hits.sort();
    hits
}

/// A remote mount is not even listed, whichever way leads there, unless the search starts in it.
#[test]
fn remote_mounts_are_not_entered() {
    let tree =
        Tree::new(&["net/a.key", "net/.bashrc", "net/sub/b.key", "d/c.key", "ln -> net", "net/sub/.bashrc"]);
    let host = Host::new(geteuid().as_raw(), []);
    let mut search = Search::default();
    search.add_pattern(tree.top().join("w"), Pattern::parse("**/*.key"), Links::Followed);
    search.add_protected(tree.top().join("w"), 3);
    let findings = search.run_among(remote(&tree, "net"), &host);
    assert_eq!(hits(&findings, &tree), ["d/c.key"]);
    assert!(findings.listings.is_empty(), "{:?}", findings.listings);
    assert!(findings.not_entered.contains(&tree.path("net")));

    let mut search = Search::default();
    search.add_pattern(tree.top().join("w"), Pattern::parse("**/*.key"), Links::Followed);
    search.add_protected(tree.path("net/sub"), 3);
    let findings = search.run_among(remote(&tree, "net"), &host);
    assert_eq!(hits(&findings, &tree), ["d/c.key"]);
    assert_eq!(findings.listings[0].directory, tree.path("net/sub"));
}

/// What several entries and the search look for is found in one pass: each directory is listed once for them all.
#[test]
fn starts_in_one_another_share_the_walk() {
    let tree = Tree::new(&["a/b/x.key", "a/b/.bashrc", "a/y.key"]);
    let host = Host::new(geteuid().as_raw(), []);
    let mut search = Search::default();
    for start in ["a", "a/b"] {
        search.add_pattern(tree.path(start), Pattern::parse("*.key"), Links::Followed);
        search.add_protected(tree.path(start), 3);
    }
    search.add_pattern(tree.top().join("w"), Pattern::parse("**/x.key"), Links::Followed);
    let findings = search.run(&host);
    assert_eq!(hits(&findings, &tree), ["a/b/x.key", "a/b/x.key", "a/y.key"]);
    assert_eq!(findings.listings.len(), 1, "{:?}", findings.listings);
}
