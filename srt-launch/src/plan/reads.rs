//! `denyRead` and `allowRead`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    carve_out::{CarveOut, CarveOuts},
    compile::{Compiled, Scene, is_own_tree, setting},
    host::{Found, Kind, Lookup},
    model::Reason,
    readings::Effect,
    rules::say,
    walk::{Findings, Hit, Links, PatternId, Search, Unsearchable},
};

/// What the read lists said, until the walk has found what their patterns match.
#[derive(Debug, Default)]
pub(super) struct Reads {
    denies: BTreeMap<PatternId, Sought>,
    allows: BTreeMap<PatternId, Sought>,
    allowed_paths: Vec<(PathBuf, Reason)>,
    /// Directories denied by a pattern that goes on with `/**`: in them every entry is denied for itself.
    denied_contents: BTreeMap<PathBuf, Reason>,
}

#[derive(Debug, Clone)]
struct Sought {
    why: Reason,
    contents: bool,
}

impl Reads {
    /// Reads the entries: denied paths at once, patterns into the search, allowed paths for later.
    pub(super) fn add_entries(&mut self, scene: Scene<'_>, search: &mut Search, out: &mut Compiled) {
        let filesystem = &scene.inputs.settings.filesystem;
        for entry in &filesystem.deny_read {
            let why = setting("filesystem.denyRead", entry);
            let readings = scene.readings(entry, Effect::Deny);
            for path in &readings.paths {
                out.deny_read(&scene.host.follow(path), path, scene.host, &why);
            }
            if readings.unanchored {
                out.warnings.insert(unanchored(&why));
            }
            for mut anchored in readings.patterns {
                if is_own_tree(&anchored.start) {
                    out.notes.insert(format!("{why}: the sandbox has a /proc and a /dev of its own"));
                    continue;
                }
                match scene.seek(search, &anchored, Links::Followed) {
                    Ok((id, links)) => {
                        out.rules.keep_links(&links, &why);
                        self.denies.insert(id, Sought { why: why.clone(), contents: anchored.contents });
                        if anchored.contents {
                            // What links in there lead to lies elsewhere and is denied as well.
                            anchored.pattern = anchored.pattern.contents();
                            let id = scene.seek(search, &anchored, Links::Alone);
                            self.denies
                                .extend(id.map(|(id, _)| (id, Sought { why: why.clone(), contents: false })));
                        }
                    }
                    Err(lookup) => {
                        out.rules.keep_links(&lookup.links, &why);
                        // What cannot be looked at may hold a match.
                        if let Found::Unknown(above) = lookup.found {
                            out.hide(&above, &why);
                        }
                    }
                }
            }
        }
        for entry in &filesystem.allow_read {
            let why = setting("filesystem.allowRead", entry);
            let readings = scene.readings(entry, Effect::Allow);
            self.allowed_paths.extend(readings.paths.into_iter().map(|path| (path, why.clone())));
            if readings.unanchored {
                out.warnings.insert(unanchored(&why));
            }
            for anchored in readings.patterns {
                if let Ok((id, _)) = scene.seek(search, &anchored, Links::AsTheyAre) {
                    self.allows.insert(id, Sought { why: why.clone(), contents: anchored.contents });
                }
            }
        }
    }

    /// Denies what the patterns match, and expands a denied `/`.
    pub(super) fn add_found_denies(&mut self, scene: Scene<'_>, findings: &Findings, out: &mut Compiled) {
        for hit in &findings.hits {
            let Some(sought) = self.denies.get(&hit.pattern) else { continue };
            if !sought.contents {
                out.rules.keep_links(&hit.links, &sought.why);
                deny_hit(scene, &hit.path, hit.kind, &sought.why, out);
            } else if let Some(directory) = full_directory(scene, hit) {
                out.rules.keep_links(&hit.links, &sought.why);
                deny_hit(scene, &hit.path, hit.kind, &sought.why, out);
                self.denied_contents
                    .entry(directory)
                    .and_modify(|why| *why = why.clone().min(sought.why.clone()))
                    .or_insert_with(|| sought.why.clone());
            }
        }
        for Unsearchable { pattern, directory, links } in &findings.unsearchable {
            if let Some(sought) = self.denies.get(pattern) {
                out.rules.keep_links(links, &sought.why);
                out.hide(directory, &sought.why);
            }
        }
        self.expand_root(scene, out);
    }

    /// Allows paths and matches, and denies again what a `/**` denies beneath them.
    pub(super) fn add_allows(&self, scene: Scene<'_>, findings: &Findings, out: &mut Compiled) {
        let mut wanted: Vec<(&Path, &Reason)> =
            self.allowed_paths.iter().map(|(path, why)| (path.as_path(), why)).collect();
        let mut with_contents: BTreeMap<PathBuf, Reason> = BTreeMap::new();
        for hit in &findings.hits {
            let Some(sought) = self.allows.get(&hit.pattern) else { continue };
            if sought.contents && hit.kind != Kind::Directory {
                continue;
            }
            if sought.contents {
                let why = with_contents.entry(hit.path.clone()).or_insert_with(|| sought.why.clone());
                *why = why.clone().min(sought.why.clone());
            }
            wanted.push((&hit.path, &sought.why));
        }
        let links = self.add_places(scene, wanted, out);
        self.add_links(scene, links, out);
        allow_contents(&with_contents, out);
        self.deny_contents(scene, &with_contents, out);
    }

