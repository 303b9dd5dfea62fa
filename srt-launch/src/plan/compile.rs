//! From the settings to [`Rules`]: entries are read, paths resolved, patterns looked up in one shared walk.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use srt_shared::settings::PathEntry;

use super::{
    git_config::Obeyed,
    host::{Creation, Found, Host, Kind, Lookup, absolute},
    model::{Inputs, Placeholder, Reason},
    protected::Protected,
    readings::{Anchored, Bases, Effect, Readings, split_base},
    reads::Reads,
    rules::{Rules, say},
    temp_dir::TempDir,
    walk::{Findings, Links, PatternId, Search},
    writes::Writes,
};

/// The rules, and what has to be made and said on the way to them.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pub(super) rules: Rules,
    pub(super) placeholders: BTreeSet<Placeholder>,
    pub(super) temp_dir: Option<TempDir>,
    pub(super) warnings: BTreeSet<String>,
    pub(super) notes: BTreeSet<String>,
}

pub(super) const SETTINGS: Reason = Reason::Rule("the settings file decides over the next run");

const BASES: Reason = Reason::Rule("entries start from the home or the working directory, where it leads to");

/// What every step needs to look at.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) host: &'a Host,
    /// Where `~` and relative entries start, resolved: both are the caller's word, links on the way included.
    pub(super) bases: Bases<'a>,
    /// The links that led to these.
    pub(super) base_links: &'a [PathBuf],
    /// What the user's own configuration makes git obey everywhere.
    pub(super) user_git: &'a Obeyed,
}

/// Compiles the settings. The order of their entries makes no difference.
pub(super) fn compile(scene: Scene<'_>) -> Compiled {
    let mut out = Compiled::default();
    let filesystem = &scene.inputs.settings.filesystem;
    if filesystem.disabled {
        out.rules.node(Path::new("/")).allow_write =
            Some(Reason::Setting { key: "filesystem.disabled", entry: "true".into() });
        out.add_temp_dir(scene);
        out.add_own(scene);
        out.keep_kernel_tree();
        out.tell_writable_programs(scene);
        return out;
    }
    let mut writes = Writes::default();
    let mut reads = Reads::default();
    let mut search = Search::default();

    // Whoever replaces one has every entry below `~`, and every relative one, mean another place in the next run.
    out.rules.keep_links(scene.base_links, &BASES);
    out.add_temp_dir(scene);
    writes.add_allowed(scene, &mut out);
    writes.add_denied(scene, &mut search, &mut out);
    writes.seek_protected(scene, &mut search, &mut out);
    reads.add_entries(scene, &mut search, &mut out);

    let findings = search.run(scene.host);
    reads.add_found_denies(scene, &findings, &mut out);
    writes.add_found(scene, &findings, &mut out);
    out.add_own(scene);
    reads.add_allows(scene, &findings, &mut out);
    writes.add_absent(scene, &mut out);
    writes.tell_refused(&mut out);
    out.keep_kernel_tree();
    out.tell_not_entered(&findings);
    out.tell_writable_programs(scene);
    out.tell_overruled();
    out
}

impl Compiled {
    /// Denies reading what is at the end of a lookup, wherever that really is.
    pub(super) fn deny_read(&mut self, lookup: &Lookup, spelled: &Path, host: &Host, why: &Reason) {
        self.rules.keep_links(&lookup.links, why);
        match &lookup.found {
            // Hiding the root itself would leave nothing to run: what holds the link that leads there has to do.
            Found::There(path, _) if path == Path::new("/") && !lookup.links.is_empty() => {
                match host.follow_parents(spelled).there().and_then(Path::parent) {
                    Some(above) => self.hide(above, why),
                    None => self.hide(Path::new("/"), why),
                }
            }
            Found::There(path, _) if is_own_tree(path) && !tells_of_the_host(path) => {
                self.notes.insert(format!(
                    "{why}: the sandbox has a /proc and a /dev of its own; nothing is hidden"
                ));
            }
            Found::There(path, kind) => {
                let node = self.rules.node(path);
                node.kind = Some(*kind);
                say(&mut node.deny_read, why);
            }
            Found::Unknown(above) => self.hide(above, why),
            Found::Missing(..) | Found::BelowFile(_) | Found::Circle => {
                self.notes.insert(format!("{why}: nothing is there, so nothing is hidden"));
            }
        }
    }

    /// Hides a directory in place of something in it that cannot be looked at.
    pub(super) fn hide(&mut self, directory: &Path, why: &Reason) {
        if directory == Path::new("/") {
            self.warnings.insert(format!(
                "{why}: cannot be looked at and is not enforced; only / itself lies above it"
            ));
            return;
        }
        self.notes.insert(format!("{why}: cannot be looked at; all of {directory:?} is hidden in its place"));
        let node = self.rules.node(directory);
        node.kind = Some(Kind::Directory);
        say(&mut node.hide, why);
    }

    /// The directory for temporary files, which every command has.
    fn add_temp_dir(&mut self, scene: Scene<'_>) {
        const WHY: Reason = Reason::Rule("the directory for temporary files is always writable");
        self.temp_dir = TempDir::choose(scene.host);
        let Some(temp_dir) = &self.temp_dir else {
            self.warnings.insert(
                "no safe directory for temporary files can be had in /tmp; TMPDIR is left as it is".into(),
            );
            return;
        };
        let node = self.rules.node(&temp_dir.path);
        node.kind = Some(Kind::Directory);
        say(&mut node.allow_write, &WHY);
    }

