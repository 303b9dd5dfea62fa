//! Harness of the end-to-end tests: the binaries under test as processes, and everything around them.
#![deny(unsafe_code)]

pub mod binary;
pub mod program;
pub mod proxy;
pub mod sandbox;
pub mod sandbox_run;
pub mod sys;
pub mod terminal;
