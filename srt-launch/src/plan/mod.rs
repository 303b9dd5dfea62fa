//! The plan: what the sandbox will be, as plain data. Computed from settings and the file system on the
//! host side, printed by `--explain`, looked at by most tests, and only then applied.
//!
//! 1. `readings`: what each entry of a path list means, as a path and as a pattern; `doubtful`: what else it may have meant.
//! 2. `host`: where a path really leads; `walk`: what patterns match and where `protected` names are.
//! 3. `compile` with `reads`, `carve_out`, `planted` and `writes`: all that is said about each path, the `rules`.
//! 4. `mounts`: the fewest mounts that make it so.
//! 5. `environment`, `git`, `ssh`: what programs are told about where they are.

mod carve_out;
mod compile;
mod doubtful;
mod environment;
mod explain;
mod git;
mod git_config;
mod git_excludes;
mod host;
mod isolation;
mod model;
mod mount_table;
mod mounts;
mod planted;
mod protected;
mod readings;
mod reads;
mod rules;
mod seccomp;
mod ssh;
mod ssh_include;
mod temp_dir;
#[cfg(test)]
mod tests;
mod variables;
mod walk;
mod writes;

use std::path::{Path, PathBuf};

use compile::{Scene, compile};
use environment::environment;
pub use environment::{edit, trust_environment};
pub use explain::Explanation;
use git::GitSetup;
use git_config::obeyed_everywhere;
pub use host::Shortage;
use host::{Found, Host, Kind};
pub use isolation::Isolation;
pub use model::{
    Inputs, Mount, MountKind, Network, PROVIDED, Placeholder, Plan, ProcMode, Provided, Reason, Root, Trust,
};
use readings::Bases;
pub use seccomp::{SeccompProfile, SeccompRule};
use ssh::ssh_configuration;
use thiserror::Error;
pub use variables::PROXY_ADDRESS;

impl Plan {
    /// Computes the plan. Reads the file system and changes nothing.
    ///
    /// # Errors
    /// [`PlanError`], when there is nothing to start from.
    pub fn compute(inputs: &Inputs) -> Result<Self, PlanError> {
        let host = Host::new(inputs.uid, inputs.foreign_placeholders.iter().map(|ghost| ghost.path.clone()));
        let cwd_lookup = host.follow(&inputs.cwd);
        let Found::There(cwd, Kind::Directory) = cwd_lookup.found else {
            host.check()?;
            return Err(PlanError::WorkingDirectory(inputs.cwd.clone()));
        };
        let home_lookup = host.follow(&inputs.home);
        let home = home_lookup.there().map_or_else(|| inputs.home.clone(), Path::to_path_buf);
        let base_links = [cwd_lookup.links, home_lookup.links].concat();
        let bases = Bases { home: &home, cwd: &cwd };
        let user_git = obeyed_everywhere(&inputs.env, &home, &host);
        let scene = Scene { inputs, host: &host, bases, base_links: &base_links, user_git: &user_git };
        let mut compiled = compile(scene);
        let settings = &inputs.settings;
        if !settings.network.allow_unix_sockets.is_empty() && !settings.network.allow_all_unix_sockets {
            compiled.warnings.insert(
                "network.allowUnixSockets: not enforced by path yet; no unix socket of the host can be reached".into(),
            );
        }
        let git = GitSetup::of(scene, &compiled);
        let env = environment(inputs, &cwd, compiled.temp_dir.as_ref(), &git);
        let mut provided = ssh_configuration(scene, &compiled);
        provided.extend(git.provided);
        let mounts = mounts::mounts(&compiled.rules);
        compiled.warnings.extend(mounts.iter().filter_map(|mount| not_opened(mount, &host)));
        host.check()?;
        Ok(Self {
            root: mounts::root(&compiled.rules),
            mounts,
            missing_temp_dir: compiled.temp_dir.filter(|temp_dir| temp_dir.missing).map(|found| found.path),
            placeholders: compiled.placeholders.into_iter().collect(),
            provided,
            env,
            seccomp: SeccompProfile::new(
                settings.network.allow_all_unix_sockets,
                settings.allow_nested_user_namespaces,
            ),
            isolation: Isolation {
                user_namespace_limit: !settings.allow_nested_user_namespaces,
                ..Isolation::default()
            },
            proc: if settings.enable_weaker_nested_sandbox {
                ProcMode::FreshOrOuterReadOnly
            } else {
                ProcMode::Fresh
            },
            network: inputs.network,
            cwd,
            pass_fds: inputs.pass_fds.clone(),
            warnings: compiled.warnings.into_iter().collect(),
            notes: compiled.notes.into_iter().collect(),
        })
    }
}

/// What to say of an entry that root's command cannot make use of.
fn not_opened(mount: &Mount, host: &Host) -> Option<String> {
    let (why @ Reason::Setting { .. }, place) = (&mount.why, mount.opens()?) else { return None };
    let folder = host.closed_to_command(place)?;
    Some(format!(
        "{why}: {place:?} is not opened, since {folder:?} is another user's and closed to others: root inside the \
         sandbox has no power over it; run this as its owner"
    ))
}

/// Why no plan could be made.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The command would start in it.
    #[error("the working directory {0:?} is not a directory that can be entered")]
    WorkingDirectory(PathBuf),
    /// Something could not be looked at.
    #[error(transparent)]
    Shortage(#[from] Shortage),
}
