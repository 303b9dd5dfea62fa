//! The CA that signs the certificates shown to clients.

use std::{fmt, sync::Arc, time::SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime},
    sign::CertifiedKey,
};
use srt_shared::{domain::Host, secret::Secret};
use thiserror::Error;
use time::{Duration, OffsetDateTime};

use super::{
    issuer::Issuer,
    leaf::{Leaf, LeafKey, MintError, mint},
    provider,
};
use crate::limits;

/// A CA that has proved itself: a certificate it signed verified against it.
///
/// It holds one P-256 key for all the leaves it mints: making and parsing a key for each would cost more than
/// the leaf, and the key never leaves this process.
pub struct Authority {
    issuer: Issuer,
    leaf_key: LeafKey,
}

impl Authority {
    /// Reads a certificate and its private key in PEM form, in either order, whatever else is there.
    /// PKCS#8, PKCS#1 and SEC1 keys; RSA of 2048 bits or more, P-256 and P-384.
    ///
    /// # Errors
    /// [`CaError`] says what to change; it never quotes the text.
    pub fn from_pem(pem: &Secret) -> Result<Self, CaError> {
        Self::new(Issuer::from_pem(pem)?)
    }

    /// Makes a CA that lives in memory only, for a session that was given none.
    ///
    /// # Errors
    /// [`CaError`] if the system has no random numbers.
    pub fn generate() -> Result<Self, CaError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let now = OffsetDateTime::now_utc();
        // Two CAs of one name make some clients look for the wrong one.
        let mut suffix = [0; 4];
        provider::fill_random(&mut suffix).map_err(|_| MintError::Random)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("srt-proxy session CA {:08x}", u32::from_be_bytes(suffix)));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.not_before = now - Duration::try_from(limits::LEAF_BACKDATE).unwrap_or_default();
        params.not_after = now + Duration::try_from(limits::SESSION_CA_VALIDITY).unwrap_or_default();
        let certificate = params.self_signed(&key)?.der().clone();
        let key = Secret::from(key.serialize_der());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.expose()));
        Self::new(Issuer::new(certificate, &key)?)
    }

    /// The CA's certificate, without its key, for the trust stores of clients.
    pub fn certificate_pem(&self) -> String {
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        let text = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &self.issuer.certificate);
        for line in text.as_bytes().chunks(64) {
            pem.extend(line.iter().map(|&byte| char::from(byte)));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
        pem
    }

    /// Mints a certificate for `host`, valid from `now` on.
    pub(super) fn mint(&self, host: &Host, now: SystemTime) -> Result<Leaf, MintError> {
        mint(&self.issuer, &self.leaf_key, host, now)
    }

    fn new(issuer: Issuer) -> Result<Self, CaError> {
        let authority = Self { issuer, leaf_key: LeafKey::generate()? };
        authority.probe()?;
        Ok(authority)
    }

    /// Mints one certificate and verifies it as a client would: better no start than tunnels that no client
    /// accepts.
    fn probe(&self) -> Result<(), CaError> {
        let name = match &self.issuer.permitted {
            Some(base) => format!("probe.{base}"),
            None => "probe.invalid".to_owned(),
        };
        let host = Host::from_bare(&name).map_err(|_| CaError::BadCertificate)?;
        let leaf = self.mint(&host, SystemTime::now())?;
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.certificate.clone()).map_err(|_| CaError::BadCertificate)?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|_| CaError::BadCertificate)?;
        let name = ServerName::try_from(name).map_err(|_| CaError::BadCertificate)?;
        let CertifiedKey { cert, .. } = &*leaf.certified;
        verifier
            .verify_server_cert(&cert[0], &cert[1..], &name, &[], UnixTime::now())
            .map_err(CaError::Probe)?;
        Ok(())
    }
}

/// Names no key.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Why a CA cannot be used. No text quotes the PEM, which holds the key.
#[derive(Debug, Error)]
pub enum CaError {
    /// A block that is no base64, or has no end.
    #[error("the CA is not valid PEM")]
    Pem,
    /// No `CERTIFICATE` block.
    #[error("the CA has no CERTIFICATE block: give its certificate and its key in one PEM text")]
    NoCertificate,
    /// No block with a private key.
    #[error("the CA has no PRIVATE KEY block: give its certificate and its key in one PEM text")]
    NoKey,
    /// The key has a passphrase.
    #[error("the CA's private key is encrypted: decrypt it first, as with openssl pkey")]
    EncryptedKey,
    /// The key cannot be read, or is of another kind.
    #[error("the CA's private key cannot be used: it must be RSA of 2048 to 4096 bits, P-256 or P-384")]
    UnusableKey,
    /// The certificate cannot be read.
    #[error("the CA's certificate cannot be read as X.509 version 3")]
    BadCertificate,
    /// The public key in the certificate is another one.
    #[error("the CA's private key does not belong to its certificate (the first in the text)")]
    KeyMismatch,
    /// No `basicConstraints` with `CA:TRUE`.
    #[error("the certificate is not that of a CA: basicConstraints must say CA:TRUE")]
    NotACa,
    /// A `keyUsage` without `keyCertSign`.
    #[error("the CA may not sign certificates: its keyUsage lacks keyCertSign")]
    MayNotSign,
    /// Before `notBefore`.
    #[error("the CA's certificate is not yet valid: check its dates and this machine's clock")]
    NotYetValid,
    /// After `notAfter`.
    #[error("the CA's certificate has expired")]
    Expired,
    /// A leaf could not be made.
    #[error("the CA cannot sign a certificate: {0}")]
    Mint(#[from] MintError),
    /// A leaf was made, and a client would refuse it.
    #[error("certificates that the CA signs do not verify: {0}")]
    Probe(rustls::Error),
}

impl From<rcgen::Error> for CaError {
    fn from(error: rcgen::Error) -> Self {
        Self::Mint(error.into())
    }
}

#[cfg(test)]
mod tests;
