//! Rules with their credentials: what is needed to answer.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use srt_shared::decider::{Decision, Edits};
use thiserror::Error;

use crate::{
    ask::Ask,
    credentials::{CredentialError, Kept},
    rule::{Action, Rule},
    rules::{Choice, Rules, RulesError},
};

/// Rules, and the finished edits of each that allows.
#[derive(Debug)]
pub struct Policy {
    rules: Rules,
    /// In the order of the rules; empty for those that do not allow.
    edits: Vec<Edits>,
}

/// What was decided about a request, and by which rule, if one applied.
#[derive(Debug)]
pub struct Decided<'p> {
    /// The rule.
    pub rule: Option<&'p Rule>,
    /// The decision.
    pub decision: Decision,
}

/// Why a rules file is not in force.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The file.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// A credential that the file names.
    #[error("{}:{line}: credential: {error}", file.display())]
    Credential {
        /// The rules file.
        file: PathBuf,
        /// Where it names the credential.
        line: usize,
        /// What is wrong with it.
        error: CredentialError,
    },
}

impl Policy {
    /// Reads a rules file and the credentials that it names.
    ///
    /// # Errors
    /// [`PolicyError`], with file and line.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let rules = Rules::read(path)?;
        let edits = rules.rules().iter().map(|rule| finish_edits(rule, path)).collect::<Result<_, _>>()?;
        Ok(Self { rules, edits })
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The environment variables that hold credentials.
    pub fn credential_variables(&self) -> impl Iterator<Item = &str> {
        self.rules.rules().iter().filter_map(|rule| match &rule.action {
            Action::Allow(grant) => match &grant.credential.as_ref()?.kept {
                Kept::Variable(name) => Some(&**name),
                Kept::File(_) => None,
            },
            _ => None,
        })
    }

    /// Decides about a request.
    pub fn decide(&self, ask: &Ask<'_>) -> Decided<'_> {
        let (at, decision) = match self.rules.decide(ask, |_, _| {}) {
            Choice::Allow(at) => (Some(at), Decision::Allow(self.edits[at].clone())),
            Choice::Deny(at, denial) => (at, Decision::Deny(denial)),
            Choice::NeedBody(at, max) => (Some(at), Decision::NeedBody(max)),
        };
        Decided { rule: at.map(|at| &self.rules.rules()[at]), decision }
    }
}

/// The policy in force, which a reload replaces for the requests that follow.
#[derive(Debug)]
pub struct CurrentPolicy {
    path: PathBuf,
    policy: Mutex<Arc<Policy>>,
}

/// What a reload could not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloaded {
    /// Everything is in force.
    Fully,
    /// The proxy was told at the start which hosts to ask about; it refuses further ones until it is restarted.
    HostsKept,
}

impl CurrentPolicy {
    /// Loads a rules file.
    ///
    /// # Errors
    /// As [`Policy::load`].
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let policy = Mutex::new(Arc::new(Policy::load(path)?));
        Ok(Self { path: path.into(), policy })
    }

    /// The policy of this moment.
    pub fn now(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// As [`Policy::load`]; the policy is then as before.
    pub fn reload(&self) -> Result<Reloaded, PolicyError> {
        let new = Arc::new(Policy::load(&self.path)?);
        let old = std::mem::replace(
            &mut *self.policy.lock().unwrap_or_else(PoisonError::into_inner),
            Arc::clone(&new),
        );
        let is_same = old.rules.hello() == new.rules.hello();
        Ok(if is_same { Reloaded::Fully } else { Reloaded::HostsKept })
    }
}

fn finish_edits(rule: &Rule, path: &Path) -> Result<Edits, PolicyError> {
    let Action::Allow(grant) = &rule.action else { return Ok(Edits::default()) };
    let Some(source) = &grant.credential else { return Ok(grant.edits.clone()) };
    let cred = source.read().map_err(|error| PolicyError::Credential {
        file: path.into(),
        line: source.line,
        error,
    })?;
    let edits = Edits::new(grant.edits.set().to_vec(), grant.edits.remove().to_vec(), Some(cred));
    Ok(edits.expect("invariant: the edits were checked, and a credential adds nothing to check"))
}
