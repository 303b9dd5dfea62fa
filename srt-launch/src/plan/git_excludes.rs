//! Keeps placeholders out of what git takes for new files of the project.
//!
//! A list for all repositories would hide real files of the same name in others: in those below the working directory,
//! and in those that the command makes. So each repository has its own, by a condition that names its git directory.

use std::{
    collections::BTreeSet,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    compile::{Compiled, Scene},
    git_config::{excludes_file, read_small},
    host::{Found, Kind, absolute},
    model::{PROVIDED, Placeholder, Provided},
};

/// Name of the configuration among what the launcher provides.
pub(super) const CONFIG: &str = "git-config";
/// Folder of the lists there.
const EXCLUDES: &str = "git-excludes";
/// More than any excludes file of a person; a larger one is left out.
const MAX_EXCLUDES: u64 = 1 << 20;
/// Folders with placeholders where a repository may be made: more than anybody starts one in during one run.
const MAX_WITHOUT_REPOSITORY: usize = 64;

/// A configuration, and for each repository with placeholders in its work tree what it includes and a list.
pub(super) fn excludes(scene: Scene<'_>, compiled: &Compiled) -> Vec<Provided> {
    let all = || compiled.placeholders.iter().filter_map(|found| Some((found.path.parent()?, found)));
    // Once for each folder: most placeholders share one.
    let mut folders: BTreeSet<&Path> = all().map(|(folder, _)| folder).collect();
    folders.retain(|folder| !in_git_directory(folder, scene));
    let placeholders: Vec<&Placeholder> =
        all().filter(|(folder, _)| folders.contains(folder)).map(|(_, found)| found).collect();
    let mut conditions = Vec::new();
    let mut provided = Vec::new();
    for top in tops(scene, &folders) {
        let lines: Vec<Vec<u8>> = placeholders.iter().filter_map(|found| line(found, &top)).collect();
        let directory = git_directory(scene, &top);
        let Some(pattern) = pattern(&directory).filter(|_| !lines.is_empty()) else { continue };
        let mut list = own_excludes(scene, compiled, &directory).unwrap_or_default();
        if !list.is_empty() && !list.ends_with(b"\n") {
            list.push(b'\n');
        }
        list.extend(lines.concat());
        let name = format!("{EXCLUDES}/{}", provided.len() / 2);
        let included = format!("{name}.config");
        conditions.extend([b"[includeIf \"gitdir:", &pattern[..], b"\"]\n\tpath = "].concat());
        conditions.extend(format!("{included}\n").into_bytes());
        let config = format!("[core]\n\texcludesFile = {PROVIDED}/{name}\n").into_bytes();
        provided.push(Provided { name, contents: list, bind_over: Vec::new() });
        provided.push(Provided { name: included, contents: config, bind_over: Vec::new() });
    }
    if !provided.is_empty() {
        provided.push(Provided { name: CONFIG.into(), contents: conditions, bind_over: Vec::new() });
    }
    provided
}

/// Git looks for new files in work trees only.
fn in_git_directory(folder: &Path, scene: Scene<'_>) -> bool {
    let mut above = folder.ancestors().filter(|above| *above != Path::new("/"));
    above.any(|above| above.ends_with(".git") || scene.protected().is_git_directory(above))
}

/// The tops of the work trees with placeholders in these folders. A repository may also be made during the run: where there is
/// none yet, and where the command starts.
fn tops(scene: Scene<'_>, folders: &BTreeSet<&Path>) -> BTreeSet<PathBuf> {
    let mut tops = BTreeSet::new();
    let mut without = BTreeSet::new();
    for folder in folders {
        let top = folder.ancestors().find(|top| scene.host.metadata(&top.join(".git")).is_ok());
        if top.is_none() || *folder == scene.bases.cwd {
            without.insert(folder.to_path_buf());
        }
        tops.extend(top.map(Path::to_path_buf));
    }
    tops.extend(without.into_iter().take(MAX_WITHOUT_REPOSITORY));
    tops
}

/// The git directory of a work tree as git will name it: a worktree or submodule has it elsewhere.
fn git_directory(scene: Scene<'_>, top: &Path) -> PathBuf {
    let dot_git = top.join(".git");
    match scene.host.follow(&dot_git).found {
        Found::There(directory, Kind::Directory) => directory,
        Found::There(file, _) => scene.protected().pointer(&file, b"gitdir:").unwrap_or(dot_git),
        _ => dot_git,
    }
}

/// The directory as a condition of an include names it: a pattern (gitignore(5)), within quotes. One with a line break
/// has no place in a configuration.
fn pattern(directory: &Path) -> Option<Vec<u8>> {
    let mut pattern = Vec::new();
    for &b in directory.as_os_str().as_bytes() {
        match b {
            b'\n' => return None,
            b'*' | b'?' | b'[' => pattern.extend([b'\\', b'\\', b]),
            b'\\' => pattern.extend(br"\\\\"),
            b'"' => pattern.extend(br#"\""#),
            b => pattern.push(b),
        }
    }
    Some(pattern)
}

/// What the user's configuration of git excludes already, if the command may read it.
fn own_excludes(scene: Scene<'_>, compiled: &Compiled, directory: &Path) -> Option<Vec<u8>> {
    let common = scene.protected().pointer(&directory.join("commondir"), b"");
    let config = common.as_deref().unwrap_or(directory).join("config");
    let file = excludes_file(&scene.inputs.env, scene.bases.home, &[config], scene.host)?;
    let lookup = scene.host.follow(&absolute(scene.bases.cwd, &file));
    let Found::There(file, _) = lookup.found else { return None };
    let readable = compiled.rules.access(&file).readable;
    readable.then(|| read_small(&file, MAX_EXCLUDES, scene.host)).flatten()
}

/// A line for one placeholder below the top of a work tree, anchored there (gitignore(5)). A name with a line break has
/// none.
fn line(placeholder: &Placeholder, top: &Path) -> Option<Vec<u8>> {
    let name = placeholder.path.strip_prefix(top).ok()?.as_os_str().as_bytes();
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
    if placeholder.directory {
        line.push(b'/');
    }
    line.push(b'\n');
    Some(line)
}
