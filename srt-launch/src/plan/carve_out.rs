use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    compile::Scene,
    host::{Found, Kind},
    model::Reason,
    planted::may_be_planted,
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

/// Why an allowed path is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It leads through a link that a command may have planted, to this place.
    Planted { link: PathBuf, place: PathBuf },
    /// Whatever else, in words.
    Note(String),
}

impl CarveOuts<'_> {
    /// Where an allowed path really is. `through` are the links that its spelling has led through already.
    ///
    /// # Errors
    /// Why it is not shown.
    pub(super) fn place(&self, path: &Path, through: &[PathBuf]) -> Result<CarveOut, Refusal> {
        let lookup = self.scene.host.follow_parents(path);
        let Found::There(place, kind) = lookup.found else {
            return Err(Refusal::Note("nothing is there, so nothing is shown".into()));
        };
        let links = || through.iter().chain(&lookup.links);
        if let Some(link) = links().find(|link| may_be_planted(link, self.rules, self.scene)) {
            return Err(Refusal::Planted { link: link.clone(), place });
        }
        // A link that no command can have planted may lead anywhere, unless it is hidden itself.
        let trusted = |link: &PathBuf| self.rules.access(link).readable || self.agree(&place, link);
        if !links().all(trusted) {
            let note = format!("leads through a link to {place:?}, which another entry denies; not shown");
            return Err(Refusal::Note(note));
        }
        Ok(if kind == Kind::Link { CarveOut::Link(place) } else { CarveOut::Place(place, kind) })
    }

    /// What the name of a link in a hidden directory shows: its target, if that lies in the same directory and no
    /// other entry denies it. `None` where the link is not hidden in the first place.
    ///
    /// # Errors
    /// Why it is not shown.
    pub(super) fn target(&self, link: &Path) -> Result<Option<(PathBuf, Kind)>, Refusal> {
        let hidden = link.parent().filter(|parent| !self.rules.access(parent).readable);
        let Some((hidden, _)) = hidden.and_then(|parent| self.rules.nearest(parent, denies)) else {
            return Ok(None);
        };
        let lookup = self.scene.host.follow(link);
        // It is hidden itself, but may lead through another one that is not.
        let planted = |other: &&PathBuf| {
            self.rules.access(other).readable && may_be_planted(other, self.rules, self.scene)
        };
        if let (Some(place), Some(other)) = (lookup.there(), lookup.links.iter().find(planted)) {
            return Err(Refusal::Planted { link: other.clone(), place: place.into() });
        }
        match lookup.found {
            Found::There(target, kind)
                if target.starts_with(hidden)
                    && target != hidden
                    && self.agree(&target, link)
                    && self.rules.nodes_within(&target).all(|(_, node)| !denies(node)) =>
            {
                Ok(Some((target, kind)))
            }
            _ => Err(Refusal::Note(
                "a link to what another entry denies, or out of the folder; not shown".into(),
            )),
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
