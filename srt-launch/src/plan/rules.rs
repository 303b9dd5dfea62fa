//! What the settings say about each path they name, and what follows for every other path. Nothing here depends
//! on the order of entries.

use std::{
    collections::BTreeMap,
    ops::Bound,
    path::{Path, PathBuf},
};

use super::{host::Kind, model::Reason};

/// All that is said about paths. Paths are resolved: no component is a symbolic link.
#[derive(Debug, Default)]
pub(super) struct Rules {
    nodes: BTreeMap<PathBuf, Node>,
    /// What rules lead through, links most of all: whoever replaces one moves the rule elsewhere.
    kept: BTreeMap<PathBuf, Reason>,
}

/// All that is said about one path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// What the path is, where something is to be mounted on it.
    pub(super) kind: Option<Kind>,
    /// `denyRead`, on this very path.
    pub(super) deny_read: Option<Reason>,
    /// A read deny that no allow lifts, here and beneath: in place of something that cannot be looked at, and over
    /// what is ours.
    pub(super) hide: Option<Reason>,
    /// `allowRead`
    pub(super) allow_read: Option<Reason>,
    /// `allowWrite`, which makes readable too what it opens.
    pub(super) allow_write: Option<Reason>,
    /// A default write path: it opens nothing that is hidden.
    pub(super) default_write: Option<Reason>,
    /// `denyWrite` and the mandatory denies.
    pub(super) deny_write: Option<Reason>,
    /// An allowed symbolic link in a hidden directory, with the path whose content its name shows.
    pub(super) shown: Option<(PathBuf, Reason)>,
}

/// What a command may do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) readable: bool,
    /// Under a read deny that no allow lifts.
    pub(super) hidden_for_good: bool,
    allowed: bool,
    denied: bool,
}

impl Access {
    /// With no rule at all.
    const NONE: Self = Self { readable: true, hidden_for_good: false, allowed: false, denied: false };

    /// Whether it could be written if it is shown.
    pub(super) fn writable(self) -> bool {
        self.allowed && !self.denied
    }

    /// What a node makes of the access of what is above it.
    pub(super) fn under(self, path: &Path, node: &Node) -> Self {
        let mut access = self;
        if is_apart(path) {
            access.allowed = false;
        }
        access.hidden_for_good |= node.hide.is_some();
        let is_directory = node.kind.is_none_or(|kind| kind == Kind::Directory);
        if node.deny_read.is_some() && is_directory {
            // What is shown again is writable only where an entry says so there.
            access.allowed = false;
        }
        access.readable = if access.hidden_for_good {
            false
        } else if node.allow_read.is_some() {
            true
        } else if node.deny_read.is_some() {
            // A denied file is lifted by nothing but an `allowRead` of that file.
            is_directory && node.allow_write.is_some()
        } else {
            access.readable || node.allow_write.is_some()
        };
        access.allowed |= node.allow_write.is_some() || (node.default_write.is_some() && access.readable);
        access.denied |= node.deny_write.is_some();
        access.allowed &= access.readable;
        access
    }
}

/// Trees of the kernel: `allowWrite: ["/"]` means files, not the switches of the machine. They are writable only
/// where an entry names them.
fn is_apart(path: &Path) -> bool {
    [Path::new("/sys"), Path::new("/proc")].contains(&path)
}

impl Rules {
    /// The node of a path, to say something about it.
    pub(super) fn node(&mut self, path: &Path) -> &mut Node {
        self.nodes.entry(path.into()).or_default()
    }

    /// The node of a path, if anything is said about it.
    pub(super) fn get(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// All nodes, what is above before what is below.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Path, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_path(), node))
    }

    /// Nodes at and beneath a path.
    pub(super) fn nodes_within<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (&'a Path, &'a Node)> {
        self.nodes
            .range::<Path, _>((Bound::Included(path), Bound::Unbounded))
            .take_while(move |(own, _)| own.starts_with(path))
            .map(|(path, node)| (path.as_path(), node))
    }

    /// Names that must stay what they are.
    pub(super) fn kept(&self) -> impl Iterator<Item = (&Path, &Reason)> {
        self.kept.iter().map(|(path, why)| (path.as_path(), why))
    }

    /// Notes that a rule leads through links.
    pub(super) fn keep_links(&mut self, links: &[PathBuf], why: &Reason) {
        links.iter().for_each(|link| self.keep(link, why));
    }

    /// Notes that a rule needs a name to stay what it is, though nothing is mounted there.
    pub(super) fn keep(&mut self, path: &Path, why: &Reason) {
        let kept = self.kept.entry(path.into()).or_insert_with(|| why.clone());
        *kept = kept.clone().min(why.clone());
    }

    /// What a command may do with any path.
    pub(super) fn access(&self, path: &Path) -> Access {
        let above: Vec<&Path> = path.ancestors().collect();
        above.into_iter().rev().fold(Access::NONE, |access, path| match self.nodes.get(path) {
            Some(node) => access.under(path, node),
            None if is_apart(path) => access.under(path, &Node::default()),
            None => access,
        })
    }

    /// The deepest node above a path, the path itself included, that satisfies a condition.
    pub(super) fn nearest<'a>(
        &'a self,
        path: &'a Path,
        wanted: impl Fn(&Node) -> bool,
    ) -> Option<(&'a Path, &'a Node)> {
        path.ancestors().find_map(|path| {
            let node = self.nodes.get(path)?;
            wanted(node).then_some((path, node))
        })
    }
}

/// Says something, keeping of two reasons for the same the one that comes first in their own order.
pub(super) fn say(slot: &mut Option<Reason>, why: &Reason) {
    if slot.as_ref().is_none_or(|kept| why < kept) {
        *slot = Some(why.clone());
    }
}
