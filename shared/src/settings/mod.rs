//! The settings file: its types, validation and messages.
//!
//! [`load`] finds and reads a file, [`Settings::parse`] turns bytes into settings or into *every* fault they
//! have. The same function reads a line of a control descriptor, so that a policy is judged alike whichever way
//! it comes. What a host pattern or an address range may be is decided by the modules that match them.

mod credentials;
mod elsewhere;
mod filesystem;
pub mod limits;
mod load;
mod network;
mod proxy_url;
mod read;
mod report;
#[cfg(test)]
mod schema;
mod spelling;
#[cfg(test)]
mod tests;
mod tls;

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

pub use credentials::{AwsPair, CredentialFile, CredentialMode, Credentials, EnvVar, SigV4};
pub use elsewhere::{Elsewhere, Ripgrep, SeccompHelper, SrtWin, Windows};
pub use filesystem::{Filesystem, PathEntry, in_home};
pub use load::{DEFAULT_NAME, LoadError, Loaded, Source, load};
pub use network::{AmbiguousTarget, MitmProxy, Network, ParentProxy};
pub use proxy_url::{ProxyLogin, ProxyScheme, ProxyUrl, ProxyUrlError};
use read::{Object, Unknown, boolean, list, map, number, text};
pub use report::Problem;
use report::{Place, Report};
pub use tls::{CaFiles, TlsTerminate};

use crate::json::{self, JsonError};

/// A whole settings file, valid. The default is what applies without a file: no network, no writes but to the
/// default write paths, everything readable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "Settings of srt", rename_all = "camelCase"))]
pub struct Settings {
    /// What may be reached, and how.
    pub network: Network,
    /// What may be read and written.
    pub filesystem: Filesystem,
    /// What the command must not learn the real values of.
    #[cfg_attr(test, schemars(default))]
    pub credentials: Credentials,
    /// Which refusals the report at the end leaves out: paths or hosts, by a part of the command's text or `*`.
    #[cfg_attr(test, schemars(default))]
    pub ignore_violations: BTreeMap<String, Vec<String>>,
    /// How deep protected names are looked for below what is writable.
    #[cfg_attr(test, schemars(default))]
    pub mandatory_deny_search_depth: SearchDepth,
    /// Where the kernel refuses a fresh `/proc`, as in some containers, show the outer one read-only.
    #[cfg_attr(test, schemars(default))]
    pub enable_weaker_nested_sandbox: bool,
    /// Let the command make user namespaces. Write denies then hold against nothing that does.
    #[cfg_attr(test, schemars(default))]
    pub allow_nested_user_namespaces: bool,
    /// What git is told.
    #[cfg_attr(test, schemars(default))]
    pub git: Git,
    /// Keys for other platforms.
    #[cfg_attr(test, schemars(flatten))]
    pub elsewhere: Elsewhere,
}

/// `git`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct Git {
    /// Repositories of other users that git works in all the same (`safe.directory`).
    #[cfg_attr(test, schemars(default))]
    pub safe_directories: Vec<String>,
}

/// `mandatoryDenySearchDepth`: how many components the path of a protected file may have below what is
/// writable, from 1 to 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(transparent))]
pub struct SearchDepth(#[cfg_attr(test, schemars(range(min = 1, max = 10)))] u8);

/// A document that was read: its settings, and what has no effect in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The settings.
    pub settings: Settings,
    /// Keys and entries that are valid and do nothing.
    pub warnings: Vec<Problem>,
}

/// Everything that is wrong with a document: at least one problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Settings {
    /// Reads a document of the shape of the settings file: the file itself, or one line of a control descriptor.
    ///
    /// # Errors
    /// All faults at once, each with its place. A fault of the JSON itself is told alone.
    pub fn parse(document: &[u8]) -> Result<Parsed, Problems> {
        let value = read_json(document).map_err(|problem| Problems(vec![problem]))?;
        let mut report = Report::default();
        let settings = Self::read(&value, &Place::default(), &mut report).unwrap_or_default();
        if report.errors.is_empty() {
            Ok(Parsed { settings, warnings: report.warnings })
        } else {
            Err(Problems(report.errors))
        }
    }

    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let settings = Self {
            network: o.required("network", Network::read).unwrap_or_default(),
            filesystem: o.required("filesystem", Filesystem::read).unwrap_or_default(),
            credentials: o.optional("credentials", Credentials::read).unwrap_or_default(),
            ignore_violations: o.optional("ignoreViolations", map(list(text))).unwrap_or_default(),
            mandatory_deny_search_depth: o
                .optional("mandatoryDenySearchDepth", SearchDepth::read)
                .unwrap_or_default(),
            enable_weaker_nested_sandbox: o
                .optional("enableWeakerNestedSandbox", boolean)
                .unwrap_or_default(),
            allow_nested_user_namespaces: o
                .optional("allowNestedUserNamespaces", boolean)
                .unwrap_or_default(),
            git: o.optional("git", Git::read).unwrap_or_default(),
            elsewhere: Elsewhere::read(&mut o),
        };
        o.finish(Unknown::Warned);
        Some(settings)
    }
}

impl Git {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let git = Self { safe_directories: o.optional("safeDirectories", list(text)).unwrap_or_default() };
        o.finish(Unknown::Warned);
        Some(git)
    }
}

impl SearchDepth {
    /// The deepest search, and the widest one that still ends in a moment in an ordinary tree.
    const MAX: u32 = 10;

    /// The depth as a count of components.
    pub fn get(self) -> usize {
        self.0.into()
    }

    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        number(1, Self::MAX)(value, place, report).and_then(|n| u8::try_from(n).ok()).map(Self)
    }
}

impl Default for SearchDepth {
    fn default() -> Self {
        Self(3)
    }
}

impl Problems {
    /// The problems, in the order of the document's keys as this release knows them.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

/// One line for each problem.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

fn read_json(document: &[u8]) -> Result<Value, Problem> {
    let whole = |text: &str| Problem { path: String::new(), text: text.into() };
    if document.iter().all(u8::is_ascii_whitespace) {
        return Err(whole("empty; write at least the keys `network` and `filesystem`, or remove the file"));
    }
    json::check(document, limits::JSON).map_err(|JsonError { path, fault, line, column }| Problem {
        path,
        text: format!("not valid JSON: {fault} (line {line}, column {column})"),
    })?;
    serde_json::from_slice(document).map_err(|e| whole(&format!("not valid JSON: {e}")))
}
