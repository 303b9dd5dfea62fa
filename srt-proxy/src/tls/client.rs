//! The handshake with an upstream, verified against the host's roots.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use srt_shared::domain::Host;
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{alpn, provider};
use crate::limits;

/// The client side of TLS: which roots are trusted, and the sessions that can be resumed.
#[derive(Clone)]
pub struct UpstreamTls {
    roots: Arc<Mutex<Roots>>,
}

/// The host's roots and what was given besides, as far as they are loaded.
enum Roots {
    /// Nobody needed them so far. A proxy that terminates no TLS never will, and the start of one that does is
    /// not slowed down by hundreds of files.
    Unread(Vec<CertificateDer<'static>>),
    /// A thread reads them, or has.
    Reading(watch::Receiver<Option<Loaded>>),
}

type Loaded = Result<Arc<ClientConfig>, RootsError>;

impl UpstreamTls {
    /// Will trust the host's roots (`SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured) beside those of `extra` PEM
    /// files. Only the latter are read now.
    ///
    /// # Errors
    /// [`RootsError::File`] if one of the `extra` files has no certificate that can be used.
    pub fn new(extra: &[PathBuf]) -> Result<Self, RootsError> {
        let extra = extra.iter().map(|path| read_file(path)).collect::<Result<Vec<_>, _>>()?.concat();
        Ok(Self { roots: Arc::new(Mutex::new(Roots::Unread(extra))) })
    }

    /// Starts to load the roots if nobody has: an upstream will be talked to over TLS soon. It takes milliseconds,
    /// so another thread does it; [`UpstreamTls::connect`] waits for it.
    pub fn prepare(&self) {
        let _ = self.reading();
    }

    fn reading(&self) -> watch::Receiver<Option<Loaded>> {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let extra = match &mut *roots {
            Roots::Reading(config) => return config.clone(),
            Roots::Unread(extra) => std::mem::take(extra),
        };
        let (report, config) = watch::channel(None);
        let started = thread::Builder::new().name("roots".to_owned()).spawn({
            let report = report.clone();
            // Nobody waits for it any more if the proxy is on its way out.
            move || drop(report.send(Some(load_roots(extra).map(configure))))
        });
        if let Err(error) = started {
            report.send_replace(Some(Err(RootsError::Thread(Arc::new(error)))));
        }
        *roots = Roots::Reading(config.clone());
        config
    }

    /// Completes the handshake on `stream`. The certificate must be for `host`, a name or an address.
    ///
    /// # Errors
    /// [`UpstreamTlsError`], after at most [`limits::UPSTREAM_HANDSHAKE`].
    pub async fn connect<S>(&self, stream: S, host: &Host) -> Result<TlsStream<S>, UpstreamTlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = server_name(host)?;
        let handshake = async {
            let config = self.client_config().await?;
            TlsConnector::from(config).connect(name, stream).await.map_err(UpstreamTlsError::from_io)
        };
        timeout(limits::UPSTREAM_HANDSHAKE, handshake).await.map_err(|_| UpstreamTlsError::Timeout)?
    }

    async fn client_config(&self) -> Loaded {
        let mut config = self.reading();
        let loaded = config.wait_for(Option::is_some).await.map_err(|_| RootsError::Lost)?;
        loaded.clone().expect("invariant: waited for it")
    }
}

impl fmt::Debug for UpstreamTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamTls").finish_non_exhaustive()
    }
}

/// Why no upstream can be verified.
#[derive(Debug, Clone, Error)]
pub enum RootsError {
    /// A file given by name.
    #[error("{}: {reason}: expected a PEM file with CA certificates", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The host has none, and no file was given.
    #[error("no trusted CA certificates on this host{0}: set SSL_CERT_FILE or give --upstream-ca")]
    NoRoots(String),
    /// No thread to load them.
    #[error("cannot start a thread to load the trusted CA certificates: {0}")]
    Thread(Arc<io::Error>),
    /// The thread that loads them is gone.
    #[error("the trusted CA certificates could not be loaded")]
    Lost,
}

/// Why the TLS connection to an upstream failed. The text names the kind of failure and nothing the upstream
/// wrote.
#[derive(Debug, Clone, Error)]
pub enum UpstreamTlsError {
    /// No trusted CA signed its certificate.
    #[error("the upstream's certificate is not signed by a trusted CA")]
    Untrusted,
    /// The certificate is for another host.
    #[error("the upstream's certificate is for another host")]
    NameMismatch,
    /// The certificate's dates.
    #[error("the upstream's certificate has expired or is not yet valid")]
    Expired,
    /// Anything else about the certificate.
    #[error("the upstream's certificate is not acceptable")]
    BadCertificate,
    /// No certificate can be for this host name.
    #[error("no certificate can be for this host name")]
    Unverifiable,
    /// The upstream speaks something else, or no version or cipher in common.
    #[error("the upstream does not speak TLS in a form that can be used")]
    Protocol,
    /// The upstream sent an alert.
    #[error("the upstream refused the TLS handshake")]
    Refused,
    /// The connection ended.
    #[error("the upstream closed the connection during the TLS handshake")]
    Closed,
    /// Not done within [`limits::UPSTREAM_HANDSHAKE`].
    #[error("the upstream did not complete the TLS handshake in time")]
    Timeout,
    /// Nothing to verify with.
    #[error(transparent)]
    Roots(#[from] RootsError),
}

impl UpstreamTlsError {
    /// Whether waiting was what failed: 504 instead of 502.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout)
    }

    fn from_io(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(reason)) => Self::from_certificate(reason),
            Some(rustls::Error::AlertReceived(_)) => Self::Refused,
            Some(_) => Self::Protocol,
            None => Self::Closed,
        }
    }

    fn from_certificate(reason: &CertificateError) -> Self {
        match reason {
            // A signature by a CA of the right name and another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::NameMismatch
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::Expired,
            _ => Self::BadCertificate,
        }
    }
}

fn server_name(host: &Host) -> Result<ServerName<'static>, UpstreamTlsError> {
    match host {
        Host::Name(name) => {
            ServerName::try_from(name.as_str().to_owned()).map_err(|_| UpstreamTlsError::Unverifiable)
        }
        Host::Addr(addr) => Ok(ServerName::from(*addr)),
    }
}

fn read_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, RootsError> {
    let fail = |reason: String| RootsError::File { path: path.to_owned(), reason };
    let pem = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
    let certificates = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| fail("not valid PEM".to_owned()))?;
    if certificates.is_empty() {
        return Err(fail("no CERTIFICATE block".to_owned()));
    }
    // One that cannot be used is an error here, while the host's store may hold a few oddities.
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|_| fail("a certificate cannot be read".to_owned()))?;
    }
    Ok(certificates)
}

/// A part of the host's roots that cannot be read only makes fewer upstreams trusted, so it is no error as
/// long as something is left.
fn load_roots(extra: Vec<CertificateDer<'static>>) -> Result<RootCertStore, RootsError> {
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "cannot load some of the host's trusted CA certificates");
    }
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(native.certs);
    if unusable > 0 {
        tracing::debug!(unusable, "some of the host's trusted CA certificates cannot be used");
    }
    roots.add_parsable_certificates(extra);
    if roots.is_empty() {
        let detail = native.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(RootsError::NoRoots(detail));
    }
    Ok(roots)
}

fn configure(roots: RootCertStore) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("invariant: the provider has cipher suites for TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn::offered();
    // A resumed session saves the certificate and its verification. It was verified for the same name.
    config.resumption = Resumption::in_memory_sessions(limits::UPSTREAM_SESSIONS);
    Arc::new(config)
}

#[cfg(test)]
mod tests;
