//! A CA's certificate and private key, read and checked against each other.

use std::{fmt, sync::Arc};

use rustls::{
    SignatureScheme,
    pki_types::{
        CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
        pem::{PemObject, SectionKind},
    },
    sign::SigningKey,
};
use srt_shared::secret::Secret;
use time::OffsetDateTime;
use x509_parser::prelude::{
    FromDer, GeneralName, ParsedExtension, X509Certificate, oid_registry::OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
};

use super::{ca::CaError, provider};

/// What signing a leaf takes. Its fields agree with each other; whether clients would accept what it signs
/// only a probe tells.
pub(super) struct Issuer {
    key: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
    /// rcgen's name for `scheme`, which it writes into the certificate.
    pub(super) algorithm: &'static rcgen::SignatureAlgorithm,
    pub(super) certificate: CertificateDer<'static>,
    /// The subject as it stands in the certificate, byte for byte: clients compare names that way, and some
    /// names (repeated attributes, several in one set) do not survive being parsed and written again.
    pub(super) subject: Vec<u8>,
    /// What a leaf's Authority Key Identifier repeats, if there is something to repeat.
    pub(super) key_id: Option<Vec<u8>>,
    pub(super) self_issued: bool,
    pub(super) not_before: OffsetDateTime,
    pub(super) not_after: OffsetDateTime,
    /// A name below the only domains the CA may sign for, if it is constrained to some.
    pub(super) permitted: Option<String>,
}

impl Issuer {
    /// Reads the first certificate and the first private key of a PEM text, in either order. Anything before,
    /// between and behind them is ignored, blocks of other kinds too.
    pub(super) fn from_pem(pem: &Secret) -> Result<Self, CaError> {
        let mut certificate = None;
        let mut key = None;
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.expose()) {
            let (kind, der) = section.map_err(|_| unreadable(pem, CaError::Pem))?;
            match kind {
                SectionKind::Certificate if certificate.is_none() => certificate = Some(der),
                SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey => {
                    let der = Secret::from(der);
                    key.get_or_insert((kind, der));
                }
                _ => {}
            }
        }
        let certificate = certificate.ok_or(CaError::NoCertificate)?;
        let (kind, key) = key.ok_or_else(|| unreadable(pem, CaError::NoKey))?;
        let key = match kind {
            SectionKind::RsaPrivateKey => PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(key.expose())),
            SectionKind::EcPrivateKey => PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(key.expose())),
            _ => PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.expose())),
        };
        Self::new(certificate.into(), &key)
    }

    /// Joins a certificate and its key.
    pub(super) fn new(
        certificate: CertificateDer<'static>,
        key: &PrivateKeyDer<'_>,
    ) -> Result<Self, CaError> {
        let key = provider::load_key(key).map_err(|_| CaError::UnusableKey)?;
        let (scheme, algorithm) = choose_algorithm(&*key).ok_or(CaError::UnusableKey)?;
        let (_, parsed) = X509Certificate::from_der(&certificate).map_err(|_| CaError::BadCertificate)?;
        let public_key = key.public_key().ok_or(CaError::UnusableKey)?;
        if parsed.public_key().raw != &*public_key {
            return Err(CaError::KeyMismatch);
        }
        check_may_sign(&parsed)?;
        let key_id = read_key_id(&parsed);
        if key_id.is_none() || !matches!(parsed.key_usage(), Ok(Some(_))) {
            tracing::warn!(
                "the CA certificate lacks a subject key identifier or a key usage: strict clients \
                 (Python 3.13 and later, openssl -x509_strict) will refuse it"
            );
        }
        Ok(Self {
            subject: parsed.subject().as_raw().to_vec(),
            self_issued: parsed.subject().as_raw() == parsed.issuer().as_raw(),
            key_id,
            not_before: parsed.validity().not_before.to_datetime(),
            not_after: parsed.validity().not_after.to_datetime(),
            permitted: read_permitted(&parsed),
            key: Arc::clone(&key),
            scheme,
            algorithm,
            certificate: certificate.clone(),
        })
    }

    /// Signs `message` with the CA's key.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        self.key
            .choose_scheme(&[self.scheme])
            .expect("invariant: the scheme was chosen for this key")
            .sign(message)
    }
}

/// Names neither the key nor the bytes of the certificate.
impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("scheme", &self.scheme).field("not_after", &self.not_after).finish()
    }
}

/// A passphrase cannot be asked for here, so say that one is the trouble.
fn unreadable(pem: &Secret, otherwise: CaError) -> CaError {
    let encrypted = pem.expose().windows(9).any(|window| window == b"ENCRYPTED");
    if encrypted { CaError::EncryptedKey } else { otherwise }
}

/// One hash for each kind of key: what OpenSSL would take by itself.
fn choose_algorithm(key: &dyn SigningKey) -> Option<(SignatureScheme, &'static rcgen::SignatureAlgorithm)> {
    [
        (SignatureScheme::ECDSA_NISTP256_SHA256, &rcgen::PKCS_ECDSA_P256_SHA256),
        (SignatureScheme::ECDSA_NISTP384_SHA384, &rcgen::PKCS_ECDSA_P384_SHA384),
        (SignatureScheme::RSA_PKCS1_SHA256, &rcgen::PKCS_RSA_SHA256),
    ]
    .into_iter()
    .find(|(scheme, _)| key.choose_scheme(&[*scheme]).is_some())
}

/// RFC 5280 sections 4.2.1.9 and 4.2.1.3. A CA without any key usage may sign: `openssl req -x509` makes such.
fn check_may_sign(certificate: &X509Certificate<'_>) -> Result<(), CaError> {
    let constraints = certificate.basic_constraints().map_err(|_| CaError::BadCertificate)?;
    if !constraints.is_some_and(|constraints| constraints.value.ca) {
        return Err(CaError::NotACa);
    }
    let usage = certificate.key_usage().map_err(|_| CaError::BadCertificate)?;
    if usage.is_some_and(|usage| !usage.value.key_cert_sign()) {
        return Err(CaError::MayNotSign);
    }
    let now = OffsetDateTime::now_utc();
    if now < certificate.validity().not_before.to_datetime() {
        return Err(CaError::NotYetValid);
    }
    if now > certificate.validity().not_after.to_datetime() {
        return Err(CaError::Expired);
    }
    Ok(())
}

fn read_key_id(certificate: &X509Certificate<'_>) -> Option<Vec<u8>> {
    match certificate.get_extension_unique(&OID_X509_EXT_SUBJECT_KEY_IDENTIFIER).ok()??.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
        _ => None,
    }
}

fn read_permitted(certificate: &X509Certificate<'_>) -> Option<String> {
    let constraints = certificate.name_constraints().ok()??;
    constraints.value.permitted_subtrees.as_ref()?.iter().find_map(|subtree| match subtree.base {
        GeneralName::DNSName(base) => Some(base.trim_start_matches('.').to_owned()),
        _ => None,
    })
}
