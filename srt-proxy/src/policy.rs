//! One value that answers all three questions (where, what, where really) for a session.
//!
//! Where its parts come from and how they combine is decided here and nowhere else.

use std::sync::Arc;

use srt_shared::decider::Hello;
use srt_shared::domain::Host;
use srt_shared::field_name::FieldName;
use srt_shared::lists::{ListAnswer, Lists};

use crate::args::Config;
use crate::decider::Link;
use crate::dial::{AddressPolicy, Guard};
use crate::http::StripList;
use crate::pipeline::refuse::Refusal;
use crate::tls::LeafCache;

/// What one session may do.
#[derive(Debug)]
pub struct Policy {
    lists: Arc<Lists>,
    /// Who is asked about each request.
    pub decider: Link,
    /// Which addresses may be dialled.
    pub guard: Guard,
    /// Makes the certificates of terminated tunnels; without it a CONNECT is refused.
    pub leaves: Option<Arc<LeafCache>>,
    /// Whether header sets may travel in cleartext.
    pub plaintext_header_set: bool,
    /// Response headers never passed back.
    pub strip: StripList,
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
            decider,
            guard,
            leaves,
            plaintext_header_set: config.plaintext_header_set,
            strip: strip_list(&config.strip_response_headers),
            max_tunnels: config.max_tunnels,
        }
    }

    /// Question one: may anything go to this host and port?
    pub fn check_host(&self, host: &Host, port: u16) -> Result<(), Refusal> {
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

fn strip_list(names: &[FieldName]) -> StripList {
    let mut list = StripList::default();
    for name in names {
        let added = list.add(name.as_str());
        debug_assert!(added.is_ok());
    }
    list
}
