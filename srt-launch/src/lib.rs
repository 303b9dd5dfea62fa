//! The sandbox launcher: computes a plan from the settings and the file system, then applies it.
//!
//! [`plan`] is pure: what the sandbox will be, as data. [`launch`] is the way from a plan to a command that has run:
//! [`placeholders`] on the host, [`apply`] in the new namespaces, [`init`] as their first process, [`monitor`] outside.
#![deny(unsafe_code)]

pub mod apply;
pub mod args;
pub mod bpf;
pub mod channel;
pub mod check;
pub mod completions;
pub mod compose;
pub mod connect;
pub mod exit;
pub mod front;
pub mod hint;
pub mod init;
mod interpreter;
mod job;
mod keyboard;
pub mod launch;
pub mod limits;
pub mod monitor;
pub mod placeholders;
pub mod plan;
pub mod prepare;
pub mod proxy;
pub mod say;
pub mod shortage;
pub mod subcommand;
mod sys;
pub mod trust;
