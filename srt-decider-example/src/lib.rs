//! A decider for `srt-proxy`.
#![deny(unsafe_code)]
pub mod ask;
pub mod disguise;
pub mod graphql;
pub mod header;
pub mod json;
pub mod limits;
pub mod path;
pub mod query;
pub mod reach;
pub mod text;
