//! From [`Rules`] to the ordered list of mounts: as few as make every path what the rules say.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    compile::is_own_tree,
    host::Kind,
    model::{Mount, MountKind, Reason, Root},
    rules::{Access, Node, Rules},
};

/// How the clone of the host's tree is mounted.
pub(super) fn root(rules: &Rules) -> Root {
    let node = rules.get(Path::new("/"));
    let writable = rules.access(Path::new("/")).writable();
    let why = node.and_then(|node| if writable { node.allow_write.clone() } else { node.deny_write.clone() });
    Root { writable, why: why.unwrap_or(Reason::Rule("nothing is writable unless it is allowed")) }
}

/// The mounts, pins first, then what is above before what is below.
pub(super) fn mounts(rules: &Rules) -> Vec<Mount> {
    let mut layers = Layers::of(rules);
    let pins = layers.pins(rules);
    let cover = |path: &Path| path.parent() == Some(Path::new("/"));
    let (covers, pins): (Vec<_>, Vec<_>) = pins.into_iter().partition(|(path, _)| cover(path));
    for (path, why) in covers {
        layers.cover(path, why);
    }
    let pins = pins.into_iter().map(|(target, why)| Mount { kind: MountKind::Pin, target, why });
    let layers =
        layers.mounts.into_iter().map(|(target, layer)| Mount { kind: layer.kind, target, why: layer.why });
    pins.chain(layers).collect()
}

/// What a mount shows, and where the host's own tree lies beneath it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    Host { writable: bool },
    Empty,
}

struct Layer {
    kind: MountKind,
    why: Reason,
    view: View,
}

/// The mounts by target. Paths sort so that what is above comes first.
struct Layers {
    root: View,
    mounts: BTreeMap<PathBuf, Layer>,
}

impl Layers {
    fn of(rules: &Rules) -> Self {
        let root = View::Host { writable: rules.access(Path::new("/")).writable() };
        let mut layers = Self { root, mounts: BTreeMap::new() };
        // The nodes from the root to the one at hand: what it says depends on those above it alone.
        let mut above: Vec<(&Path, Access, View)> =
            vec![(Path::new("/"), rules.access(Path::new("/")), root)];
        for (path, node) in rules.nodes().filter(|(path, _)| *path != Path::new("/")) {
            while above.len() > 1 && above.last().is_some_and(|(last, ..)| !path.starts_with(last)) {
                above.pop();
            }
            let &(_, inherited, view) = above.last().expect("invariant: the root is never taken off");
            let access = inherited.under(path, node);
            let view = layers.add(path, node, access, view);
            above.push((path, access, view));
        }
        layers
    }

    /// Mounts what makes `path` what its node says, if what is shown there already does not. Gives what is shown
    /// there then.
    fn add(&mut self, path: &Path, node: &Node, access: Access, current: View) -> View {
        let wanted = if access.readable { View::Host { writable: access.writable() } } else { View::Empty };
        let is_directory = node.kind.is_none_or(|kind| kind == Kind::Directory);
        let (kind, why, view) = match (current, wanted) {
            // The host's would come to lie over what is ours.
            (View::Host { .. }, View::Host { .. }) if is_own_tree(path) => return current,
            (View::Empty, View::Empty) => match node.shown.as_ref().filter(|_| !access.hidden_for_good) {
                Some((source, why)) => {
                    let kind = MountKind::Reopen { source: source.clone(), writable: false };
                    (kind, Some(why), View::Host { writable: false })
                }
                None => return current,
            },
            (View::Empty, View::Host { writable }) => {
                let why = node.allow_read.as_ref().or(node.allow_write.as_ref());
                (MountKind::Reopen { source: path.into(), writable }, why, wanted)
            }
            (View::Host { .. }, View::Empty) => {
                let kind = if is_directory { MountKind::EmptyDir } else { MountKind::EmptyFile };
                (kind, node.hide.as_ref().or(node.deny_read.as_ref()), View::Empty)
            }
            (View::Host { writable: is }, View::Host { writable: shall }) if is == shall => return current,
            (View::Host { .. }, View::Host { writable: true }) => {
                (MountKind::Writable, node.allow_write.as_ref().or(node.default_write.as_ref()), wanted)
            }
            (View::Host { .. }, View::Host { writable: false }) => {
                (MountKind::ReadOnly, node.deny_write.as_ref().or(node.allow_read.as_ref()), wanted)
            }
        };
        let why = why
            .cloned()
            .unwrap_or(Reason::Rule("the trees of the kernel are writable only where an entry names them"));
        self.mounts.insert(path.into(), Layer { kind, why, view });
        view
    }

    /// What the mounts so far show at a path.
    fn view(&self, path: &Path) -> View {
        self.serving(path).map_or(self.root, |(_, layer)| layer.view)
    }

    /// The mount that a path lies in.
    fn serving(&self, path: &Path) -> Option<(&Path, &Layer)> {
        path.ancestors()
            .find_map(|path| self.mounts.get_key_value(path))
            .map(|(path, layer)| (path.as_path(), layer))
    }

    /// Every name that a command could move away, though what it leads to is protected: directories above a
    /// protected path, up to the writable mount they lie in, and what rules lead through.
    fn pins(&self, rules: &Rules) -> BTreeMap<PathBuf, Reason> {
        let mut pins = BTreeMap::new();
        for (path, layer) in &self.mounts {
            if matches!(layer.kind, MountKind::ReadOnly | MountKind::EmptyDir | MountKind::EmptyFile) {
                self.pin_above(path, &layer.why, &mut pins);
            }
        }
        for (kept, why) in rules.kept() {
            let Some(parent) = kept.parent() else { continue };
            // In `/` itself nothing could bury the pin, and it would stand in the way of what a link leads to.
            let in_root = parent == Path::new("/");
            if !in_root && self.is_writable(parent) && !self.mounts.contains_key(kept) {
                pins.entry(kept.into()).or_insert_with(|| why.clone());
                self.pin_above(kept, why, &mut pins);
            }
        }
        pins
    }

    /// Where a directory is pinned already, so is everything above it.
    fn pin_above(&self, path: &Path, why: &Reason, pins: &mut BTreeMap<PathBuf, Reason>) {
        for above in path.ancestors().skip(1) {
            let done = pins.contains_key(above) || self.mounts.contains_key(above);
            if done || above == Path::new("/") || !self.is_writable(above) {
                return;
            }
            pins.insert(above.into(), why.clone());
        }
    }

    /// Whether the host's own files can be written there. In our `/dev` and `/proc` they never can: nothing has to be
    /// kept in its place there, and a cover would show the host's in the place of ours.
    fn is_writable(&self, path: &Path) -> bool {
        !is_own_tree(path) && self.view(path) == View::Host { writable: true }
    }

    /// Binds a top-level directory writable over the pins in it, where the root itself is what they lie in: the one
    /// place where a rename crosses a mount.
    fn cover(&mut self, path: PathBuf, why: Reason) {
        self.mounts.entry(path).or_insert(Layer {
            kind: MountKind::Writable,
            why,
            view: View::Host { writable: true },
        });
    }
}
