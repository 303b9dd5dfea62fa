//! The sandbox launcher: computes a plan from the settings and the file system, then applies it.
#![deny(unsafe_code)]

pub mod bpf;
pub mod plan;
pub mod proxy;
pub mod trust;

/// Exit status of our own failures, as `env` and `timeout` use it.
pub const EXIT_OWN_FAILURE: i32 = 125;
