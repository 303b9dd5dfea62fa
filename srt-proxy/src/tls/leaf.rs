//! Minting: the certificate shown to a client for one host.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    sign::{CertifiedKey, SigningKey},
};
use srt_shared::{domain::Host, secret::Secret};
use thiserror::Error;
use time::OffsetDateTime;

use super::{
    der::{self, BIT_STRING, SEQUENCE},
    issuer::Issuer,
    provider,
};
use crate::limits;

/// The longest common name (RFC 5280 appendix A.1, `ub-common-name`).
const COMMON_NAME: usize = 64;

/// The key of every leaf.
pub(super) struct LeafKey {
    public: KeyPair,
    /// Parsed once: handshakes and leaves share it.
    signing: Arc<dyn SigningKey>,
}

impl LeafKey {
    /// Makes a P-256 key.
    pub(super) fn generate() -> Result<Self, MintError> {
        let public = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let der = Secret::from(public.serialize_der());
        let signing = provider::load_key(&PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der.expose())))
            .map_err(MintError::Sign)?;
        Ok(Self { public, signing })
    }
}

/// A minted certificate with its key, and when to mint the next one.
pub(super) struct Leaf {
    pub(super) certified: Arc<CertifiedKey>,
    pub(super) renew_at: SystemTime,
}

/// Mints a certificate for `host`.
///
/// The profile is what the strictest clients ask for: Authority Key Identifier (Python 3.13, RFC 5280 section
/// 4.2.1.1), random serial (NSS refuses two certificates of one issuer and serial), SAN (RFC 6125), explicit
/// `CA:FALSE`, server authentication as the only purpose (Go, webpki), key usage for signatures only.
pub(super) fn mint(issuer: &Issuer, key: &LeafKey, host: &Host, now: SystemTime) -> Result<Leaf, MintError> {
    let (not_before, not_after) = choose_validity(issuer, now)?;
    let mut serial = [0; 16];
    provider::fill_random(&mut serial).map_err(|_| MintError::Random)?;
    // DER integers are signed, and a serial number must be positive (RFC 5280 section 4.1.2.2).
    serial[0] &= 0x7f;

    let mut params = CertificateParams::default();
    params.not_before = not_before;
    params.not_after = not_after;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.distinguished_name = name_subject(host);
    params.subject_alt_names = vec![match host {
        Host::Name(name) => SanType::DnsName(name.as_str().try_into()?),
        Host::Addr(addr) => SanType::IpAddress(*addr),
    }];
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = issuer.key_id.is_some();

    let mut chain = vec![sign(issuer, &params, key)?];
    if !issuer.self_issued {
        // A client may trust only what signed our CA.
        chain.push(issuer.certificate.clone());
    }
    Ok(Leaf {
        certified: Arc::new(CertifiedKey::new(chain, Arc::clone(&key.signing))),
        renew_at: now + Duration::try_from((not_after - now) / 2).unwrap_or_default(),
    })
}

/// Why a certificate could not be made.
#[derive(Debug, Error)]
pub enum MintError {
    /// The CA's validity ended while the proxy ran.
    #[error("the CA's certificate has expired")]
    Expired,
    /// No random serial number.
    #[error("the system has no random numbers")]
    Random,
    /// The certificate could not be written.
    #[error("a certificate cannot be written: {0}")]
    Write(#[from] rcgen::Error),
    /// The certificate could not be signed.
    #[error("a certificate cannot be signed: {0}")]
    Sign(rustls::Error),
}

/// Never longer than the CA's own: some clients want a leaf inside its issuer's dates.
fn choose_validity(issuer: &Issuer, now: SystemTime) -> Result<(OffsetDateTime, OffsetDateTime), MintError> {
    let not_before = OffsetDateTime::from(now - limits::LEAF_BACKDATE).max(issuer.not_before);
    let not_after = OffsetDateTime::from(now + limits::LEAF_VALIDITY).min(issuer.not_after);
    if not_after <= now {
        return Err(MintError::Expired);
    }
    Ok((not_before, not_after))
}

/// A common name for people who look, if it fits. Without one the SAN is marked critical (RFC 5280 section
/// 4.2.1.6), which rcgen sees to.
fn name_subject(host: &Host) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    let host = host.to_string();
    if host.len() <= COMMON_NAME {
        subject.push(DnType::CommonName, host);
    }
    subject
}

/// Lets rcgen write the certificate, puts the CA's name in byte for byte, and signs that.
///
/// rcgen holds an issuer's name as one value for each attribute type, so it drops all but the last of two OUs
/// or several DCs, and no client would find the issuer of such a leaf.
fn sign(
    issuer: &Issuer,
    params: &CertificateParams,
    key: &LeafKey,
) -> Result<CertificateDer<'static>, MintError> {
    let mut naming = CertificateParams::default();
    naming.distinguished_name = DistinguishedName::new();
    naming.key_identifier_method = KeyIdMethod::PreSpecified(issuer.key_id.clone().unwrap_or_default());
    let unsigned = params.signed_by(&key.public, &rcgen::Issuer::new(naming, Unsigned(issuer.algorithm)))?;
    let (tbs, algorithm) =
        name_issuer(unsigned.der(), &issuer.subject).expect("invariant: rcgen writes a certificate");
    let mut signature = vec![0]; // no unused bits
    signature.extend(issuer.sign(&tbs).map_err(MintError::Sign)?);
    let signature = der::element(BIT_STRING, &[&signature]);
    Ok(der::element(SEQUENCE, &[&tbs, algorithm, &signature]).into())
}

/// The part of a certificate that is signed, with `issuer` in place of the issuer's name, and the algorithm
/// (RFC 5280 section 4.1).
fn name_issuer<'a>(certificate: &'a [u8], issuer: &[u8]) -> Option<(Vec<u8>, &'a [u8])> {
    let (_, mut fields) = der::take(&mut &*certificate)?;
    let (_, mut tbs) = der::take(&mut fields)?;
    let (algorithm, _) = der::take(&mut fields)?;
    let before = tbs;
    for _version_serial_algorithm in 0..3 {
        der::take(&mut tbs)?;
    }
    let before = &before[..before.len() - tbs.len()];
    der::take(&mut tbs)?;
    Some((der::element(SEQUENCE, &[before, issuer, tbs]), algorithm))
}

/// A key that leaves the signature empty: what rcgen writes is changed before it is signed.
struct Unsigned(&'static rcgen::SignatureAlgorithm);

impl PublicKeyData for Unsigned {
    fn der_bytes(&self) -> &[u8] {
        &[]
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.0
    }
}

impl rcgen::SigningKey for Unsigned {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
