//! What both programs do before anything runs: settings, and from them and the file system a plan.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, geteuid};
use srt_shared::settings::{DEFAULT_NAME, LoadError, Loaded, Source, load};

use crate::apply::{self, Failure};
use crate::args::Common;
use crate::limits::PLAN_ATTEMPTS;
use crate::placeholders::{self, state_folder};
use crate::plan::{Inputs, Network, Plan, PlanError};
use crate::{hint, say, sys};

/// Why nothing runs.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// No settings.
    #[error("{0}{hint}", hint = hint::without_settings(.0))]
    Settings(#[from] LoadError),
    /// No plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// `--strict`
    #[error("{0} (an error because of --strict)")]
    Strict(String),
    /// Other runs start and end in the same folders faster than a plan is made.
    #[error("other sandboxes make and remove mount points in the same folders all the time; try again")]
    Overtaken,
    /// A plan would take them for files that stay.
    #[error("cannot list the mount points that other sandboxes have made: {0}; nothing is run, try again")]
    InUse(std::io::Error),
    /// There is no folder to be in.
    #[error("the working directory cannot be found: {0}")]
    WorkingDirectory(std::io::Error),
    /// Nothing says what `~` is.
    #[error("no home directory: set HOME")]
    NoHome,
}

/// What the command line says beyond settings.
#[derive(Debug, Default)]
pub struct Wishes {
    /// Where the command starts.
    pub chdir: Option<PathBuf>,
    /// Variables set and taken, in order.
    pub env_edits: Vec<(OsString, Option<OsString>)>,
    /// Descriptors the command keeps.
    pub pass_fds: Vec<RawFd>,
    /// Files that no command may see.
    pub hidden: Vec<PathBuf>,
}

/// Says things on stderr, once each.
#[derive(Debug)]
pub struct Voice {
    program: &'static str,
    strict: bool,
    debug: bool,
}

impl Voice {
    /// The voice of a program.
    pub fn new(program: &'static str, common: &Common) -> Self {
        let debug = common.debug || env::var_os("SRT_DEBUG").is_some_and(|value| !value.is_empty());
        Self { program, strict: common.strict, debug }
    }

    /// A failure of ours.
    pub fn error(&self, text: &dyn std::fmt::Display) {
        for line in text.to_string().lines() {
            self.say(&line);
        }
    }

    /// Something is not as one might expect. An error under `--strict`.
    pub fn warn(&self, text: &str) -> Result<(), PrepareError> {
        if self.strict {
            return Err(PrepareError::Strict(text.to_owned()));
        }
        self.say(&format_args!("warning: {text}"));
        Ok(())
    }

    /// What helps to understand.
    pub fn debug(&self, text: &str) {
        if self.debug {
            self.say(&text);
        }
    }

    fn say(&self, text: &dyn std::fmt::Display) {
        say::err(format_args!("{}: {text}", self.program));
    }

    /// Whether [`Self::debug`] says anything.
    pub fn is_debug(&self) -> bool {
        self.debug
    }
}

/// Reads the settings, and tells their warnings.
pub fn settings(common: &Common, voice: &Voice) -> Result<Loaded, PrepareError> {
    let home = home()?;
    let source = match &common.settings {
        Some(file) => Source::File(file),
        // Another run's placeholder says that it is not there.
        None if is_placeholder(&home.join(DEFAULT_NAME)) => Source::Defaults,
        None => Source::Home(&home),
    };
    let loaded = load(source)?;
    for warning in &loaded.warnings {
        // As in an error: there is a file in the home, too, and perhaps one for each project.
        let file = loaded.file.as_deref().map(|file| format!("{}: ", file.display())).unwrap_or_default();
        voice.warn(&format!("{file}{warning}"))?;
    }
    match &loaded.file {
        Some(file) => voice.debug(&format!("settings from {}", file.display())),
        None => voice.debug("no settings file: built-in defaults"),
    }
    Ok(loaded)
}

