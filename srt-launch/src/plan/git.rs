//! What git is told inside: repositories it may trust, and that placeholders are not files of the project.

use std::{collections::BTreeMap, ffi::OsString, path::Path};

use super::{
    compile::{Compiled, Scene},
    git_excludes::{CONFIG, excludes},
    model::{PROVIDED, Provided},
};

/// Configuration handed over in the environment, which git takes for what is typed at it (git-config(1),
/// `GIT_CONFIG_COUNT`): the one place where it accepts `safe.directory` besides the user's own files.
#[derive(Debug, Default)]
pub(super) struct GitSetup {
    config: Vec<(&'static str, OsString)>,
    pub(super) provided: Vec<Provided>,
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
        setup.provided = excludes(scene, compiled);
        if !setup.provided.is_empty() {
            setup.config.push(("include.path", Path::new(PROVIDED).join(CONFIG).into()));
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
