//! What git is told inside: repositories it may trust, and that placeholders are not files of the project.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    compile::{Compiled, Scene},
    git_config::excludes_file,
    host::{Found, absolute},
    model::{PROVIDED, Provided},
};

/// Name of the file of excludes among what the launcher provides.
const EXCLUDES: &str = "git-excludes";
/// More than any excludes file of a person; a larger one is left out.
const MAX_EXCLUDES: u64 = 1 << 20;

/// Configuration handed over in the environment, which git takes for what is typed at it (git-config(1),
/// `GIT_CONFIG_COUNT`): the one place where it accepts `safe.directory` besides the user's own files.
#[derive(Debug, Default)]
pub(super) struct GitSetup {
    config: Vec<(&'static str, OsString)>,
    pub(super) provided: Option<Provided>,
}

impl GitSetup {
    pub(super) fn of(scene: Scene<'_>, compiled: &Compiled) -> Self {
        let mut setup = Self::default();
        for directory in &scene.inputs.settings.git.safe_directories {
            let value = match directory.as_str() {
                "*" | "" => directory.into(),
                path => scene.absolute(path).into(),
            };
            setup.config.push(("safe.directory", value));
        }
        if let Some(contents) = excludes(scene, compiled) {
            setup.config.push(("core.excludesFile", Path::new(PROVIDED).join(EXCLUDES).into()));
            setup.provided = Some(Provided { name: EXCLUDES.into(), contents, bind_over: Vec::new() });
        }
        setup
    }

    /// Adds the configuration behind what the caller hands over the same way.
    pub(super) fn add_to(&self, env: &mut BTreeMap<OsString, OsString>) {
        if self.config.is_empty() {
            return;
        }
        let count =
            env.get(Path::new("GIT_CONFIG_COUNT").as_os_str()).and_then(|count| count.to_str()?.parse().ok());
        let first: usize = count.unwrap_or(0);
        for (i, (key, value)) in self.config.iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{}", first + i).into(), key.into());
            env.insert(format!("GIT_CONFIG_VALUE_{}", first + i).into(), value.clone());
        }
        env.insert("GIT_CONFIG_COUNT".into(), (first + self.config.len()).to_string().into());
    }
}

/// The user's own excludes, then one line for each placeholder that git would take for a new file.
fn excludes(scene: Scene<'_>, compiled: &Compiled) -> Option<Vec<u8>> {
    let files: Vec<&Path> =
        compiled.placeholders.iter().filter(|p| !p.directory).map(|p| p.path.as_path()).collect();
    let mut repositories = BTreeSet::new();
    let mut lines = BTreeSet::new();
    for file in files {
        let Some(parent) = file.parent() else { continue };
        // A repository may also be made during the run, or be told its work tree by an option.
        lines.insert(line(file, parent));
        if let Some(top) = parent.ancestors().find(|top| scene.host.metadata(&top.join(".git")).is_ok()) {
            lines.insert(line(file, top));
            repositories.insert(top.to_path_buf());
        }
    }
    if lines.is_empty() {
        return None;
    }
    let mut contents = own_excludes(scene, compiled, &repositories).unwrap_or_default();
    if !contents.is_empty() && !contents.ends_with(b"\n") {
        contents.push(b'\n');
    }
    for line in lines.into_iter().flatten() {
        contents.extend(line);
        contents.push(b'\n');
    }
    Some(contents)
}

/// What the user's configuration of git excludes already, if the command may read it.
fn own_excludes(scene: Scene<'_>, compiled: &Compiled, repositories: &BTreeSet<PathBuf>) -> Option<Vec<u8>> {
    let configs: Vec<PathBuf> = repositories.iter().map(|top| top.join(".git/config")).collect();
    let file = excludes_file(&scene.inputs.env, scene.bases.home, &configs, scene.host)?;
    let lookup = scene.host.follow(&absolute(scene.bases.cwd, &file));
    let Found::There(file, _) = lookup.found else { return None };
    let metadata =
        fs::metadata(&file).ok().filter(|metadata| metadata.is_file() && metadata.len() <= MAX_EXCLUDES);
    metadata.filter(|_| compiled.rules.access(&file).readable).and_then(|_| fs::read(&file).ok())
}

/// A pattern for one file, anchored at the top of a work tree (gitignore(5)). A name with a line break has none.
fn line(file: &Path, top: &Path) -> Option<Vec<u8>> {
    let name = file.strip_prefix(top).ok()?.as_os_str().as_bytes();
    if name.contains(&b'\n') {
        return None;
    }
    let mut line = vec![b'/'];
    for &b in name {
        if matches!(b, b'*' | b'?' | b'[' | b'\\' | b' ') {
            line.push(b'\\');
        }
        line.push(b);
    }
    Some(line)
}
