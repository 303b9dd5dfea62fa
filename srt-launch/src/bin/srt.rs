//! `srt`: one settings file, the proxy and the launcher together.
#![deny(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use srt_launch::args::SrtArgs;
use srt_launch::subcommand::Subcommand;
use srt_launch::{check, completions, compose, exit, front, say};

fn main() -> ExitCode {
    if let Some(status) = front::connect(env::args_os()) {
        return status;
    }
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let rest = || words.iter().skip(1).cloned();
    match words.first().and_then(|word| Subcommand::of(word)) {
        Some(Subcommand::Proxy) => return exit::code(compose::run_proxy(rest())),
        Some(Subcommand::Check) => return exit::code(check::run(rest())),
        None => {}
    }
    let args = match SrtArgs::try_parse() {
        Ok(args) => args,
        Err(e) => return front::usage(&e),
    };
    if let Some(shell) = args.common.completions {
        completions::print::<SrtArgs>(shell, &Subcommand::ALL);
        return ExitCode::SUCCESS;
    }
    if let Some(why) = Subcommand::misplaced(&args, &words) {
        say::err(format_args!("srt: {why}"));
        return exit::code(exit::OWN_FAILURE);
    }
    exit::code(compose::run(args))
}
