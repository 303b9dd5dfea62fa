//! Denies that look as if they were written for a shell or for another program: what they say there means nothing here,
//! so they deny nothing, and whoever wrote them takes the files for hidden.

use std::path::Path;

use srt_shared::{glob::has_glob_characters, settings::PathEntry};

use super::{
    compile::{Compiled, Scene},
    host::{Found, absolute},
    model::Reason,
    readings::{Readings, split_base},
    walk::{Findings, PatternId},
};

/// A deny that may not mean what it says, until the walk has found whether it matches something.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) patterns: Vec<PatternId>,
    warning: String,
}

/// What an entry has that means something elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sign {
    /// The component it stands in, counted from the front.
    component: usize,
    taken: &'static str,
    instead: &'static str,
}

impl Doubt {
    /// The doubt about an entry, unless there is none or the name it spells is there.
    pub(super) fn of(scene: Scene<'_>, entry: &PathEntry, readings: &Readings, why: &Reason) -> Option<Self> {
        let text = entry.path.as_str();
        let sign = if entry.literal { None } else { sign(text) }?;
        if is_there(scene, text, sign) || readings.paths.iter().any(|path| leads_somewhere(scene, path)) {
            return None;
        }
        let Sign { taken, instead, .. } = sign;
        let mut warning = format!("{why}: nothing that is there is denied: {taken}; {instead}");
        if !has_glob_characters(text) {
            warning += &format!(", or {{\"path\": {text:?}, \"literal\": true}} if that name is meant");
        }
        Some(Self { patterns: Vec::new(), warning })
    }

    /// Warns if nothing has been found.
    pub(super) fn tell(&self, findings: &Findings, out: &mut Compiled) {
        let hits = findings.hits.iter().map(|hit| hit.pattern);
        let mut found = hits.chain(findings.unsearchable.iter().map(|one| one.pattern));
        if !found.any(|id| self.patterns.contains(&id)) {
            out.warnings.insert(self.warning.clone());
        }
    }
}

/// Whether the component with the sign is there as a name. Where a wildcard stands in the way, the search tells.
fn is_there(scene: Scene<'_>, text: &str, sign: Sign) -> bool {
    let (base, text) = split_base(text, scene.bases);
    let components: Vec<&str> = text.split('/').filter(|name| !name.is_empty()).collect();
    let name = components[..components.len().min(sign.component + 1)].join("/");
    !has_glob_characters(&name) && leads_somewhere(scene, &absolute(base, Path::new(&name)))
}

fn leads_somewhere(scene: Scene<'_>, path: &Path) -> bool {
    !matches!(scene.host.follow_parents(path).found, Found::Missing(..) | Found::BelowFile(_))
}

fn sign(text: &str) -> Option<Sign> {
    if text.starts_with('!') {
        return Some(Sign {
            component: 0,
            taken: "`!` is taken for the first character of a name, since no entry takes anything out of another",
            instead: "remove it",
        });
    }
    if text.strip_prefix('~').is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')) {
        return Some(Sign {
            component: 0,
            taken: "`~` with a name is taken for a name in the working directory, since only `~/` is a home",
            instead: "write the absolute path",
        });
    }
    let components = || text.split('/').filter(|name| !name.is_empty() && *name != "~").enumerate();
    if let Some((component, _)) = components().find(|(_, name)| has_variable(name)) {
        return Some(Sign {
            component,
            taken: "`$` is taken for a character of a name, since variables are not replaced",
            instead: "write what it stands for, `~/` for the home",
        });
    }
    let opening = text.find('{')?;
    let length = text[opening..].find('}')?;
    let component = components().find(|(_, name)| name.contains('{')).map_or(0, |(at, _)| at);
    text[opening..opening + length].contains(',').then_some(Sign {
        component,
        taken: "`{`, `,` and `}` are taken for characters of a name",
        instead: "write one entry for each alternative",
    })
}

/// Whether a name has what a shell would replace.
fn has_variable(name: &str) -> bool {
    let starts_name = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '{';
    name.match_indices('$').any(|(at, _)| name[at + 1..].starts_with(starts_name))
}
