//! The handshake with the client, on the tunnel's own socket.

use std::{fmt, io, sync::Arc};

use rustls::{
    ServerConfig,
    server::{ClientHello, NoServerSessionStorage, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::{alpn, provider};
use crate::prefixed::Prefixed;

/// A client's tunnel after the handshake.
pub type ClientStream<S> = tokio_rustls::server::TlsStream<Prefixed<S>>;

/// The server side of TLS 1.2 and 1.3, for any certificate.
pub struct ServerTls {
    template: ServerConfig,
}

impl ServerTls {
    /// Settings shared by all tunnels.
    ///
    /// No session is kept or resumed: a client keeps its tunnel and seldom comes back to the same host, while
    /// each ticket costs bytes in every handshake and a kept session memory for hours.
    pub fn new() -> Self {
        let mut template = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("invariant: the provider has cipher suites for TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Nobody));
        template.alpn_protocols = alpn::offered();
        template.session_storage = Arc::new(NoServerSessionStorage {});
        template.send_tls13_tickets = 0;
        // Most clients ask for AES-256 first, and gain nothing by it.
        template.ignore_client_order = true;
        Self { template }
    }

    /// Completes the handshake on `stream`, whose prefix is what was read of it so far, with the one
    /// certificate that names where the tunnel leads: what the client's server name says does not matter here.
    ///
    /// Has no deadline of its own: the tunnel's runs from its CONNECT.
    ///
    /// # Errors
    /// What rustls says of the client's handshake, or the socket's own error.
    pub async fn accept<S>(&self, stream: Prefixed<S>, leaf: Arc<CertifiedKey>) -> io::Result<ClientStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        // 0.3 µs: the parts of a configuration are shared.
        let mut config = self.template.clone();
        config.cert_resolver = Arc::new(Always(leaf));
        TlsAcceptor::from(Arc::new(config)).accept(stream).await
    }
}

impl Default for ServerTls {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

/// The template's resolver. A tunnel always replaces it.
#[derive(Debug)]
struct Nobody;

impl ResolvesServerCert for Nobody {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests;
