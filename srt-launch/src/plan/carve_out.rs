use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    compile::Scene,
    host::{Found, Kind},
    model::Reason,
    rules::{Node, Rules},
};

/// Judges what an `allowRead` may show. The name counts, not what it points at: a command that can plant a link at
/// an allowed name must not choose what is shown.
pub(super) struct CarveOuts<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) rules: &'a Rules,
    /// Directories in which every entry is denied for itself.
    pub(super) denied_contents: &'a BTreeMap<PathBuf, Reason>,
}

/// What an allowed name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CarveOut {
    /// What is there, shown where it is.
    Place(PathBuf, Kind),
    /// A link, to be judged when every place is in the rules.
    Link(PathBuf),
}

impl CarveOuts<'_> {
    /// Where an allowed path really is.
    ///
    /// # Errors
    /// Why it is not shown.
    pub(super) fn place(&self, path: &Path) -> Result<CarveOut, String> {
        let lookup = self.scene.host.follow_parents(path);
        let Found::There(place, kind) = lookup.found else {
            return Err("nothing is there, so nothing is shown".into());
        };
        // A link that no command can have planted may lead anywhere.
        let trusted = |link: &PathBuf| {
            let access = self.rules.access(link);
            access.readable && !access.writable() || self.agree(&place, link)
        };
        if !lookup.links.iter().all(trusted) {
            return Err(format!("leads through a link to {place:?}, which another entry denies; not shown"));
        }
        Ok(if kind == Kind::Link { CarveOut::Link(place) } else { CarveOut::Place(place, kind) })
    }

    /// What the name of a link in a hidden directory shows: its target, if that lies in the same directory and no
    /// other entry denies it. `None` where the link is not hidden in the first place.
    ///
    /// # Errors
    /// Why it is not shown.
    pub(super) fn target(&self, link: &Path) -> Result<Option<(PathBuf, Kind)>, &'static str> {
        let hidden = link.parent().filter(|parent| !self.rules.access(parent).readable);
        let Some((hidden, _)) = hidden.and_then(|parent| self.rules.nearest(parent, denies)) else {
            return Ok(None);
        };
        match self.scene.host.follow(link).found {
            Found::There(target, kind)
                if target.starts_with(hidden)
                    && target != hidden
                    && self.agree(&target, link)
                    && self.rules.nodes_within(&target).all(|(_, node)| !denies(node)) =>
            {
                Ok(Some((target, kind)))
            }
            _ => Err("a link to what another entry denies, or out of the folder; not shown"),
        }
    }

    /// Whether every deny that covers `target` covers `link` as well, so that the link is no way round one.
    fn agree(&self, target: &Path, link: &Path) -> bool {
        let lifted = self.rules.get(target).is_some_and(is_lifted);
        target.ancestors().all(|above| {
            let denied = self.rules.get(above).is_some_and(denies);
            (!denied || link.starts_with(above)) && (lifted || !self.denied_contents.contains_key(above))
        })
    }
}

/// Whether a node denies reading, and no `allowRead` of that very file lifts it.
fn denies(node: &Node) -> bool {
    node.hide.is_some() || node.deny_read.is_some() && !is_lifted(node)
}

fn is_lifted(node: &Node) -> bool {
    node.allow_read.is_some() && node.kind == Some(Kind::File)
}
