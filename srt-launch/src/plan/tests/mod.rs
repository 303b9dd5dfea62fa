//! Plans over small trees, as assertions on data. Everything here holds for uid 0 and for an ordinary user.

mod doubtful;
mod environment;
mod order;
mod planted;
mod protected;
mod protected_git;
mod reads;
mod two_runs;
mod user_git;
mod walk;
mod writes;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use nix::unistd::geteuid;
use serde_json::{Value, json};
use srt_shared::settings::Settings;
use tempfile::TempDir;

use super::*;

/// A tree on disk with a home `h` and a working directory `w`.
pub(super) struct Tree {
    dir: TempDir,
    pub(super) inputs: Inputs,
}

/// A plan for a tree; paths in it are told relative to the tree.
pub(super) struct Planned {
    pub(super) plan: Plan,
    top: PathBuf,
}

impl Tree {
    /// Makes files (`a/b`), directories (`a/`) and links (`a -> b`), relative to `w` unless they start with `h/`.
    pub(super) fn new(entries: &[&str]) -> Self {
        Self::below(&std::env::temp_dir(), entries)
    }

    /// The same where every user may make one.
    pub(super) fn for_anybody(entries: &[&str]) -> Self {
        Self::below(Path::new("/tmp"), entries)
    }

    fn below(folder: &Path, entries: &[&str]) -> Self {
        let dir = tempfile::tempdir_in(folder).unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(top.join("h")).unwrap();
        fs::create_dir(top.join("w")).unwrap();
        let inputs = Inputs::new(Settings::default(), top.join("h"), top.join("w"), geteuid().as_raw());
        let tree = Self { dir, inputs };
        entries.iter().for_each(|entry| tree.make(entry));
        tree
    }

    pub(super) fn make(&self, entry: &str) {
        let (name, target) =
            entry.split_once(" -> ").map_or((entry, None), |(name, target)| (name, Some(target)));
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match target {
            Some(target) => symlink(target, path).unwrap(),
            None if name.ends_with('/') => fs::create_dir_all(path).unwrap(),
            None => fs::write(path, name).unwrap(),
        }
    }

    pub(super) fn top(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        if name == "h" || name.starts_with("h/") {
            self.top().join(name)
        } else {
            self.top().join("w").join(name)
        }
    }

    /// A plan for `filesystem` lists; those left out are empty.
    pub(super) fn plan(&self, lists: Value) -> Planned {
        self.plan_all(json!({ "filesystem": lists }))
    }

    /// A plan for settings of which anything may be left out. `TOP` in them stands for the tree.
    pub(super) fn plan_all(&self, mut settings: Value) -> Planned {
        for (part, lists) in [
            ("network", &["allowedDomains", "deniedDomains"][..]),
            ("filesystem", &["denyRead", "allowWrite", "denyWrite"]),
        ] {
            for list in lists {
                if settings[part][list].is_null() {
                    settings[part][list] = json!([]);
                }
            }
        }
        let top = self.top();
        let document = settings.to_string().replace("TOP", top.to_str().unwrap());
        let mut inputs = self.inputs.clone();
        inputs.settings = Settings::parse(document.as_bytes()).unwrap().settings;
        Planned { plan: Plan::compute(&inputs).unwrap(), top }
    }
}

impl Planned {
    /// The mounts within the tree in order, one line each; those on placeholders are left out.
    pub(super) fn mounts(&self) -> Vec<String> {
        let placeholders: Vec<&Path> = self.plan.placeholders.iter().map(|p| p.path.as_path()).collect();
        self.plan
            .mounts
            .iter()
            .filter(|mount| {
                mount.target.starts_with(&self.top) && !placeholders.contains(&mount.target.as_path())
            })
            .map(|mount| {
                let target = self.name(&mount.target);
                match &mount.kind {
                    MountKind::Pin => format!("pin {target}"),
                    MountKind::Writable => format!("writable {target}"),
                    MountKind::ReadOnly => format!("read-only {target}"),
                    MountKind::EmptyDir => format!("empty-dir {target}"),
                    MountKind::EmptyFile => format!("empty-file {target}"),
                    MountKind::Reopen { source, writable } => {
                        let how = if *writable { "reopen-writable" } else { "reopen" };
                        if *source == mount.target {
                            format!("{how} {target}")
                        } else {
                            format!("{how} {target} <- {}", self.name(source))
                        }
                    }
                }
            })
            .collect()
    }

    pub(super) fn placeholders(&self) -> Vec<String> {
        self.plan
            .placeholders
            .iter()
            .filter(|p| p.path.starts_with(&self.top))
            .map(|p| format!("{}{}", self.name(&p.path), if p.directory { "/" } else { "" }))
            .collect()
    }

    /// A path of the tree, relative to `w` where it lies there.
    fn name(&self, path: &Path) -> String {
        let name = path.strip_prefix(&self.top).unwrap_or(path);
        let name = name.strip_prefix("w").ok().filter(|name| name != &Path::new("")).unwrap_or(name);
        name.to_str().unwrap().into()
    }
}

/// Compares the mounts within the tree.
#[track_caller]
pub(super) fn check(tree: &Tree, lists: Value, expected: &[&str]) {
    let planned = tree.plan(lists.clone());
    assert_eq!(
        planned.mounts(),
        expected,
        "{lists} notes {:?} warnings {:?}",
        planned.plan.notes,
        planned.plan.warnings
    );
}
