use serde_json::Value;

use super::{
    network::domains,
    read::{Object, Unknown, list, non_empty, number},
    report::{Place, Report},
};
use crate::domain::{DomainPattern, ListKind};

/// `network.tlsTerminate`
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
#[cfg_attr(test, schemars(extend("dependentRequired" = {"caCertPath": ["caKeyPath"], "caKeyPath": ["caCertPath"]})))]
pub struct TlsTerminate {
    /// Certificate and key of the signing authority; one is made in memory if there is none.
    #[cfg_attr(test, schemars(flatten))]
    pub ca: Option<CaFiles>,
    /// Hosts whose tunnels are not terminated, in the grammar of `allowedDomains`.
    #[cfg_attr(test, schemars(with = "Vec<String>", default))]
    pub exclude_domains: Vec<DomainPattern>,
    /// Files with further certificates for the trust bundle of the command.
    #[cfg_attr(test, schemars(default, inner(length(min = 1))))]
    pub extra_ca_cert_paths: Vec<String>,
    /// How many tunnels are terminated at once.
    #[cfg_attr(test, schemars(default = "TlsTerminate::default_max_tunnels", range(min = 1, max = 65536)))]
    pub max_tunnels: u32,
    /// How long a handshake may take, in milliseconds from the CONNECT.
    #[cfg_attr(test, schemars(default = "TlsTerminate::default_handshake", range(min = 100, max = 600_000)))]
    pub handshake_timeout_ms: u32,
}

/// `network.tlsTerminate.caCertPath` and `.caKeyPath`, which only make sense together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct CaFiles {
    /// The certificate, PEM.
    #[cfg_attr(test, schemars(rename = "caCertPath", length(min = 1)))]
    pub cert: String,
    /// Its key, PEM. No command can read it.
    #[cfg_attr(test, schemars(rename = "caKeyPath", length(min = 1)))]
    pub key: String,
}

/// An empty object: a CA made in memory, no host excluded.
impl Default for TlsTerminate {
    fn default() -> Self {
        Self {
            ca: None,
            exclude_domains: Vec::new(),
            extra_ca_cert_paths: Vec::new(),
            max_tunnels: Self::default_max_tunnels(),
            handshake_timeout_ms: Self::default_handshake(),
        }
    }
}

impl TlsTerminate {
    fn default_max_tunnels() -> u32 {
        256
    }

    fn default_handshake() -> u32 {
        10_000
    }

    pub(super) fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        if o.has("caCertPath") != o.has("caKeyPath") {
            o.error("caCertPath and caKeyPath must be given together");
        }
        let cert = o.optional("caCertPath", non_empty);
        let key = o.optional("caKeyPath", non_empty);
        let tls = Self {
            ca: cert.zip(key).map(|(cert, key)| CaFiles { cert, key }),
            exclude_domains: o.optional("excludeDomains", domains(ListKind::Allowed)).unwrap_or_default(),
            extra_ca_cert_paths: o.optional("extraCaCertPaths", list(non_empty)).unwrap_or_default(),
            max_tunnels: o
                .optional("maxTunnels", number(1, 65_536))
                .unwrap_or_else(Self::default_max_tunnels),
            handshake_timeout_ms: o
                .optional("handshakeTimeoutMs", number(100, 600_000))
                .unwrap_or_else(Self::default_handshake),
        };
        o.finish(Unknown::Warned);
        Some(tls)
    }
}
