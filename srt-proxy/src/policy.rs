//! One value that answers all three questions (where, what, where really) for a session.
//!
//! Where its parts come from and how they combine is decided here and nowhere else.

use std::sync::Arc;

use srt_shared::decider::Hello;
use srt_shared::domain::Host;
use srt_shared::field_name::FieldNameSet;
use srt_shared::lists::{ListAnswer, Lists};

use crate::args::Config;
use crate::decider::Link;
use crate::dial::{AddressPolicy, Guard};
use crate::pipeline::refuse::Refusal;
use crate::tls::LeafCache;

/// What one session may do.
#[derive(Debug)]
pub struct Policy {
    lists: Arc<Lists>,
    /// Host names of letters, digits and hyphens only (RFC 952), as the decider protocol has them: a decider that
    /// uses a strict host parser must not be asked about what it cannot parse.
    plain_names: bool,
    /// Who is asked about each request.
    pub decider: Link,
    /// Which addresses may be dialled.
    pub guard: Guard,
    /// Makes the certificates of terminated tunnels; without it a CONNECT is refused.
    pub leaves: Option<Arc<LeafCache>>,
    /// Whether header sets may travel in cleartext.
    pub plaintext_header_set: bool,
    /// Response headers never passed back.
    pub strip: FieldNameSet,
    /// Terminated tunnels at once.
    pub max_tunnels: usize,
}

impl Policy {
    /// The policy of a proxy that has a decider and no settings: the lists are the hello's, names must not lead
    /// into private networks, and what cannot be looked into is refused.
    pub fn from_hello(hello: Hello, decider: Link, leaves: Option<Arc<LeafCache>>, config: &Config) -> Self {
        let lists = Arc::new(hello.into_lists());
        let guard = Guard::new(AddressPolicy {
            lists: Arc::clone(&lists),
            deny_private: true,
            allowed: config.allow_resolved.clone(),
            denied: config.deny_resolved.clone(),
        });
        Self {
            lists,
            plain_names: true,
            decider,
            guard,
            leaves,
            plaintext_header_set: config.plaintext_header_set,
            strip: config.strip_response_headers.iter().map(|name| name.as_str()).collect(),
            max_tunnels: config.max_tunnels,
        }
    }

    /// Question one: may anything go to this host and port?
    pub fn check_host(&self, host: &Host, port: u16) -> Result<(), Refusal> {
        if self.plain_names && host.name().is_some_and(|name| name.as_str().contains('_')) {
            return Err(Refusal::bad_request("the host name has an underscore"));
        }
        match self.lists.check(host, port) {
            ListAnswer::Allowed(_) => Ok(()),
            ListAnswer::Denied(entry) => {
                Err(Refusal::HostNotAllowed { rule: entry.to_string(), reason: None })
            }
            ListAnswer::NotListed => {
                Err(Refusal::HostNotAllowed { rule: "allowedDomains".to_owned(), reason: None })
            }
        }
    }
}
