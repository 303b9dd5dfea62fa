use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{Parsed, Problem, Problems, Settings, limits::MAX_BYTES};

/// Name of the settings file in the home directory.
pub const DEFAULT_NAME: &str = ".srt-settings.json";

/// Which settings file to read.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// [`DEFAULT_NAME`] in this home directory; the built-in defaults if there is none.
    Home(&'a Path),
    /// The file that was asked for, which has to be there.
    File(&'a Path),
    /// The built-in defaults.
    Defaults,
}

/// Settings, and where they came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// The file they came from; `None` for the built-in defaults.
    pub file: Option<PathBuf>,
    /// Its bytes, to hand on to another program of ours as they are.
    pub document: Vec<u8>,
    /// Keys and entries that are valid and do nothing.
    pub warnings: Vec<Problem>,
}

impl Loaded {
    fn defaults() -> Self {
        Self {
            settings: Settings::default(),
            file: None,
            document: DEFAULT_DOCUMENT.into(),
            warnings: Vec::new(),
        }
    }
}

/// Why there are no settings. Nothing may be run then: the built-in defaults are other rules, not stricter ones.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{file:?} cannot be read: {error}; nothing is run, since its rules are not known")]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not a settings file, or not a valid one.
    #[error("{}", invalid(file, problems))]
    Invalid {
        /// The file.
        file: PathBuf,
        /// All that is wrong.
        problems: Problems,
    },
}

/// Reads the settings.
///
/// # Errors
/// [`LoadError`], whose text has one line for each fault.
pub fn load(source: Source<'_>) -> Result<Loaded, LoadError> {
    let (file, optional) = match source {
        Source::Home(home) => (home.join(DEFAULT_NAME), true),
        Source::File(file) => (file.to_path_buf(), false),
        Source::Defaults => return Ok(Loaded::defaults()),
    };
    let document = match read(&file) {
        Ok(document) => document,
        Err(error) if optional && error.kind() == io::ErrorKind::NotFound && is_absent(&file) => {
            return Ok(Loaded::defaults());
        }
        Err(error) => return Err(LoadError::Read { file, error }),
    };
    match Settings::parse(&document) {
        Ok(Parsed { settings, warnings }) => Ok(Loaded { settings, file: Some(file), document, warnings }),
        Err(problems) => Err(LoadError::Invalid { file, problems }),
    }
}

/// What a file with the built-in defaults would say.
const DEFAULT_DOCUMENT: &str = r#"{"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}"#;

/// One byte more than allowed is read, so that the reader of the document can tell that it is too long.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut document = Vec::new();
    File::open(file)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut document)?;
    Ok(document)
}

/// A symbolic link that leads nowhere is a settings file that cannot be read, not a missing one.
fn is_absent(file: &Path) -> bool {
    fs::symlink_metadata(file).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn invalid(file: &Path, problems: &Problems) -> String {
    let lines: Vec<String> =
        problems.iter().map(|problem| format!("{}: {problem}", file.display())).collect();
    format!("{}\nnothing is run: the rules of an invalid settings file are not known", lines.join("\n"))
}
