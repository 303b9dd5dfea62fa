//! One rule: a name, when it applies, and what it does then.

use srt_shared::decider::{Denial, Edits, NeedBody};
use thiserror::Error;

use crate::{
    ask::Ask,
    conditions::{Conditions, Mismatch},
    credentials::CredentialSource,
    disguise::{Disguise, check_disguise},
    reach::Reach,
};

/// A rule of a rules file.
#[derive(Debug)]
pub struct Rule {
    /// Its name, for the log and for `--check`.
    pub name: Box<str>,
    /// Where it begins in the file, from 1.
    pub line: usize,
    /// When it applies.
    pub conditions: Conditions,
    /// What it does then.
    pub action: Action,
}

/// What a rule does with a request.
#[derive(Debug)]
pub enum Action {
    /// It goes out, edited.
    Allow(Box<Grant>),
    /// It is refused.
    Deny(Denial),
    /// Its body is looked at, and the rules that follow decide.
    NeedBody(NeedBody),
}

/// What an allow does to a request, the credential not yet read.
#[derive(Debug)]
pub struct Grant {
    /// Headers to set and remove.
    pub edits: Edits,
    /// Where the credential comes from.
    pub credential: Option<CredentialSource>,
    /// The protocols that the connection may be switched to.
    pub upgrade: Vec<Box<str>>,
}

/// Why a rule was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PassedOver {
    /// A condition is not met.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// It would allow, but the request asks to be taken for another one.
    #[error(transparent)]
    Disguise(#[from] Disguise),
    /// It only asks for the body, which was shown.
    #[error("the body was looked at already")]
    BodyShown,
}

impl Rule {
    /// Whether the rule applies to a request.
    ///
    /// # Errors
    /// Why it does not. [`Mismatch::BodyNotShown`] leaves it open.
    pub fn check(&self, ask: &Ask<'_>) -> Result<(), PassedOver> {
        match &self.action {
            Action::Allow(grant) => {
                check_disguise(ask.req(), &grant.upgrade)?;
                Ok(self.conditions.check(ask, Reach::Narrow)?)
            }
            Action::Deny(_) => Ok(self.conditions.check(ask, Reach::Wide)?),
            Action::NeedBody(_) if ask.is_body_shown() => Err(PassedOver::BodyShown),
            Action::NeedBody(_) => Ok(self.conditions.check(ask, Reach::Narrow)?),
        }
    }
}
