//! What goes to stderr: lines for the host, and under `--debug` what happens. Never a header value, a query, a body or
//! a credential.
//!
//! A host that reads no further, or has closed its end, loses lines and nothing else. `eprintln!` panics there.

use std::fmt::Display;
use std::io::{self, Write};

/// Sets up logging. Without `debug` only warnings are shown.
pub fn init(debug: bool) {
    let level = if debug { tracing::Level::DEBUG } else { tracing::Level::WARN };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        // It would be reported with `eprintln!`.
        .log_internal_errors(false)
        .init();
}

/// Tells the host.
pub fn tell(line: impl Display) {
    // In one write, so that lines of several threads do not mix.
    let _ = io::stderr().write_all(format!("srt-proxy: {line}\n").as_bytes());
}
