//! `denyRead` and `allowRead`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    carve_out::{CarveOut, CarveOuts, Refusal},
    compile::{Compiled, Scene, is_own_tree, setting},
    doubtful::Doubt,
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
    allows: BTreeMap<PatternId, Allowed>,
    allowed_paths: Vec<(PathBuf, Reason)>,
    /// Directories denied by a pattern that goes on with `/**`: in them every entry is denied for itself.
    denied_contents: BTreeMap<PathBuf, Reason>,
    doubts: Vec<Doubt>,
}

#[derive(Debug, Clone)]
struct Sought {
    why: Reason,
    contents: bool,
}

/// A pattern of `allowRead`.
#[derive(Debug)]
struct Allowed {
    why: Reason,
    contents: bool,
    /// The links that lead to where it starts: its matches are told without them.
    through: Vec<PathBuf>,
}

/// A path that `allowRead` names or matches.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    path: &'a Path,
    through: &'a [PathBuf],
    contents: bool,
    why: &'a Reason,
}

impl Reads {
    /// Reads the entries: denied paths at once, patterns into the search, allowed paths for later.
    pub(super) fn add_entries(&mut self, scene: Scene<'_>, search: &mut Search, out: &mut Compiled) {
        let filesystem = &scene.inputs.settings.filesystem;
        for entry in &filesystem.deny_read {
            let why = setting("filesystem.denyRead", entry);
            let readings = scene.readings(entry, Effect::Deny);
            let mut doubt = Doubt::of(scene, entry, &readings, &why);
            for path in &readings.paths {
                out.deny_read(&scene.host.follow(path), path, scene.host, &why);
            }
            if readings.unanchored {
                out.warnings.insert(unanchored(&why));
            }
            for mut anchored in readings.patterns {
                match scene.seek(search, &anchored, Links::Followed) {
                    Ok((id, links)) => {
                        out.rules.keep_links(&links, &why);
                        doubt.iter_mut().for_each(|doubt| doubt.patterns.push(id));
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
                        match lookup.found {
                            Found::There(place, _) | Found::Unknown(place) if is_own_tree(&place) => {
                                let note = "the sandbox has a /proc and a /dev of its own";
                                out.notes.insert(format!("{why}: {note}"));
                            }
                            // What cannot be looked at may hold a match.
                            Found::Unknown(above) => out.hide(&above, &why),
                            _ => {}
                        }
                    }
                }
            }
            self.doubts.extend(doubt);
        }
        for entry in &filesystem.allow_read {
            let why = setting("filesystem.allowRead", entry);
            let readings = scene.readings(entry, Effect::Allow);
            self.allowed_paths.extend(readings.paths.into_iter().map(|path| (path, why.clone())));
            if readings.unanchored {
                out.warnings.insert(unanchored(&why));
            }
            for anchored in readings.patterns {
                if let Ok((id, through)) = scene.seek(search, &anchored, Links::AsTheyAre) {
                    let why = why.clone();
                    self.allows.insert(id, Allowed { why, contents: anchored.contents, through });
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
        self.doubts.iter().for_each(|doubt| doubt.tell(findings, out));
        self.expand_root(scene, out);
    }

    /// Allows paths and matches, and denies again what a `/**` denies beneath them.
    pub(super) fn add_allows(&self, scene: Scene<'_>, findings: &Findings, out: &mut Compiled) {
        let mut wanted: Vec<Wanted<'_>> = Vec::new();
        for (path, why) in &self.allowed_paths {
            wanted.push(Wanted { path, through: &[], contents: false, why });
        }
        for hit in &findings.hits {
            let Some(Allowed { why, contents, through }) = self.allows.get(&hit.pattern) else { continue };
            if !contents || hit.kind == Kind::Directory {
                wanted.push(Wanted { path: &hit.path, through, contents: *contents, why });
            }
        }
        let judged = self.judge(scene, wanted, out);
        let mut links = Vec::new();
        let mut with_contents: BTreeMap<PathBuf, Reason> = BTreeMap::new();
        let mut refused = Vec::new();
        for (carve_out, wanted) in judged {
            let why = wanted.why;
            match carve_out {
                Ok(CarveOut::Place(path, kind)) => {
                    let node = out.rules.node(&path);
                    node.kind = Some(kind);
                    say(&mut node.allow_read, why);
                    if wanted.contents {
                        let first = with_contents.entry(path).or_insert_with(|| why.clone());
                        *first = first.clone().min(why.clone());
                    }
                }
                Ok(CarveOut::Link(link)) => links.push((link, why)),
                Err(refusal) => refused.push((refusal, why)),
            }
        }
        self.add_links(scene, links, &mut refused, out);
        allow_contents(&with_contents, out);
        self.deny_contents(scene, &with_contents, out);
        tell_refused(scene, refused, out);
    }

    /// What becomes of each wanted path. All are judged by the denies alone, so that none depends on another.
    fn judge<'a>(
        &self,
        scene: Scene<'_>,
        wanted: Vec<Wanted<'a>>,
        out: &Compiled,
    ) -> Vec<(Result<CarveOut, Refusal>, Wanted<'a>)> {
        let carve_outs = CarveOuts { scene, rules: &out.rules, denied_contents: &self.denied_contents };
        wanted.into_iter().map(|wanted| (carve_outs.place(wanted.path, wanted.through), wanted)).collect()
    }

    /// Shows what links lead to, under their names.
    fn add_links<'a>(
        &self,
        scene: Scene<'_>,
        links: Vec<(PathBuf, &'a Reason)>,
        refused: &mut Vec<(Refusal, &'a Reason)>,
        out: &mut Compiled,
    ) {
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
                Err(refusal) => refused.push((refusal, why)),
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
                node.kind = Some(Kind::of(metadata.file_type()));
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
                        denied.push((entry.path(), Kind::of(metadata.file_type()), why));
                    }
                }
            }
        }
        for (path, kind, why) in denied {
            deny_hit(scene, &path, kind, why, out);
        }
    }
}

