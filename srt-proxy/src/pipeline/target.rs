//! Who a request is meant for. A [`Target`] is made from the one place that decides it, the request target or
//! the CONNECT line; everything else the client says (Host, server name) must name the same, or is refused.

use std::fmt;
use std::num::NonZeroU16;
use std::sync::Arc;

use srt_shared::domain::Host;

use crate::http::{RequestHead, Scheme, Version};
use crate::pipeline::refuse::Refusal;

/// A canonical host and port, and whether TLS is spoken to it. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    host: Host,
    port: u16,
    scheme: Scheme,
    /// As a `Host` header names it.
    authority: String,
}

impl Target {
    /// The target of a request or a tunnel.
    pub fn new(host: Host, port: NonZeroU16, scheme: Scheme) -> Self {
        let port = port.get();
        let authority = host.authority(port, scheme.default_port().get());
        Self(Arc::new(Inner { host, port, scheme, authority }))
    }

    /// The canonical host.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// The port, never 0.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// Whether TLS is spoken to it.
    pub fn is_tls(&self) -> bool {
        self.0.scheme == Scheme::Https
    }

    /// What the upstream gets as `Host`.
    pub fn authority(&self) -> &str {
        &self.0.authority
    }

    /// Whether a `Host` header names this target: its host in any case, and its port unless that is the default.
    /// Nothing is resolved or normalised on the way, because an upstream would not do it either.
    pub fn is_named_by(&self, host_header: &[u8]) -> bool {
        let authority = self.authority().as_bytes();
        if host_header.eq_ignore_ascii_case(authority) {
            return true;
        }
        // The default port may be spelled out.
        self.port() == self.0.scheme.default_port().get()
            && host_header
                .strip_suffix(self.port().to_string().as_bytes())
                .and_then(|rest| rest.strip_suffix(b":"))
                .is_some_and(|host| host.eq_ignore_ascii_case(authority))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host() {
            Host::Addr(std::net::IpAddr::V6(v6)) => write!(f, "[{v6}]:{}", self.port()),
            host => write!(f, "{host}:{}", self.port()),
        }
    }
}

/// The one `Host` header of a request, or none where the version permits that.
pub fn host_header(head: &RequestHead) -> Result<Option<&[u8]>, Refusal> {
    match head.fields().single("host") {
        Ok(Some(value)) => Ok(Some(value)),
        Ok(None) if head.version() == Version::Http10 => Ok(None),
        Ok(None) => Err(Refusal::bad_request("an HTTP/1.1 request without Host")),
        Err(_) => Err(Refusal::bad_request("more than one Host header")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_header_names_its_target_and_no_other() {
        let target = |host: &str, port, scheme| {
            Target::new(Host::from_authority(host).unwrap(), NonZeroU16::new(port).unwrap(), scheme)
        };
        let https = target("Example.COM", 443, Scheme::Https);
        let odd = target("example.com.", 8443, Scheme::Https);
        let v6 = target("[2001:DB8::1]", 80, Scheme::Http);
        for (target, header, named) in [
            (&https, "example.com", true),
            (&https, "EXAMPLE.com:443", true),
            (&https, "example.com:80", false),
            (&https, "example.com.", false),
            (&https, "example.com:", false),
            (&https, "example.com:0443", false),
            (&https, "", false),
            (&https, "evil.example", false),
            (&https, "example.com, evil.example", false),
            (&odd, "example.com:8443", true),
            (&odd, "example.com", false),
            (&odd, "example.com:443", false),
            (&v6, "[2001:db8::1]", true),
            (&v6, "[2001:db8::1]:80", true),
            (&v6, "2001:db8::1", false),
        ] {
            assert_eq!(target.is_named_by(header.as_bytes()), named, "{target} by {header:?}");
        }
    }
}
