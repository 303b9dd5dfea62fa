//! The filtering proxy: terminates TLS, checks where a name really leads, asks a decider about every
//! request, and forwards only what was allowed.
//!
//! The way of a request: [`start`] → [`serve`] → [`ingress`] → [`pipeline`] → {[`decider`], [`dial`], [`http`],
//! [`tls`]}. All of them may use [`limits`]; `http` and `tls` know nothing of the pipeline.
#![deny(unsafe_code)]

pub mod args;
pub mod attach;
pub mod control;
pub mod decider;
pub mod dial;
pub mod events;
pub mod fds;
pub mod governor;
pub mod http;
pub mod ingress;
pub mod limits;
pub mod log;
pub mod pipeline;
pub mod policy;
pub mod prefixed;
pub mod serve;
pub mod session;
pub mod start;
mod sys;
pub mod timer;
pub mod tls;
pub mod wire;
