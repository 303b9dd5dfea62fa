//! What crosses a process boundary in srt: the settings file, the decider and attach protocols, event
//! records, host patterns and classes of addresses.
//!
//! Nothing here does I/O on a socket or knows an async runtime: both ends of each protocol use the same types.
#![deny(unsafe_code)]

pub mod address;
pub mod attach;
pub mod decider;
pub mod domain;
pub mod event;
pub mod field_name;
pub mod glob;
pub mod json;
pub mod limits;
pub mod lists;
pub mod secret;
pub mod settings;