    /// What is ours: state no command may see, secrets of the settings, the settings file itself.
    fn add_own(&mut self, scene: Scene<'_>) {
        const STATE: Reason = Reason::Rule("state of running sandboxes is hidden");
        const CA_KEY: Reason = Reason::Rule("the key of the signing authority is hidden");
        const LOGIN: Reason = Reason::Rule("a settings file with a proxy's password is hidden");
        let Inputs { settings, settings_file, own_state, .. } = scene.inputs;
        let cwd = scene.bases.cwd;
        for path in own_state {
            self.hide_own(scene, path, &STATE);
        }
        if let Some(ca) = settings.network.tls_terminate.as_ref().and_then(|tls| tls.ca.as_ref()) {
            self.hide_own(scene, &scene.absolute(&ca.key), &CA_KEY);
        }
        let Some(file) = settings_file.as_ref().map(|file| absolute(cwd, file)) else { return };
        let proxy = settings.network.parent_proxy.as_ref();
        if proxy.is_some_and(|proxy| proxy.http.iter().chain(&proxy.https).any(|url| url.login.is_some())) {
            self.hide_own(scene, &file, &LOGIN);
        }
        let lookup = scene.host.follow(&file);
        if let Found::There(path, kind) = &lookup.found
            && !is_own_tree(path)
        {
            self.rules.keep_links(&lookup.links, &SETTINGS);
            let node = self.rules.node(path);
            node.kind = Some(*kind);
            say(&mut node.deny_write, &SETTINGS);
        }
    }

    fn hide_own(&mut self, scene: Scene<'_>, path: &Path, why: &Reason) {
        let lookup = scene.host.follow(path);
        if let Found::There(path, kind) = &lookup.found {
            self.rules.keep_links(&lookup.links, why);
            let node = self.rules.node(path);
            node.kind = Some(*kind);
            say(&mut node.hide, why);
        }
    }

    /// Where everything is writable, the switches of the kernel are not; see [`Rules::access`].
    fn keep_kernel_tree(&mut self) {
        if self.rules.get(Path::new("/")).is_some_and(|root| root.allow_write.is_some()) {
            self.rules.node(Path::new("/sys")).kind = Some(Kind::Directory);
        }
    }

    fn tell_not_entered(&mut self, findings: &Findings) {
        for mount in &findings.not_entered {
            self.warnings.insert(format!(
                "{mount:?} is a remote mount and is not searched: patterns and protected names hold there only where \
                 an entry of filesystem names it"
            ));
        }
    }

    fn tell_writable_programs(&mut self, scene: Scene<'_>) {
        let Some(folder) = &scene.inputs.programs else { return };
        if self.rules.access(folder).writable() && scene.could_change(folder) {
            self.warnings.insert(format!(
                "the command can write to {}, where srt itself is: it could replace what holds the next one",
                folder.display()
            ));
        }
    }

    fn tell_overruled(&mut self) {
        for (path, node) in self.rules.nodes() {
            let Some(allow) = node.allow_write.as_ref() else { continue };
            if let Some((_, denied)) = self.rules.nearest(path, |node| node.deny_write.is_some()) {
                let deny = denied.deny_write.as_ref().expect("invariant: asked for above");
                self.notes.insert(format!("{allow}: read-only all the same, because of {deny}"));
            }
        }
    }
}

impl<'a> Scene<'a> {
    pub(super) fn readings(&self, entry: &PathEntry, effect: Effect) -> Readings {
        Readings::of(entry, self.bases, effect, self.host)
    }

    /// A path as an entry spells it, absolute.
    pub(super) fn absolute(&self, text: &str) -> PathBuf {
        let (base, text) = split_base(text, self.bases);
        absolute(base, Path::new(text))
    }

    /// Starts the search for a pattern where its directory really is. Gives the links that lead there.
    ///
    /// # Errors
    /// Where there is nothing to search: what the directory's path leads to.
    pub(super) fn seek(
        &self,
        search: &mut Search,
        anchored: &Anchored,
        links: Links,
    ) -> Result<(PatternId, Vec<PathBuf>), Lookup> {
        let lookup = self.host.follow(&anchored.start);
        // A deny need not look where the sandbox has a tree of its own; an allow may show a part of it again.
        let searched = |start: &Path| links == Links::AsTheyAre || !is_own_tree(start);
        match &lookup.found {
            Found::There(start, Kind::Directory) if searched(start) => {
                let id = search.add_pattern(start.clone(), anchored.pattern.clone(), links);
                Ok((id, lookup.links))
            }
            _ => Err(lookup),
        }
    }

    /// Whether its owner, this user, could make a directory writable or searchable that is not now.
    pub(super) fn could_change(&self, directory: &Path) -> bool {
        self.host.creation(directory) != Creation::Refused
    }

    pub(super) fn protected(&self) -> Protected<'a> {
        Protected {
            host: self.host,
            home: self.bases.home,
            user_git: self.user_git,
            allow_git_config: self.inputs.settings.filesystem.allow_git_config,
        }
    }
}

/// The reason that an entry of a list is.
pub(super) fn setting(key: &'static str, entry: &PathEntry) -> Reason {
    Reason::Setting { key, entry: entry.path.clone() }
}

/// Whether the sandbox has a tree of its own there, so that a path does not name what it names on the host.
pub(super) fn is_own_tree(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev")
}

/// Whether a path in the sandbox's own `/proc` is about the machine, not about a process.
fn tells_of_the_host(path: &Path) -> bool {
    path.strip_prefix("/proc").is_ok_and(|rest| {
        rest.iter().next().and_then(OsStr::to_str).is_some_and(|name| {
            !matches!(name, "self" | "thread-self") && !name.bytes().all(|b| b.is_ascii_digit())
        })
    })
}
