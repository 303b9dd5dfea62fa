//! `srt-launch`: arguments, settings, plan, run.
#![deny(unsafe_code)]

use std::env;
use std::process::ExitCode;

use clap::Parser;
use srt_launch::args::LaunchArgs;
use srt_launch::{completions, exit, front};

fn main() -> ExitCode {
    if let Some(status) = front::connect(env::args_os()) {
        return status;
    }
    let args = match LaunchArgs::try_parse() {
        Ok(args) => args,
        Err(e) => return front::usage(&e),
    };
    if let Some(shell) = args.common.completions {
        completions::print::<LaunchArgs>(shell, &[]);
        return ExitCode::SUCCESS;
    }
    exit::code(front::launch(args))
}
