//! The rules file, and how it decides.

use std::{fs::File, io::Read, path::Path};

use srt_shared::{
    decider::{Denial, Hello, NeedBody},
    lists::{ListAnswer, Lists},
};

use crate::{
    ask::Ask,
    conditions::Mismatch,
    limits::MAX_RULES_FILE,
    rule::{Action, PassedOver, Rule},
};

mod conditions;
mod document;
mod error;
mod nearest;
mod read;
mod rule;
#[cfg(test)]
mod tests;
mod values;

pub use error::{Fault, RulesError};

/// A rules file, read and checked. Credentials are read apart ([`crate::policy::Policy`]), so that a file can be
/// checked where they are not.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    max_body: NeedBody,
    otherwise: Denial,
    hello: Hello,
    lists: Lists,
}

/// What the rules say about a request, and which of [`Rules::rules`] said it.
#[derive(Debug)]
pub enum Choice {
    /// It may go out.
    Allow(usize),
    /// It is refused, by a rule or because none applies.
    Deny(Option<usize>, Denial),
    /// The body has to be seen first.
    NeedBody(usize, NeedBody),
}

impl Rules {
    /// Reads a file.
    ///
    /// # Errors
    /// [`RulesError`], with file and line.
    pub fn read(path: &Path) -> Result<Self, RulesError> {
        let text = read_file(path).map_err(|fault| RulesError::new(path, 0, fault))?;
        Self::parse(&text, path)
    }

    /// Reads the text of a file. `path` is named in errors, and files named in the rules are beside it.
    ///
    /// # Errors
    /// [`RulesError`], with file and line.
    pub fn parse(text: &str, path: &Path) -> Result<Self, RulesError> {
        read::read(text, path)
    }

    /// The rules, in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What to say first: every host that a rule names.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The first rule that applies decides. `trace` hears of each rule that was passed over, and why.
    pub fn decide(&self, ask: &Ask<'_>, mut trace: impl FnMut(&Rule, &PassedOver)) -> Choice {
        // The proxy keeps to the lists of the hello, which may be older than these rules.
        let host = ask.host().map(|host| self.lists.check(host, ask.req().port));
        if !matches!(host, Some(ListAnswer::Allowed(_))) {
            return Choice::Deny(None, deny("no rule names this host, or it is among denied_hosts"));
        }
        let mut doubt = None;
        for (at, rule) in self.rules.iter().enumerate() {
            match (rule.check(ask), &rule.action) {
                (Ok(()), Action::Allow(_)) => return Choice::Allow(at),
                (Ok(()), Action::Deny(denial)) => return Choice::Deny(Some(at), denial.clone()),
                (Ok(()), Action::NeedBody(max)) => return Choice::NeedBody(at, *max),
                (Err(PassedOver::Mismatch(Mismatch::BodyNotShown)), _) => {
                    return Choice::NeedBody(at, self.max_body);
                }
                (Err(why), _) => {
                    trace(rule, &why);
                    if let PassedOver::Disguise(_) | PassedOver::Mismatch(Mismatch::Spelling(_)) = why {
                        doubt.get_or_insert(why);
                    }
                }
            }
        }
        Choice::Deny(None, self.deny_otherwise(doubt))
    }

    /// Nothing applied. Whoever sent what no allow ever matches is told, or they would look for it in the rules.
    fn deny_otherwise(&self, doubt: Option<PassedOver>) -> Denial {
        let told = doubt.and_then(|doubt| {
            let reason =
                format!("{} ({doubt})", self.otherwise.reason().unwrap_or("no rule allows this request"));
            Denial::new(self.otherwise.status(), Some(&reason)).ok()
        });
        told.unwrap_or_else(|| self.otherwise.clone())
    }
}

/// A 403 with a reason of ours.
pub(crate) fn deny(reason: &str) -> Denial {
    Denial::new(403, Some(reason)).expect("invariant: our own reasons are short and plain")
}

fn read_file(path: &Path) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(|e| Fault::Unreadable(e.to_string()))?.take(MAX_RULES_FILE + 1);
    file.read_to_end(&mut bytes).map_err(|e| Fault::Unreadable(e.to_string()))?;
    if bytes.len() as u64 > MAX_RULES_FILE {
        return Err(Fault::TooLong);
    }
    String::from_utf8(bytes).map_err(|_| Fault::NotUtf8)
}
