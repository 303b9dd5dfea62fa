use std::{collections::BTreeMap, num::NonZeroU16};

use serde_json::Value;

use super::{
    proxy_url::ProxyUrl,
    read::{Object, Reader, Unknown, boolean, list, map, non_empty, number, parsed, parsed_secret, text},
    report::{Place, Report},
    tls::TlsTerminate,
};
use crate::{
    address::AddrRange,
    domain::{DomainPattern, ListKind},
};

/// `network`: what may be reached, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct Network {
    /// Hosts that may be reached: `example.com`, `*.example.com`, `127.0.0.1`, `[::1]`, each with an optional
    /// `:port`. Nothing else is reached.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub allowed_domains: Vec<DomainPattern>,
    /// Hosts that may not be reached, whatever is allowed; `*` and `*:22` are possible too.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub denied_domains: Vec<DomainPattern>,
    /// What to tell whoever is refused by an entry of `deniedDomains`, by that entry's exact text.
    #[cfg_attr(test, schemars(default))]
    pub denied_domain_reasons: BTreeMap<String, String>,
    /// Ask nobody about a host that no list decides, and let no session widen the lists.
    #[cfg_attr(test, schemars(default))]
    pub strict_allowlist: bool,
    /// Addresses and ranges that an allowed name may not resolve to.
    #[cfg_attr(test, schemars(with = "Vec<String>", default))]
    pub denied_resolved_addresses: Vec<AddrRange>,
    /// Unix sockets of the host that may be connected to, by path.
    #[cfg_attr(test, schemars(default))]
    pub allow_unix_sockets: Vec<String>,
    /// Let the command make unix sockets of every kind.
    #[cfg_attr(test, schemars(default))]
    pub allow_all_unix_sockets: bool,
    /// Let the command listen on local ports.
    #[cfg_attr(test, schemars(default))]
    pub allow_local_binding: bool,
    /// Port of an HTTP proxy on this host that takes the place of ours.
    #[cfg_attr(test, schemars(with = "Option<u16>", range(min = 1)))]
    pub http_proxy_port: Option<NonZeroU16>,
    /// Port of a SOCKS5 proxy on this host that takes the place of ours.
    #[cfg_attr(test, schemars(with = "Option<u16>", range(min = 1)))]
    pub socks_proxy_port: Option<NonZeroU16>,
    /// A proxy behind a unix socket that some hosts are reached through.
    pub mitm_proxy: Option<MitmProxy>,
    /// The proxy that this host itself has to use.
    pub parent_proxy: Option<ParentProxy>,
    /// Terminate TLS, so that requests can be seen, judged and given credentials.
    pub tls_terminate: Option<TlsTerminate>,
    /// Let a decider set headers on requests that travel in clear text.
    #[cfg_attr(test, schemars(default))]
    pub allow_plaintext_header_set: bool,
    /// Response headers that are not passed back; case, `-`, `_` and `.` do not count.
    #[cfg_attr(test, schemars(default, inner(length(min = 1))))]
    pub strip_response_headers: Vec<String>,
    /// Refuse every tunnel that cannot be seen into.
    #[cfg_attr(test, schemars(default))]
    pub refuse_opaque_tunnels: bool,
    /// Refuse a request whose `Host` is not the host it is sent to.
    #[cfg_attr(test, schemars(default))]
    pub require_host_match: bool,
    /// What becomes of a request target that two upstreams could read differently.
    #[cfg_attr(test, schemars(default))]
    pub ambiguous_request_target: AmbiguousTarget,
    /// Only read on macOS.
    #[cfg_attr(test, schemars(default))]
    pub allow_mach_lookup: Vec<String>,
}

/// `network.ambiguousRequestTarget`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub enum AmbiguousTarget {
    /// Answer 400.
    #[default]
    Refuse,
    /// Forward it as the client spelled it.
    AsSpelled,
    /// Forward it with dot segments resolved and slashes collapsed.
    Normalize,
}

/// `network.mitmProxy`
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct MitmProxy {
    /// Path of its unix socket.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub socket_path: String,
    /// Hosts that go through it, in the grammar of `allowedDomains`.
    #[cfg_attr(test, schemars(with = "Vec<String>", length(min = 1)))]
    pub domains: Vec<DomainPattern>,
}

