//! Lets `ssh` start for an ordinary user.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    compile::{Compiled, Scene},
    host::Found,
    model::Provided,
};

/// More than any configuration of a machine.
const MAX_CONFIG: u64 = 1 << 20;

/// Copies of the machine's configuration of `ssh`. Only one user is mapped inside, so that the files seem to belong
/// to nobody, and `ssh` refuses to include what belongs neither to root nor to its user.
pub(super) fn ssh_configuration(scene: Scene<'_>, compiled: &Compiled) -> Vec<Provided> {
    if scene.host.uid() == 0 {
        return Vec::new();
    }
    let mut files = vec![PathBuf::from("/etc/ssh/ssh_config")];
    files.extend(
        fs::read_dir("/etc/ssh/ssh_config.d").into_iter().flatten().flatten().map(|entry| entry.path()),
    );
    files.sort();
    files.into_iter().filter_map(|file| copy(&file, scene, compiled)).collect()
}

fn copy(file: &Path, scene: Scene<'_>, compiled: &Compiled) -> Option<Provided> {
    let Found::There(place, _) = scene.host.follow(file).found else { return None };
    let metadata = fs::metadata(&place).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_CONFIG || !compiled.rules.access(&place).readable {
        return None;
    }
    let name = file.strip_prefix("/etc").ok()?.to_str()?.into();
    Some(Provided { name, contents: fs::read(&place).ok()?, bind_over: vec![place] })
}
