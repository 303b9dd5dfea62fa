//! `srt`: one settings file, the proxy and the launcher together.
#![deny(unsafe_code)]

use std::env;
use std::ffi::OsStr;
use std::process::ExitCode;

use clap::Parser;
use srt_launch::args::{SrtArgs, print_completions};
use srt_launch::{check, compose, exit, front};

fn main() -> ExitCode {
    if let Some(status) = front::connect(env::args_os()) {
        return status;
    }
    let rest = env::args_os().skip(2);
    match env::args_os().nth(1).as_deref().and_then(OsStr::to_str) {
        Some("proxy") => return exit::code(compose::run_proxy(rest)),
        Some("check") => return exit::code(check::run(rest)),
        _ => {}
    }
    let args = match SrtArgs::try_parse() {
        Ok(args) => args,
        Err(e) => return front::usage(&e),
    };
    if let Some(shell) = args.common.completions {
        print_completions::<SrtArgs>(shell);
        return ExitCode::SUCCESS;
    }
    exit::code(compose::run(args))
}