/// What the plan is computed from.
pub fn inputs(loaded: &Loaded, network: Network, wishes: Wishes) -> Result<Inputs, PrepareError> {
    let current = || env::current_dir().map_err(PrepareError::WorkingDirectory);
    let cwd = match wishes.chdir {
        // The present one may be gone, and is not needed.
        Some(chdir) if chdir.is_absolute() => chdir,
        Some(chdir) => current()?.join(chdir),
        None => current()?,
    };
    Ok(Inputs {
        settings: loaded.settings.clone(),
        settings_file: loaded.file.clone(),
        home: home()?,
        cwd,
        uid: geteuid().as_raw(),
        env: env::vars_os().collect::<BTreeMap<_, _>>(),
        env_edits: wishes.env_edits,
        network,
        trust: None,
        pass_fds: wishes.pass_fds,
        own_state: wishes.hidden.into_iter().chain([state_folder()]).collect(),
        programs: env::current_exe()
            .and_then(|program| program.canonicalize())
            .ok()
            .and_then(|program| program.parent().map(Path::to_path_buf)),
        // They come and go: looked for before each plan.
        foreign_placeholders: Vec::new(),
    })
}

/// Computes a plan around the placeholders of the runs that live now. Tell it with [`tell`].
pub fn plan(inputs: &Inputs) -> Result<Plan, PrepareError> {
    placeholders::sweep();
    let mut inputs = inputs.clone();
    for _ in 0..PLAN_ATTEMPTS {
        inputs.foreign_placeholders = placeholders::in_use().map_err(PrepareError::InUse)?;
        let plan = Plan::compute(&inputs)?;
        let overtaken = placeholders::overtaken(&plan, &inputs.foreign_placeholders);
        if !overtaken.map_err(PrepareError::InUse)? {
            return Ok(plan);
        }
    }
    Err(PrepareError::Overtaken)
}

/// Hands plans to `run` until one fits: the files that a plan names come and go meanwhile. The directory for temporary
/// files is there by then.
pub fn until_a_plan_fits<T, E: From<PrepareError>>(
    inputs: &Inputs,
    mut run: impl FnMut(Plan) -> Result<Result<T, Failure>, E>,
) -> Result<Result<T, Failure>, E> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let result = match plan_with_temp_dir(inputs)? {
            Ok(plan) => run(plan)?,
            Err(failure) => Err(failure),
        };
        match result {
            Err(failure) if failure.is_stale_plan() && attempts < PLAN_ATTEMPTS => {}
            result => return Ok(result),
        }
    }
}

/// What the settings say of that directory, and of names in it, is to be planned around what is there.
fn plan_with_temp_dir(inputs: &Inputs) -> Result<Result<Plan, Failure>, PrepareError> {
    let first = plan(inputs)?;
    let Some(path) = &first.missing_temp_dir else { return Ok(Ok(first)) };
    Ok(match apply::make_temp_dir(path) {
        Ok(()) => Ok(plan(inputs)?),
        Err(failure) => Err(failure),
    })
}

/// Tells the warnings of a plan.
pub fn tell(plan: &Plan, voice: &Voice) -> Result<(), PrepareError> {
    for warning in &plan.warnings {
        voice.warn(warning)?;
    }
    for note in &plan.notes {
        voice.debug(note);
    }
    Ok(())
}

fn is_placeholder(path: &Path) -> bool {
    let empty = path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
    empty
        && path
            .canonicalize()
            .is_ok_and(|path| placeholders::in_use().is_ok_and(|all| all.iter().any(|one| one.path == path)))
}

fn home() -> Result<PathBuf, PrepareError> {
    if let Some(home) = env::var_os("HOME")
        && Path::new(&home).is_absolute()
    {
        return Ok(home.into());
    }
    sys::use_own_name_services();
    let user = User::from_uid(Uid::effective()).ok().flatten();
    user.map(|user| user.dir).ok_or(PrepareError::NoHome)
}
