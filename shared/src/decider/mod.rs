//! The decider protocol, version 1: frames, messages and their strictness, for both ends.
//!
//! A frame is a length and one JSON object ([`frame`]). The proxy writes `hello`, `req` and `body` and reads
//! `hello` and `verdict`; a decider does the reverse. Both ends share these types, so that neither can send
//! what the other must refuse:
//!
//! | | proxy | decider |
//! |---|---|---|
//! | `hello` of the proxy | [`encode_hello`] | [`parse_from_proxy`] |
//! | `req` | [`encode_req`] | [`parse_from_proxy`] |
//! | `body` | [`encode_body`] | [`parse_from_proxy`] |
//! | `hello` of the decider | [`parse_from_decider`] | [`Hello::encode`] |
//! | `verdict` | [`parse_from_decider`] | [`Verdict::encode`] |
//!
//! Whatever these readers do not accept breaks the protocol, and a broken protocol ends the link: there is no
//! telling what a decider meant by a message that says something else to another reader.

mod edits;
mod error;
mod fields;
pub mod frame;
mod from_decider;
mod from_proxy;
mod hello;
mod to_decider;
mod verdict;

pub use edits::{Cred, Edits, EditsError, FieldValue, SetField};
pub use error::ProtocolError;
pub use from_decider::{FromDecider, parse_from_decider};
pub use from_proxy::{Body, FromProxy, Req, ReqField, parse_from_proxy};
pub use hello::Hello;
pub use to_decider::{ReqError, ReqRef, encode_body, encode_hello, encode_req};
pub use verdict::{Decision, Denial, DenialError, NeedBody, Verdict};
