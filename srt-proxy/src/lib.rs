//! The filtering proxy: terminates TLS, checks where a name really leads, asks a decider about every
//! request, and forwards only what was allowed.
#![deny(unsafe_code)]

pub mod dial;
pub mod http;
pub mod limits;
pub mod tls;
