//! `allowWrite`, `denyWrite`, the default write paths, and the mandatory denies.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use srt_shared::settings::DEFAULT_NAME;

use super::{
    compile::{Compiled, SETTINGS, Scene, is_own_tree, setting},
    doubtful::Doubt,
    host::{Creation, Found, Kind, Lookup},
    model::{Placeholder, Reason},
    planted::is_to_be_followed,
    protected::is_shared_by_all,
    readings::Effect,
    reads::unanchored,
    rules::say,
    walk::{Findings, Links, PatternId, Search, Unsearchable},
};

/// What the write lists said, until the walk has found what their patterns match.
#[derive(Debug, Default)]
pub(super) struct Writes {
    denies: BTreeMap<PatternId, Reason>,
    /// What `allowWrite` opens, where it really is.
    roots: Vec<(PathBuf, Kind)>,
    /// What it does not open, for the links on the way: where these lead, and what to say if that is not writable.
    refused: Vec<(PathBuf, String)>,
    /// Denied names that are not there: the directory that would hold them, and the names missing in it.
    absent: Vec<(PathBuf, PathBuf, Reason)>,
    doubts: Vec<Doubt>,
}

const MANDATORY: Reason = Reason::Rule("protected name");
const UNREADABLE: Reason = Reason::Rule("protected names cannot be looked for in it");
const OWNERS: Reason = Reason::Rule("its owner could make a denied name in it");
const FOREIGN: Reason = Reason::Rule("a denied name of another sandbox");
/// Where programs leave logs that nobody wants to list.
const DEFAULT_WRITES: [(&str, Reason); 2] = [
    (".npm/_logs", Reason::Rule("~/.npm/_logs is writable by default")),
    (".claude/debug", Reason::Rule("~/.claude/debug is writable by default")),
];

impl Writes {
    /// Opens what `allowWrite` names and the default write paths.
    pub(super) fn add_allowed(&mut self, scene: Scene<'_>, out: &mut Compiled) {
        let mut wanted = Vec::new();
        for entry in &scene.inputs.settings.filesystem.allow_write {
            let why = setting("filesystem.allowWrite", entry);
            let readings = scene.readings(entry, Effect::Allow);
            if (readings.unanchored || !readings.patterns.is_empty()) && readings.paths.is_empty() {
                out.warnings.insert(format!("{why}: patterns are not supported here; nothing is opened"));
            }
            wanted
                .extend(readings.paths.into_iter().map(|path| (scene.host.follow(&path), path, why.clone())));
        }
        let places: Vec<PathBuf> =
            wanted.iter().filter_map(|(lookup, ..)| lookup.there().map(Path::to_path_buf)).collect();
        for (lookup, path, why) in &wanted {
            self.open(scene, lookup, path, &places, why, out);
        }
        for (name, why) in &DEFAULT_WRITES {
            let lookup = scene.host.follow(&scene.bases.home.join(name));
            if let (Found::There(path, Kind::Directory), []) = (&lookup.found, lookup.links.as_slice()) {
                let node = out.rules.node(path);
                node.kind = Some(Kind::Directory);
                say(&mut node.default_write, why);
            }
        }
    }

    /// Opens what a path leads to. `places` is where all such paths lead.
    fn open(
        &mut self,
        scene: Scene<'_>,
        lookup: &Lookup,
        path: &Path,
        places: &[PathBuf],
        why: &Reason,
        out: &mut Compiled,
    ) {
        if is_own_tree(path) {
            return tell_own_tree(path, why, out);
        }
        match &lookup.found {
            Found::There(place, _) if is_own_tree(place) => tell_own_tree(place, why, out),
            Found::There(place, kind) => {
                // A command of an earlier run may have put it there, to be given more in this one.
                let planted = lookup.links.iter().find(|link| !is_to_be_followed(link, scene, places));
                if let Some(link) = planted {
                    let told = format!(
                        "{why}: leads through the symbolic link {link:?} and is not opened; write {place:?} if it is meant"
                    );
                    self.refused.push((place.clone(), told));
                    return;
                }
                out.rules.keep_links(&lookup.links, why);
                let node = out.rules.node(place);
                node.kind = Some(*kind);
                say(&mut node.allow_write, why);
                self.roots.push((place.clone(), *kind));
            }
            Found::Unknown(_) => {
                out.warnings.insert(format!("{why}: cannot be looked at, so nothing is opened"));
            }
            Found::Missing(..) | Found::BelowFile(_) | Found::Circle => {
                out.notes.insert(format!("{why}: nothing is there, so nothing is opened"));
            }
        }
    }

