use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tempfile::TempDir;

/// Two CAs: the one that the proxy mints with and clients trust, and the one of the upstreams, which the proxy
/// trusts.
#[derive(Debug)]
pub struct Pki {
    dir: TempDir,
    proxy_ca: CertificateDer<'static>,
    upstream_ca: Issuer<'static, KeyPair>,
}

impl Pki {
    /// Makes both.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, issuer) = make_ca("srt test proxy CA");
        fs::write(dir.path().join("proxy-ca.pem"), certificate.pem()).unwrap();
        fs::write(dir.path().join("proxy-ca.key"), issuer.key().serialize_pem()).unwrap();
        let proxy_ca = certificate.der().clone();
        let (certificate, upstream_ca) = make_ca("srt test upstream CA");
        fs::write(dir.path().join("upstream-ca.pem"), certificate.pem()).unwrap();
        Self { dir, proxy_ca, upstream_ca }
    }

    /// The certificate that clients trust, in PEM.
    pub fn proxy_ca_file(&self) -> PathBuf {
        self.dir.path().join("proxy-ca.pem")
    }

    /// The certificate that `--upstream-ca` is given, in PEM.
    pub fn upstream_ca_file(&self) -> PathBuf {
        self.dir.path().join("upstream-ca.pem")
    }

    /// What goes through `--ca-fd`: certificate and private key in PEM.
    pub fn proxy_ca_text(&self) -> Vec<u8> {
        let read = |name| fs::read(self.dir.path().join(name)).unwrap();
        [read("proxy-ca.pem"), read("proxy-ca.key")].concat()
    }

    /// The server side of upstreams by these names.
    pub fn upstream_config(&self, names: &[&str]) -> Arc<ServerConfig> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.upstream_ca).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Arc::new(config)
    }

    /// The client side of tunnels.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.proxy_ca.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    }
}

impl Default for Pki {
    fn default() -> Self {
        Self::new()
    }
}

/// The SHA-256 of everything that can be read, in hex, and how much it was.
pub fn sha256(mut from: impl Read) -> io::Result<(String, u64)> {
    let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().expect("a suite of TLS 1.3");
    let mut hash = suite.common.hash_provider.start();
    let mut buffer = vec![0; 64 * 1024];
    let mut length = 0;
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
        length += n as u64;
    }
    let hex = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((hex, length))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn make_ca(name: &str) -> (rcgen::Certificate, Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key).unwrap();
    (certificate, Issuer::new(params, key))
}
