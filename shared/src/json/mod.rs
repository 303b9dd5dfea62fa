//! Strict JSON: refuses what two parsers could read differently.
//!
//! `serde_json` lets a repeated key of a map win silently and fills an `Option` from `null`. A policy must not
//! depend on which of two values a program happens to take, so [`check`] passes over the text first and refuses
//! repeated keys (compared after unescaping), `null` where the caller says so, a byte order mark, lone
//! surrogates, and anything too deep or too long. What it accepts can go to `serde_json`.
//!
//! [`Reader`] is the same reader one value at a time, for messages on the hot path.

mod check;
mod path;
mod reader;
mod write;

pub use check::{JsonError, Limits, Null, check};
pub use reader::{Fault, ReadError, Reader};
pub use write::{write_latin1, write_str, write_u64};