    /// Denies what `denyWrite` names, and puts its patterns into the search.
    pub(super) fn add_denied(&mut self, scene: Scene<'_>, search: &mut Search, out: &mut Compiled) {
        for entry in &scene.inputs.settings.filesystem.deny_write {
            let why = setting("filesystem.denyWrite", entry);
            let readings = scene.readings(entry, Effect::Deny);
            let mut doubt = Doubt::of(scene, entry, &readings, &why);
            for path in &readings.paths {
                self.deny(scene, path, &why, out);
            }
            if readings.unanchored {
                out.warnings.insert(unanchored(&why));
            }
            for anchored in readings.patterns {
                match scene.seek(search, &anchored, Links::Followed) {
                    Ok((id, links)) => {
                        out.rules.keep_links(&links, &why);
                        doubt.iter_mut().for_each(|doubt| doubt.patterns.push(id));
                        self.denies.insert(id, why.clone());
                    }
                    Err(lookup) => {
                        out.rules.keep_links(&lookup.links, &why);
                        if let Found::Unknown(above) = lookup.found {
                            deny_at(&above, Kind::Directory, &why, out);
                        }
                    }
                }
            }
            self.doubts.extend(doubt);
        }
    }

    /// Denies the protected names of the working directory, the home directory and every writable root, and looks
    /// for others below these roots.
    pub(super) fn seek_protected(&mut self, scene: Scene<'_>, search: &mut Search, out: &mut Compiled) {
        let depth = scene.inputs.settings.mandatory_deny_search_depth.get();
        let outermost =
            |root: &PathBuf| !self.roots.iter().any(|(other, _)| other != root && root.starts_with(other));
        let mut anchors: Vec<PathBuf> = Vec::new();
        for base in [scene.bases.cwd, scene.bases.home] {
            if let Found::There(place, Kind::Directory) = scene.host.follow(base).found {
                if out.rules.access(&place).writable() {
                    search.add_protected(place.clone(), depth);
                }
                anchors.push(place);
            }
        }
        for (root, kind) in &self.roots {
            if *kind == Kind::Directory {
                search.add_protected(root.clone(), depth);
                // Nobody starts a shell or an editor in a directory that is shared by all for passing files.
                if outermost(root) && !is_shared_by_all(root, scene.host) {
                    anchors.push(root.clone());
                }
            }
        }
        anchors.sort();
        anchors.dedup();
        for anchor in anchors {
            for path in scene.protected().of_anchor(&anchor) {
                self.deny(scene, &path, &MANDATORY, out);
            }
        }
        for path in scene.protected().of_user() {
            self.deny(scene, &path, &MANDATORY, out);
        }
        // Also where another file decides over this run, or none at all.
        self.deny(scene, &scene.bases.home.join(DEFAULT_NAME), &SETTINGS, out);
        for (root, _) in self.roots.clone() {
            for path in scene.protected().around(&root) {
                self.deny(scene, &path, &MANDATORY, out);
            }
            // A protected name stays protected where it, or something in it, is itself what is opened.
            // Whoever works in such a folder means to write there.
            if let Some(name) = scene.protected().protected_name_above(&root)
                && !scene.bases.cwd.starts_with(name)
            {
                self.deny(scene, name, &MANDATORY, out);
            }
        }
    }

    /// Denies what the search has found.
    pub(super) fn add_found(&mut self, scene: Scene<'_>, findings: &Findings, out: &mut Compiled) {
        for hit in &findings.hits {
            if let Some(why) = self.denies.get(&hit.pattern).cloned() {
                out.rules.keep_links(&hit.links, &why);
                self.deny(scene, &hit.path, &why, out);
            }
        }
        for Unsearchable { pattern, directory, links } in &findings.unsearchable {
            if let Some(why) = self.denies.get(pattern) {
                out.rules.keep_links(links, why);
                deny_at(directory, Kind::Directory, why, out);
            }
        }
        self.doubts.iter().for_each(|doubt| doubt.tell(findings, out));
        for listing in &findings.listings {
            for path in scene.protected().of_listing(listing) {
                self.deny(scene, &path, &MANDATORY, out);
            }
        }
        for directory in &findings.unreadable {
            if scene.could_change(directory) {
                deny_at(directory, Kind::Directory, &UNREADABLE, out);
            }
        }
    }

