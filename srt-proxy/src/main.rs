//! `srt-proxy`: arguments, descriptors, the decider's hello, then serving until told to stop.
#![deny(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use srt_proxy::args::Args;
use srt_proxy::{log, start};

fn main() -> ExitCode {
    let config = match Args::parse().into_config() {
        Ok(config) => config,
        Err(e) => return start::fail(start::USAGE, &e),
    };
    log::init(config.debug);
    match start::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => start::fail(e.status(), &e),
    }
}
