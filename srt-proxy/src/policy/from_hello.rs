//! The policy of a proxy that has a decider and no settings.

use std::sync::Arc;

use srt_shared::decider::Hello;
use srt_shared::field_name::FieldName;
use srt_shared::lists::Lists;
use srt_shared::settings::AmbiguousTarget;

use super::termination::Terminating;
use super::{HostRules, Policy, Termination};
use crate::args::Config;
use crate::decider::Link;
use crate::dial::{AddressPolicy, Guard};
use crate::limits;
use crate::tls::LeafCache;

impl Policy {
    /// The lists are the hello's, names must not lead into private networks, and what cannot be looked into is
    /// refused.
    pub fn from_hello(hello: Hello, decider: Link, leaves: Option<Arc<LeafCache>>, config: &Config) -> Self {
        let lists = Arc::new(hello.into_lists());
        let guard = Guard::new(AddressPolicy {
            lists: Arc::clone(&lists),
            deny_private: true,
            allowed: config.allow_resolved.clone(),
            denied: config.deny_resolved.clone(),
        });
        let termination = match leaves {
            None => Termination::Off("TLS cannot be terminated: no CA was given"),
            Some(leaves) => Termination::On(Terminating {
                leaves,
                exclude: Arc::new(Lists::default()),
                max_tunnels: config.max_tunnels,
                handshake: limits::CLIENT_HANDSHAKE,
            }),
        };
        Self {
            hosts: HostRules::from_hello(lists),
            decider: Some(decider),
            guard,
            termination,
            opaque_tunnels: false,
            host_match: true,
            refuse_trace: true,
            plaintext_header_set: config.plaintext_header_set,
            ambiguous_target: AmbiguousTarget::AsSpelled,
            // Deciders written for the reference are never shown one, and may take it for a URL.
            refuse_odd_targets: true,
            strip: config.strip_response_headers.iter().map(FieldName::as_str).collect(),
        }
    }
}
