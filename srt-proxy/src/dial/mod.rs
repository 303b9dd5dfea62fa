//! From a target to a connection: resolve once, check, dial the address that passed.
//!
//! [`Resolver`] finds a host's addresses, [`Guard`] drops those that a name must not lead to and makes the
//! rest into [`CheckedAddr`]s, and only those can be connected to. [`Dialler::dial`] is that sequence.

mod connect;
mod dialler;
mod dns;
mod guard;
mod hosts;
mod interfaces;
mod resolve;
mod upstream;
mod watched;

pub use connect::ConnectError;
pub use dialler::{DialError, DialFailure, Dialler};
pub use guard::{AddressPolicy, AddressRefused, CheckedAddr, Guard};
pub use resolve::{Override, OverrideError, ResolveError, Resolver};
pub use upstream::Upstream;