    /// Sees to denied names that are not there: something has to be there to mount on, or whatever would hold them
    /// becomes read-only.
    pub(super) fn add_absent(&mut self, scene: Scene<'_>, out: &mut Compiled) {
        self.absent.sort();
        self.absent.dedup();
        let creation: Vec<Creation> =
            self.absent.iter().map(|(parent, ..)| scene.host.creation(parent)).collect();
        for ((parent, _, why), creation) in self.absent.iter().zip(&creation) {
            match creation {
                Creation::AfterChmod if out.rules.access(parent).writable() => {
                    deny_at(parent, Kind::Directory, &OWNERS, out);
                }
                // Nobody makes the name in there, but another directory could be put in its place.
                Creation::Refused => out.rules.keep(parent, why),
                _ => {}
            }
        }
        let mut made: BTreeMap<PathBuf, (bool, Reason)> = BTreeMap::new();
        for ((parent, names, why), creation) in self.absent.iter().zip(creation) {
            let access = out.rules.access(parent);
            if creation != Creation::Possible || !access.readable || !access.writable() {
                continue;
            }
            let mut names = names.iter();
            let Some(first) = names.next() else { continue };
            let directory = names.next().is_some();
            let place = made.entry(parent.join(first)).or_insert_with(|| (directory, why.clone()));
            place.0 |= directory;
            place.1 = place.1.clone().min(why.clone());
        }
        // What holds a deny of another sandbox must not be removed by this one.
        for ghost in &scene.inputs.foreign_placeholders {
            let access = out.rules.access(&ghost.path);
            if access.readable && access.writable() {
                made.entry(ghost.path.clone()).or_insert((ghost.directory, FOREIGN));
            }
        }
        for (path, (directory, why)) in made {
            // Another sandbox may hold the name already; what is there is what is mounted on.
            let held = scene.inputs.foreign_placeholders.iter().find(|ghost| ghost.path == path);
            let directory = held.map_or(directory, |ghost| ghost.directory);
            let kind = if directory { Kind::Directory } else { Kind::File };
            deny_at(&path, kind, &why, out);
            // Without write bits: the file is empty for everybody while it is there.
            out.placeholders.insert(Placeholder {
                path,
                directory,
                mode: if directory { 0o555 } else { 0o444 },
            });
        }
    }

    /// Says what was not opened for fear of a planted link, where another entry does not open it.
    pub(super) fn tell_refused(self, out: &mut Compiled) {
        for (place, told) in self.refused {
            let writable = out.rules.access(&place).writable();
            let told_where = if writable { &mut out.notes } else { &mut out.warnings };
            told_where.insert(told);
        }
    }

    /// Denies writing what a path leads to, there or not, and keeps the links it leads through.
    fn deny(&mut self, scene: Scene<'_>, path: &Path, why: &Reason, out: &mut Compiled) {
        // What a path in `/proc` leads to may lie elsewhere, `/proc/self/cwd` for one.
        let lookup = scene.host.follow(path);
        out.rules.keep_links(&lookup.links, why);
        match lookup.found {
            Found::There(place, kind) => deny_at(&place, kind, why, out),
            Found::BelowFile(file) => deny_at(&file, Kind::File, why, out),
            // A `chmod` of the owner's would open the way.
            Found::Unknown(above) => deny_at(&above, Kind::Directory, why, out),
            Found::Missing(parent, names) if !is_own_tree(&parent) => {
                self.absent.push((parent, names, why.clone()));
            }
            Found::Missing(..) | Found::Circle => {}
        }
    }
}

fn deny_at(place: &Path, kind: Kind, why: &Reason, out: &mut Compiled) {
    if is_own_tree(place) {
        return;
    }
    let node = out.rules.node(place);
    node.kind = Some(kind);
    say(&mut node.deny_write, why);
}

/// Says that an `allowWrite` opens nothing, unless that is what it asked for.
fn tell_own_tree(path: &Path, why: &Reason, out: &mut Compiled) {
    if !is_private_anyway(path) {
        out.warnings
            .insert(format!("{why}: the sandbox has a /proc and a /dev of its own; nothing is opened"));
    }
}

/// What a private `/dev` has, writable for everybody.
fn is_private_anyway(path: &Path) -> bool {
    const DEVICES: [&str; 14] = [
        "null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "fd", "ptmx", "pts",
        "shm", "mqueue",
    ];
    path.strip_prefix("/dev").is_ok_and(|rest| {
        rest.iter().next().and_then(|name| name.to_str()).is_none_or(|name| DEVICES.contains(&name))
    })
}