/// Says what is not shown, as a warning where it is for fear of a planted link and makes a difference.
fn tell_refused(scene: Scene<'_>, refused: Vec<(Refusal, &Reason)>, out: &mut Compiled) {
    for (refusal, why) in refused {
        let (link, place) = match refusal {
            Refusal::Planted { link, place } => (link, place),
            Refusal::Note(note) => {
                out.notes.insert(format!("{why}: {note}"));
                continue;
            }
        };
        let target = scene.host.follow(&link);
        let target = target.there().unwrap_or(&place);
        let told = format!(
            "{why}: leads through the symbolic link {link:?} in a writable folder and is not shown; write the entry with \
             {target:?} in the place of the link if that is meant"
        );
        let told_where = if out.rules.access(&place).readable { &mut out.notes } else { &mut out.warnings };
        told_where.insert(told);
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
    if let Found::Unknown(closed) = &lookup.found
        && !scene.could_change(closed)
    {
        // What it leads to may belong to other rules, and the command cannot look at it either: only its own name is
        // denied.
        lookup = Lookup { found: Found::There(path.into(), Kind::Link), links: Vec::new() };
    }
    out.deny_read(&lookup, path, scene.host, why);
}

/// The directory that a match of a pattern with `/**` stands for. An empty one needs no mount: nothing in it
/// matches. One behind a link always gets it, and so does what its owner has closed above one.
fn full_directory(scene: Scene<'_>, hit: &Hit) -> Option<PathBuf> {
    match hit.kind {
        Kind::Directory => {
            let empty = scene.host.entries(&hit.path).is_ok_and(|entries| entries.is_empty());
            (!empty).then(|| hit.path.clone())
        }
        Kind::Link => match scene.host.follow(&hit.path).found {
            Found::There(path, Kind::Directory) => Some(path),
            Found::Unknown(closed) if scene.could_change(&closed) => Some(closed),
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
