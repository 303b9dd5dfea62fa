//! Which tunnels are looked into, and with whose certificates.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use srt_shared::domain::Host;
use srt_shared::lists::{ListAnswer, Lists};
use srt_shared::secret::Secret;
use srt_shared::settings::{CaFiles, in_home};

use crate::tls::{Authority, CaError, LeafCache};

/// Whether TLS is terminated.
#[derive(Debug, Clone)]
pub enum Termination {
    /// No tunnel is. The text says why, to whoever is refused for it.
    Off(&'static str),
    /// Tunnels are, but those to excluded hosts.
    On(Terminating),
}

/// How TLS is terminated.
#[derive(Debug, Clone)]
pub struct Terminating {
    /// Makes the certificates.
    pub leaves: Arc<LeafCache>,
    /// Hosts whose tunnels are left alone, as the allowed entries of a list.
    pub exclude: Arc<Lists>,
    /// Tunnels at once.
    pub max_tunnels: usize,
    /// Time for a handshake, from the CONNECT.
    pub handshake: Duration,
}

impl Termination {
    /// How a tunnel to this host is terminated, if it is.
    pub fn of(&self, host: &Host, port: u16) -> Option<&Terminating> {
        match self {
            Self::On(on) if !matches!(on.exclude.check(host, port), ListAnswer::Allowed(_)) => Some(on),
            _ => None,
        }
    }

    /// Why a tunnel is not terminated.
    pub fn why_not(&self) -> &'static str {
        match self {
            Self::Off(why) => why,
            Self::On(_) => {
                "this host is excluded from TLS termination, and tunnels nobody can look into are refused"
            }
        }
    }

    /// The CA's certificate, which clients must trust.
    pub fn ca_pem(&self) -> Option<String> {
        match self {
            Self::On(on) => Some(on.leaves.authority().certificate_pem()),
            Self::Off(_) => None,
        }
    }
}

/// Why the CA of the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TerminationError {
    /// A file cannot be read.
    #[error("network.tlsTerminate: {path}: {source}")]
    Read {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// What is in them is no CA.
    #[error("network.tlsTerminate: {0}")]
    Ca(#[from] CaError),
}

/// The CA of the settings, or one made in memory whose key no file ever holds.
pub fn authority(files: Option<&CaFiles>) -> Result<Authority, TerminationError> {
    let Some(files) = files else { return Ok(Authority::generate()?) };
    let mut pem = read(&files.key)?;
    pem.push(b'\n');
    pem.extend_from_slice(&read(&files.cert)?);
    Ok(Authority::from_pem(&Secret::from(pem))?)
}

fn read(path: &str) -> Result<Vec<u8>, TerminationError> {
    let home = std::env::var_os("HOME");
    let file = in_home(path, home.as_deref().map(Path::new)).unwrap_or_else(|| path.into());
    std::fs::read(file).map_err(|source| TerminationError::Read { path: path.to_owned(), source })
}
