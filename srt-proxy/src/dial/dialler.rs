//! The one way to an upstream.

use srt_shared::domain::Host;
use thiserror::Error;

use super::{
    connect::{ConnectError, connect},
    guard::{AddressRefused, Guard},
    resolve::{ResolveError, Resolver},
    upstream::Upstream,
};
use crate::tls::{UpstreamTls, UpstreamTlsError};

/// Dials upstreams for every session of the process.
#[derive(Debug)]
pub struct Dialler {
    resolver: Resolver,
    tls: UpstreamTls,
}

impl Dialler {
    /// A dialler that finds addresses with `resolver` and verifies upstreams with `tls`.
    pub fn new(resolver: Resolver, tls: UpstreamTls) -> Self {
        Self { resolver, tls }
    }

    /// An upstream will be dialled with TLS soon: what that takes is made ready meanwhile.
    pub fn prepare_tls(&self) {
        self.tls.prepare();
    }

    /// Resolves `host` once, lets `guard` check the addresses, connects to one that passed, and makes it TLS if
    /// asked to, with a certificate for `host`.
    ///
    /// Each step has its deadline: [`RESOLVE`](crate::limits::RESOLVE), [`CONNECT`](crate::limits::CONNECT),
    /// [`UPSTREAM_HANDSHAKE`](crate::limits::UPSTREAM_HANDSHAKE).
    ///
    /// # Errors
    /// [`DialError`] tells a refusal by policy from a failure of the upstream.
    pub async fn dial(
        &self,
        host: &Host,
        port: u16,
        tls: bool,
        guard: &Guard,
    ) -> Result<Upstream, DialError> {
        let addresses = self.resolver.resolve(host).await.map_err(DialFailure::from)?;
        let checked = guard.check(host, port, &addresses)?;
        let stream = connect(&checked).await.map_err(DialFailure::from)?;
        if !tls {
            return Ok(Upstream::Plain(stream));
        }
        let stream = self.tls.connect(stream, host).await.map_err(DialFailure::from)?;
        Ok(Upstream::Tls(Box::new(stream)))
    }
}

/// Why there is no connection.
#[derive(Debug, Clone, Error)]
pub enum DialError {
    /// Policy: the host leads where it must not. Nothing was dialled.
    #[error(transparent)]
    Refused(#[from] AddressRefused),
    /// The upstream, or the way to it.
    #[error(transparent)]
    Failed(#[from] DialFailure),
}

/// What failed on the way to the upstream. The text is fit for the client.
#[derive(Debug, Clone, Error)]
pub enum DialFailure {
    /// The host has no address.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// No address answered.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// No verified TLS.
    #[error(transparent)]
    Tls(#[from] UpstreamTlsError),
}

impl DialFailure {
    /// Whether waiting was what failed: 504 instead of 502.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Resolve(error) => error.is_timeout(),
            Self::Connect(error) => error.is_timeout(),
            Self::Tls(error) => error.is_timeout(),
        }
    }
}

#[cfg(test)]
mod tests;