    /// Shows what is not a link. All are judged by the denies alone, so that none depends on another. Gives the links.
    fn add_places<'a>(
        &self,
        scene: Scene<'_>,
        wanted: Vec<(&Path, &'a Reason)>,
        out: &mut Compiled,
    ) -> Vec<(PathBuf, &'a Reason)> {
        let carve_outs = CarveOuts { scene, rules: &out.rules, denied_contents: &self.denied_contents };
        let judged: Vec<_> = wanted.into_iter().map(|(path, why)| (carve_outs.place(path), why)).collect();
        let mut links = Vec::new();
        for (carve_out, why) in judged {
            match carve_out {
                Ok(CarveOut::Place(path, kind)) => {
                    let node = out.rules.node(&path);
                    node.kind = Some(kind);
                    say(&mut node.allow_read, why);
                }
                Ok(CarveOut::Link(link)) => links.push((link, why)),
                Err(note) => drop(out.notes.insert(format!("{why}: {note}"))),
            }
        }
        links
    }

    /// Shows what links lead to, under their names.
    fn add_links(&self, scene: Scene<'_>, links: Vec<(PathBuf, &Reason)>, out: &mut Compiled) {
        let carve_outs = CarveOuts { scene, rules: &out.rules, denied_contents: &self.denied_contents };
        let judged: Vec<_> =
            links.into_iter().map(|(link, why)| (carve_outs.target(&link), link, why)).collect();
        for (target, link, why) in judged {
            match target {
                Ok(Some((target, kind))) => {
                    let node = out.rules.node(&link);
                    node.kind = Some(kind);
                    if node.shown.as_ref().is_none_or(|(_, kept)| why < kept) {
                        node.shown = Some((target, why.clone()));
                    }
                }
                Ok(None) => {}
                Err(note) => drop(out.notes.insert(format!("{why}: {note}"))),
            }
        }
    }

    /// Denies what lies directly in `/` where that is denied as a whole, but for the trees of the kernel. A link
    /// there needs nothing: what it leads to is denied where it is.
    fn expand_root(&self, scene: Scene<'_>, out: &mut Compiled) {
        let root = out.rules.node(Path::new("/"));
        let Some(why) = root.deny_read.take() else { return };
        let names_root = |path: &Path| path == Path::new("/");
        if root.allow_write.is_some() || self.allowed_paths.iter().any(|(path, _)| names_root(path)) {
            return;
        }
        let all = Path::new("/");
        // Nothing lies above it that could be hidden in its place.
        let entries = scene.host.entries(all).inspect_err(|error| scene.host.refuse(all, error));
        for entry in entries.into_iter().flatten() {
            let path = entry.path();
            let Ok(metadata) = scene.host.metadata(&path) else { continue };
            if !metadata.is_symlink() && !["/proc", "/dev", "/sys"].iter().any(|tree| path == Path::new(tree))
            {
                let node = out.rules.node(&path);
                node.kind = Some(Kind::of(&metadata));
                say(&mut node.deny_read, &why);
            }
        }
    }

    fn deny_contents(&self, scene: Scene<'_>, allowed: &BTreeMap<PathBuf, Reason>, out: &mut Compiled) {
        let mut denied = Vec::new();
        for (directory, why) in &self.denied_contents {
            for (path, node) in out.rules.nodes_within(directory) {
                let opened = node.allow_read.is_some() || node.allow_write.is_some();
                if !opened || allowed.keys().any(|allowed| path.starts_with(allowed)) {
                    continue;
                }
                for entry in scene.host.entries(path).into_iter().flatten() {
                    if let Ok(metadata) = scene.host.metadata(&entry.path()) {
                        denied.push((entry.path(), Kind::of(&metadata), why));
                    }
                }
            }
        }
        for (path, kind, why) in denied {
            deny_hit(scene, &path, kind, why, out);
        }
    }
}

/// A pattern that goes on with `/**` names every entry of what it matches, and so lifts what is denied there.
fn allow_contents(allowed: &BTreeMap<PathBuf, Reason>, out: &mut Compiled) {
    for (directory, why) in allowed {
        let denied = out.rules.nodes_within(directory).filter(|(_, node)| node.deny_read.is_some());
        let denied: Vec<PathBuf> = denied.map(|(path, _)| path.to_path_buf()).collect();
        for path in denied {
            say(&mut out.rules.node(&path).allow_read, why);
        }
    }
}

/// Denies what a pattern matches. A link is denied where it leads to, if it leads anywhere.
fn deny_hit(scene: Scene<'_>, path: &Path, kind: Kind, why: &Reason, out: &mut Compiled) {
    if kind != Kind::Link {
        let lookup = Lookup { found: Found::There(path.into(), kind), links: Vec::new() };
        return out.deny_read(&lookup, path, scene.host, why);
    }
    let mut lookup = scene.host.follow(path);
    if matches!(lookup.found, Found::Unknown(_)) {
        // What it leads to may belong to other rules: only its own name is denied.
        lookup = Lookup { found: Found::There(path.into(), Kind::Link), links: Vec::new() };
    }
    out.deny_read(&lookup, path, scene.host, why);
}

/// The directory that a match of a pattern with `/**` stands for. An empty one needs no mount: nothing in it
/// matches. One behind a link always gets it.
fn full_directory(scene: Scene<'_>, hit: &Hit) -> Option<PathBuf> {
    match hit.kind {
        Kind::Directory => {
            let empty = scene.host.entries(&hit.path).is_ok_and(|entries| entries.is_empty());
            (!empty).then(|| hit.path.clone())
        }
        Kind::Link => match scene.host.follow(&hit.path).found {
            Found::There(path, Kind::Directory) => Some(path),
            _ => None,
        },
        Kind::File => None,
    }
}

/// What to say of a pattern that no directory starts.
pub(super) fn unanchored(why: &Reason) -> String {
    format!(
        "{why}: a pattern with a wildcard in its first component is not enforced; name a directory to start from"
    )
}
