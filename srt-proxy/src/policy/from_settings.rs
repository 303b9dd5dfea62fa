//! The policy of a proxy that has a settings file, with or without a decider.

use std::sync::Arc;
use std::time::Duration;

use srt_shared::decider::Hello;
use srt_shared::domain::DomainPattern;
use srt_shared::lists::Lists;
use srt_shared::settings::{AmbiguousTarget, CaFiles, Network};

use super::hosts::SettingsLists;
use super::termination::{Terminating, authority};
use super::{HostRules, Policy, Termination, TerminationError};
use crate::args::Config;
use crate::decider::Link;
use crate::dial::{AddressPolicy, Guard};
use crate::tls::LeafCache;

/// A decider beside settings: how to ask it, and the lists of its hello.
#[derive(Debug, Clone)]
pub struct Decider {
    /// How to ask it.
    pub link: Link,
    /// Its lists.
    pub hello: Hello,
}

/// Why settings cannot be put into force.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The CA.
    #[error(transparent)]
    Termination(#[from] TerminationError),
    /// A key this release cannot enforce: going on without it would be something else than was asked for.
    #[error("network.{0} is not supported by this release; remove it")]
    Unsupported(&'static str),
}

/// Makes policies from settings, keeping what must not change with them: one CA for the whole run, because the
/// clients' trust is set up once.
#[derive(Debug)]
pub struct SettingsPolicies {
    leaves: Option<Arc<LeafCache>>,
    decider: Option<Decider>,
    config: Config,
}

impl SettingsPolicies {
    /// Prepares for `network`: whether TLS is terminated, and by which CA, is settled here. A CA from a descriptor
    /// takes the place of the settings'.
    pub fn new(
        network: &Network,
        ca: Option<Arc<LeafCache>>,
        decider: Option<Decider>,
        config: Config,
    ) -> Result<Self, SettingsError> {
        let leaves = match (&network.tls_terminate, ca) {
            (None, _) => None,
            (Some(_), Some(leaves)) => Some(leaves),
            (Some(tls), None) => {
                let files: Option<&CaFiles> = tls.ca.as_ref();
                Some(Arc::new(LeafCache::new(authority(files)?)))
            }
        };
        Ok(Self { leaves, decider, config })
    }

    /// The policy of one session under `network`, which may reach `session` besides.
    pub fn policy(&self, network: &Network, session: &[DomainPattern]) -> Result<Policy, SettingsError> {
        refuse_unsupported(network)?;
        let hello = self.decider.as_ref().map(|decider| decider.hello.clone().into_lists());
        let denied = denied_by_either(network, self.decider.as_ref());
        let address_lists = Lists::new(network.allowed_domains.clone(), denied);
        // An address literal in a session's list gives no exemption: it is not in these lists.
        let guard = Guard::new(AddressPolicy {
            lists: Arc::new(address_lists),
            deny_private: false,
            allowed: self.config.allow_resolved.clone(),
            denied: [&network.denied_resolved_addresses[..], &self.config.deny_resolved].concat(),
        });
        let session = if network.strict_allowlist { &[] } else { session };
        let lists = SettingsLists {
            lists: Arc::new(Lists::new(network.allowed_domains.clone(), network.denied_domains.clone())),
            reasons: Arc::new(network.denied_domain_reasons.clone()),
            session: Arc::new(Lists::new(session.to_vec(), Vec::new())),
        };
        let judged = self.decider.is_some();
        Ok(Policy {
            hosts: HostRules::from_settings(lists, hello.map(Arc::new)),
            decider: self.decider.as_ref().map(|decider| decider.link.clone()),
            guard,
            termination: self.termination(network),
            opaque_tunnels: !network.refuse_opaque_tunnels,
            host_match: network.require_host_match || judged,
            refuse_trace: judged,
            plaintext_header_set: network.allow_plaintext_header_set || self.config.plaintext_header_set,
            // Nobody judges a path where there is no decider.
            ambiguous_target: if judged {
                network.ambiguous_request_target
            } else {
                AmbiguousTarget::AsSpelled
            },
            refuse_odd_targets: false,
            strip: network.strip_response_headers.iter().collect(),
        })
    }

    /// The CA's certificate, which clients must trust.
    pub fn ca_pem(&self) -> Option<String> {
        self.leaves.as_ref().map(|leaves| leaves.authority().certificate_pem())
    }

    /// A line of settings that leaves `tlsTerminate` out goes back to its defaults and not to tunnels nobody looks
    /// into: clients were told to trust our CA, and a decider to see their requests.
    fn termination(&self, network: &Network) -> Termination {
        let Some(leaves) = &self.leaves else {
            return Termination::Off(
                "TLS is not terminated: network.tlsTerminate was not set when the proxy started",
            );
        };
        let tls = network.tls_terminate.clone().unwrap_or_default();
        Termination::On(Terminating {
            leaves: Arc::clone(leaves),
            exclude: Arc::new(Lists::new(tls.exclude_domains, Vec::new())),
            max_tunnels: tls.max_tunnels as usize,
            handshake: Duration::from_millis(tls.handshake_timeout_ms.into()),
        })
    }
}

/// An address literal that either denies is denied to names that resolve to it.
fn denied_by_either(network: &Network, decider: Option<&Decider>) -> Vec<DomainPattern> {
    let hello = decider.map_or(&[][..], |decider| decider.hello.denied());
    [&network.denied_domains[..], hello].concat()
}

fn refuse_unsupported(network: &Network) -> Result<(), SettingsError> {
    if network.mitm_proxy.is_some() {
        return Err(SettingsError::Unsupported("mitmProxy"));
    }
    if network.parent_proxy.is_some() {
        return Err(SettingsError::Unsupported("parentProxy"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use srt_shared::domain::{Host, ListKind};
    use srt_shared::settings::TlsTerminate;

    use super::*;
    use crate::args::Args;

    fn terminates(at_start: &Network, now: &Network) -> bool {
        let args = Args::try_parse_from(["srt-proxy", "--attach-fd", "3", "--settings-fd", "4"]).unwrap();
        let policies = SettingsPolicies::new(at_start, None, None, args.into_config().unwrap()).unwrap();
        let policy = policies.policy(now, &[]).unwrap();
        policy.termination.of(&Host::from_bare("a.test").unwrap(), 443).is_some()
    }

    #[test]
    fn whether_tls_is_terminated_is_settled_at_the_start() {
        let without = Network::default();
        let with = Network { tls_terminate: Some(TlsTerminate::default()), ..Network::default() };
        assert!(terminates(&with, &with));
        assert!(terminates(&with, &without), "a line that leaves it out must not open the tunnels");
        assert!(!terminates(&without, &with), "no client trusts a CA made later");
        assert!(!terminates(&without, &without));
        let exclude_domains = vec![DomainPattern::parse_settings("a.test", ListKind::Allowed).unwrap()];
        let excluding = TlsTerminate { exclude_domains, ..TlsTerminate::default() };
        assert!(!terminates(&with, &Network { tls_terminate: Some(excluding), ..Network::default() }));
    }
}
