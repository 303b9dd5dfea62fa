//! Hosts, and the patterns of the allow and deny lists.
//!
//! There are three readers on purpose. [`Host`] reads what a *client* typed: it is lenient about case, the
//! final dot and odd characters that exist in DNS, and strict about everything that could make two programs
//! see two different hosts. [`DomainPattern`] reads what a *policy* says, in the decider's grammar or in that
//! of the settings file: both are strict, because a rule that is misread protects nothing.

mod authority;
mod host;
mod name;
mod pattern;

pub use authority::{Authority, AuthorityError};
pub use host::{Host, HostError};
pub use name::DomainName;
pub use pattern::{DomainPattern, HostPattern, ListKind, PatternError};
