//! DNS questions: fully qualified ones only.
//!
//! A search list would turn `api.example.com`, while it does not exist, into `api.example.com.corp.lan` and an
//! internal address: no rule of ours named that host.

use std::{net::IpAddr, path::PathBuf};

use hickory_resolver::{
    TokioResolver,
    config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts},
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::{Name, RData, RecordType},
    system_conf::parse_resolv_conf,
};
use srt_shared::domain::DomainName;
use tokio::time::timeout;

use super::{resolve::ResolveError, watched::Watched};
use crate::limits;

/// The servers that `/etc/resolv.conf` names, and their answers for as long as these are valid.
pub(super) struct Dns {
    resolver: Watched<Result<TokioResolver, ResolveError>>,
}

type Addresses = Result<Vec<IpAddr>, ResolveError>;

impl Dns {
    /// Reads `path` whenever it changed.
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self { resolver: Watched::new(path, limits::RESOLV_CONF, build) }
    }

    /// Asks for both families at once. Answers IPv6 addresses first (RFC 6724 prefers them).
    pub(super) async fn lookup(&self, name: &DomainName) -> Addresses {
        let resolver = self.resolver.current().map_err(|_| ResolveError::File)??;
        // As bytes: text would be read as an escaped or internationalised name.
        let labels = name.as_str().split('.').map(str::as_bytes);
        let mut name = Name::from_labels(labels).map_err(|_| ResolveError::BadName)?;
        name.set_fqdn(true);
        let v4 = ask(&resolver, name.clone(), RecordType::A);
        let v6 = ask(&resolver, name, RecordType::AAAA);
        tokio::pin!(v4, v6);
        let (v6, v4) = tokio::select! {
            v4 = &mut v4 => (lag(v6, &v4).await, v4),
            v6 = &mut v6 => {
                let v4 = lag(v4, &v6).await;
                (v6, v4)
            }
        };
        merge(v6, v4)
    }
}

/// Waits for the second family: not for long if the first can do.
async fn lag(second: impl Future<Output = Addresses>, first: &Addresses) -> Addresses {
    if first.is_err() {
        return second.await;
    }
    timeout(limits::RESOLVE_LAG, second).await.unwrap_or(Err(ResolveError::Timeout))
}

/// One family's addresses are enough; of two errors the one that says more is told.
fn merge(v6: Addresses, v4: Addresses) -> Addresses {
    match (v6, v4) {
        (Ok(mut v6), Ok(v4)) => {
            v6.extend(v4);
            Ok(v6)
        }
        (Ok(addresses), Err(_)) | (Err(_), Ok(addresses)) => Ok(addresses),
        (Err(v6), Err(v4)) => Err(v6.max(v4)),
    }
}

async fn ask(resolver: &TokioResolver, name: Name, kind: RecordType) -> Addresses {
    let lookup = resolver.lookup(name, kind).await.map_err(|error| classify(&error))?;
    let addresses: Vec<_> = lookup
        .answers()
        .iter()
        .filter_map(|record| match record.data {
            RData::A(address) => Some(IpAddr::V4(address.0)),
            RData::AAAA(address) => Some(IpAddr::V6(address.0)),
            _ => None,
        })
        .collect();
    if addresses.is_empty() { Err(ResolveError::NoAddress) } else { Ok(addresses) }
}

fn classify(error: &NetError) -> ResolveError {
    match error {
        _ if error.is_nx_domain() => ResolveError::NoSuchName,
        _ if error.is_no_records_found() => ResolveError::NoAddress,
        NetError::Timeout => ResolveError::Timeout,
        _ => {
            tracing::debug!(%error, "name server");
            ResolveError::Server
        }
    }
}

fn build(resolv_conf: &[u8]) -> Result<TokioResolver, ResolveError> {
    let (config, options) = read_config(resolv_conf);
    start(config, options)
}

/// The servers and timers of resolv.conf, without its search list and without the library's own hosts file.
fn read_config(resolv_conf: &[u8]) -> (ResolverConfig, ResolverOpts) {
    // glibc asks this machine when no server is named (resolv.conf(5)).
    let local = || vec![NameServerConfig::udp_and_tcp(IpAddr::from([127, 0, 0, 1]))];
    let (servers, mut options) = match parse_resolv_conf(resolv_conf) {
        Ok((config, options)) => (config.name_servers().to_vec(), options),
        Err(_) => (local(), ResolverOpts::default()),
    };
    options.use_hosts_file = ResolveHosts::Never;
    (ResolverConfig::from_parts(None, Vec::new(), servers), options)
}

fn start(config: ResolverConfig, options: ResolverOpts) -> Result<TokioResolver, ResolveError> {
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
        .map_err(|_| ResolveError::Server)
}

#[cfg(test)]
pub(super) mod tests;
