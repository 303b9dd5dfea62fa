//! Lets `ssh` start for an ordinary user.

use std::{
    collections::{HashSet, VecDeque},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    compile::{Compiled, Scene},
    git_config::read_small,
    host::Found,
    model::Provided,
    ssh_include::{included, matches},
};

/// More than any configuration of a machine.
const MAX_CONFIG: u64 = 1 << 20;
/// As `ssh` itself (`READCONF_MAX_DEPTH`).
const MAX_DEPTH: usize = 16;
/// The machine's configuration, and where relative names in it start.
const SYSTEM: (&str, &str) = ("/etc/ssh/ssh_config", "/etc/ssh");

/// Copies of what the machine's and the user's configuration of `ssh` include. Only one user is mapped inside, so that
/// files of root's seem to belong to nobody, and `ssh` refuses to include what belongs neither to root nor to its user.
pub(super) fn ssh_configuration(scene: Scene<'_>, compiled: &Compiled) -> Vec<Provided> {
    if scene.host.uid() == 0 {
        return Vec::new();
    }
    let own = scene.bases.home.join(".ssh");
    let own = (own.join("config"), own.as_path());
    let system = (SYSTEM.0.into(), Path::new(SYSTEM.1));
    let mut copies = Vec::new();
    // A file that both include is read for both: relative names in it start elsewhere.
    let mut seen: HashSet<(PathBuf, &Path)> = HashSet::new();
    let mut pending = VecDeque::from([(system, 0), (own, 0)]);
    while let Some(((file, base), depth)) = pending.pop_front() {
        let Some((place, contents, is_own)) = read(&file, scene, compiled) else { continue };
        if !seen.insert((place.clone(), base)) {
            continue;
        }
        if depth < MAX_DEPTH {
            for pattern in included(&contents, base, scene.bases.home) {
                let files = matches(&pattern, scene.host).into_iter();
                pending.extend(files.map(|file| ((file, base), depth + 1)));
            }
        }
        if !is_own {
            copies.extend(copy(place, contents));
        }
    }
    copies.sort_by(|a: &Provided, b| a.name.cmp(&b.name));
    copies.dedup_by(|a, b| a.name == b.name);
    copies
}

/// Where a file really is, its contents, and whether it is the user's, if the command may read it and `ssh` would.
fn read(file: &Path, scene: Scene<'_>, compiled: &Compiled) -> Option<(PathBuf, Vec<u8>, bool)> {
    let Found::There(place, _) = scene.host.follow(file).found else { return None };
    let metadata = scene.host.metadata(&place).ok()?;
    // What others may write `ssh` does not take anyway.
    if metadata.mode() & 0o022 != 0 || !compiled.rules.access(&place).readable {
        return None;
    }
    let contents = read_small(&place, MAX_CONFIG, scene.host)?;
    Some((place, contents, metadata.uid() == scene.host.uid()))
}

fn copy(place: PathBuf, contents: Vec<u8>) -> Option<Provided> {
    let name = format!("ssh{}", place.to_str()?);
    Some(Provided { name, contents, bind_over: vec![place] })
}
