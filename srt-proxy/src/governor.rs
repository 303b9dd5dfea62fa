//! The settings in force, and the policies made from them. Settings are replaced whole; a connection in flight keeps
//! the policy it began with.

use std::sync::{Arc, Mutex, PoisonError};

use srt_shared::domain::DomainPattern;
use srt_shared::settings::Network;

use crate::policy::{Policy, SettingsError, SettingsPolicies};

/// Where the policies of sessions come from.
#[derive(Debug)]
pub enum Governor {
    /// A decider alone: one policy for everybody, for ever.
    Fixed(Arc<Policy>),
    /// Settings, which a control descriptor may replace.
    Settings(Box<Governed>),
}

/// Settings in force.
#[derive(Debug)]
pub struct Governed {
    policies: SettingsPolicies,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    generation: u64,
    network: Arc<Network>,
}

/// A policy, and from which generation of the settings it was made.
#[derive(Debug, Clone)]
pub struct Dated {
    generation: u64,
    /// The policy.
    pub policy: Arc<Policy>,
}

impl Governor {
    /// Puts first settings into force.
    pub fn settings(policies: SettingsPolicies, network: Network) -> Result<Self, SettingsError> {
        policies.policy(&network, &[])?;
        let current = Mutex::new(Current { generation: 0, network: Arc::new(network) });
        Ok(Self::Settings(Box::new(Governed { policies, current })))
    }

    /// Replaces the settings. On an error those in force stay.
    pub fn replace(&self, network: Network) -> Result<(), SettingsError> {
        if let Self::Settings(governed) = self {
            governed.policies.policy(&network, &[])?;
            let mut current = governed.lock();
            current.generation += 1;
            current.network = Arc::new(network);
        }
        Ok(())
    }

    /// The first policy of a session that may reach `allowed` besides. Under a decider alone an attach list widens
    /// nothing.
    pub fn policy(&self, allowed: &[DomainPattern]) -> Result<Dated, SettingsError> {
        match self {
            Self::Fixed(policy) => Ok(Dated { generation: 0, policy: Arc::clone(policy) }),
            Self::Settings(governed) => {
                let (generation, network) = {
                    let current = governed.lock();
                    (current.generation, Arc::clone(&current.network))
                };
                Ok(Dated { generation, policy: Arc::new(governed.policies.policy(&network, allowed)?) })
            }
        }
    }

    /// Whether `dated` was made from the settings in force.
    pub fn is_current(&self, dated: &Dated) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::Settings(governed) => governed.lock().generation == dated.generation,
        }
    }

    /// The CA's certificate, which clients must trust.
    pub fn ca_pem(&self) -> Option<String> {
        match self {
            Self::Fixed(policy) => policy.termination.ca_pem(),
            Self::Settings(governed) => governed.policies.ca_pem(),
        }
    }
}

impl Governed {
    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
