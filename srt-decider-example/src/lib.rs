//! A decider for `srt-proxy`: first-match rules from a file, credentials, a log.
//!
//! From the outside in: [`launch`] starts the proxy and forwards signals, [`link`] holds the socket, [`answer`]
//! keeps track of what was asked, [`policy`] decides by [`rules`]. A [`rule`] has [`conditions`], each in a module
//! of its own; [`reach`] is how strictly they look.
#![deny(unsafe_code)]

pub mod answer;
pub mod args;
pub mod ask;
pub mod audit;
pub mod check;
pub mod conditions;
pub mod credentials;
pub mod disguise;
pub mod graphql;
pub mod header;
pub mod json;
pub mod launch;
pub mod limits;
pub mod link;
pub mod path;
pub mod policy;
pub mod query;
pub mod reach;
pub mod request;
pub mod rule;
pub mod rules;
pub mod sys;
pub mod text;
