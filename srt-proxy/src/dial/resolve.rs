//! From a host to its addresses: once for each dial, in one order.

use std::{collections::HashMap, fmt, net::IpAddr, path::PathBuf, str::FromStr};

use srt_shared::domain::{DomainName, Host};
use thiserror::Error;
use tokio::time::timeout;

use super::{dns::Dns, hosts::HostsFile};
use crate::limits;

/// Finds the addresses of hosts.
///
/// In this order, and the first that knows the host is the whole answer: an address literal is itself;
/// `--resolve`; `localhost` and names below it are loopback and nobody is asked (RFC 6761 section 6.3);
/// `/etc/hosts`; DNS. Nothing is checked here: that is the guard's part, for overrides too.
pub struct Resolver {
    overrides: HashMap<DomainName, Vec<IpAddr>>,
    hosts: HostsFile,
    dns: Dns,
}

impl Resolver {
    /// Uses this machine's `/etc/hosts` and `/etc/resolv.conf`. Several overrides of one name add up.
    pub fn new(overrides: impl IntoIterator<Item = Override>) -> Self {
        Self::with_files(overrides, "/etc/hosts", "/etc/resolv.conf")
    }

    /// Uses other files, for tests.
    pub fn with_files(
        overrides: impl IntoIterator<Item = Override>,
        hosts: impl Into<PathBuf>,
        resolv_conf: impl Into<PathBuf>,
    ) -> Self {
        let mut table: HashMap<_, Vec<_>> = HashMap::new();
        for Override { name, address } in overrides {
            table.entry(name).or_default().push(address);
        }
        Self { overrides: table, hosts: HostsFile::new(hosts), dns: Dns::new(resolv_conf) }
    }

    /// The addresses of a host, at least one, at most [`limits::ADDRESSES`].
    ///
    /// # Errors
    /// [`ResolveError`], after at most [`limits::RESOLVE`].
    pub async fn resolve(&self, host: &Host) -> Result<Vec<IpAddr>, ResolveError> {
        let name = match host {
            Host::Addr(address) => return Ok(vec![*address]),
            Host::Name(name) => name,
        };
        let mut addresses = match self.lookup_local(name)? {
            Some(addresses) => addresses,
            None => {
                timeout(limits::RESOLVE, self.dns.lookup(name)).await.map_err(|_| ResolveError::Timeout)??
            }
        };
        addresses.truncate(limits::ADDRESSES);
        Ok(addresses)
    }

    fn lookup_local(&self, name: &DomainName) -> Result<Option<Vec<IpAddr>>, ResolveError> {
        if let Some(addresses) = self.overrides.get(name) {
            return Ok(Some(addresses.clone()));
        }
        if name.is_localhost() {
            // IPv4 first: what listens on one of them only listens on that.
            return Ok(Some(vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])]));
        }
        self.hosts.lookup(name.as_str()).map_err(|_| ResolveError::File)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("overrides", &self.overrides).finish_non_exhaustive()
    }
}

/// An address given for a name on the command line: `NAME=ADDRESS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    name: DomainName,
    address: IpAddr,
}

impl FromStr for Override {
    type Err = OverrideError;

    /// Reads `api.example.com=203.0.113.7` or `api.example.com=2001:db8::7`, also with brackets.
    fn from_str(text: &str) -> Result<Self, OverrideError> {
        let (name, address) = text.split_once('=').ok_or(OverrideError)?;
        let Ok(Host::Name(name)) = Host::from_bare(name) else { return Err(OverrideError) };
        let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let address = match bare {
            Some(v6) => v6.parse().map(IpAddr::V6).ok(),
            None => address.parse().ok(),
        };
        Ok(Self { name, address: address.ok_or(OverrideError)? })
    }
}

/// The text is no override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected NAME=ADDRESS, a host name and an IP address, as in api.example.com=203.0.113.7")]
pub struct OverrideError;

/// Why a host has no address. Of several reasons the greatest is told: the one that says most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum ResolveError {
    /// DNS has no such name that could be asked for.
    #[error("this is no name that DNS can be asked for")]
    BadName,
    /// The name exists and has no address.
    #[error("the host name has no address")]
    NoAddress,
    /// The name does not exist.
    #[error("the host name does not exist")]
    NoSuchName,
    /// No answer in time.
    #[error("the name servers did not answer in time")]
    Timeout,
    /// An answer that says nothing about the name, or no connection to a server.
    #[error("the name servers failed to answer")]
    Server,
    /// `/etc/hosts` or `/etc/resolv.conf` is there and could not be read.
    #[error("this host cannot read the files by which names are looked up")]
    File,
}

impl ResolveError {
    /// Whether waiting was what failed: 504 instead of 502.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout)
    }
}

#[cfg(test)]
mod tests;