/// `network.parentProxy`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct ParentProxy {
    /// For plain requests: `http://`, `https://` or `socks5h://`, perhaps with `user:password@`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub http: Option<ProxyUrl>,
    /// For tunnels.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub https: Option<ProxyUrl>,
    /// Hosts, domains and address ranges that are reached without it, separated by commas.
    pub no_proxy: Option<String>,
}

impl Network {
    pub(super) fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let network = Self {
            allowed_domains: o.required("allowedDomains", domains(ListKind::Allowed)).unwrap_or_default(),
            denied_domains: o.required("deniedDomains", domains(ListKind::Denied)).unwrap_or_default(),
            denied_domain_reasons: o.optional("deniedDomainReasons", map(text)).unwrap_or_default(),
            strict_allowlist: o.optional("strictAllowlist", boolean).unwrap_or_default(),
            denied_resolved_addresses: o
                .optional("deniedResolvedAddresses", list(parsed(str::parse::<AddrRange>)))
                .unwrap_or_default(),
            allow_unix_sockets: o.optional("allowUnixSockets", list(text)).unwrap_or_default(),
            allow_all_unix_sockets: o.optional("allowAllUnixSockets", boolean).unwrap_or_default(),
            allow_local_binding: o.optional("allowLocalBinding", boolean).unwrap_or_default(),
            http_proxy_port: o.optional("httpProxyPort", port),
            socks_proxy_port: o.optional("socksProxyPort", port),
            mitm_proxy: o.optional("mitmProxy", MitmProxy::read),
            parent_proxy: o.optional("parentProxy", ParentProxy::read),
            tls_terminate: o.optional("tlsTerminate", TlsTerminate::read),
            allow_plaintext_header_set: o.optional("allowPlaintextHeaderSet", boolean).unwrap_or_default(),
            strip_response_headers: o.optional("stripResponseHeaders", list(non_empty)).unwrap_or_default(),
            refuse_opaque_tunnels: o.optional("refuseOpaqueTunnels", boolean).unwrap_or_default(),
            require_host_match: o.optional("requireHostMatch", boolean).unwrap_or_default(),
            ambiguous_request_target: o
                .optional("ambiguousRequestTarget", parsed(AmbiguousTarget::parse))
                .unwrap_or_default(),
            allow_mach_lookup: o.optional("allowMachLookup", list(text)).unwrap_or_default(),
        };
        for key in network.denied_domain_reasons.keys() {
            if !network.denied_domains.iter().any(|entry| entry.as_str() == key) {
                o.warn_at(
                    "deniedDomainReasons",
                    key,
                    "has no effect: no entry of deniedDomains has exactly this text",
                );
            }
        }
        o.finish(Unknown::Warned);
        Some(network)
    }
}

impl AmbiguousTarget {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "asSpelled" => Ok(Self::AsSpelled),
            "normalize" => Ok(Self::Normalize),
            _ => Err("expected `refuse`, `asSpelled` or `normalize`"),
        }
    }
}

impl MitmProxy {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let socket_path = o.required("socketPath", non_empty);
        let hosts = o.required("domains", domains(ListKind::Allowed));
        if value["domains"].as_array().is_some_and(Vec::is_empty) {
            o.error_at("domains", "expected at least one host");
        }
        o.finish(Unknown::Warned);
        Some(Self { socket_path: socket_path?, domains: hosts? })
    }
}

impl ParentProxy {
    fn read(value: &Value, place: &Place, report: &mut Report) -> Option<Self> {
        let mut o = Object::open(value, place, report)?;
        let proxy = Self {
            http: o.optional("http", parsed_secret(str::parse::<ProxyUrl>)),
            https: o.optional("https", parsed_secret(str::parse::<ProxyUrl>)),
            no_proxy: o.optional("noProxy", text),
        };
        o.finish(Unknown::Warned);
        Some(proxy)
    }
}

/// A list of host patterns.
pub(super) fn domains(kind: ListKind) -> impl Reader<Vec<DomainPattern>> {
    list(parsed(move |text| DomainPattern::parse_settings(text, kind)))
}

fn port(value: &Value, place: &Place, report: &mut Report) -> Option<NonZeroU16> {
    number(1, u16::MAX.into())(value, place, report).and_then(|n| NonZeroU16::new(u16::try_from(n).ok()?))
}
