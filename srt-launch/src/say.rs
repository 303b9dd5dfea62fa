//! Words for people.

use std::fmt::Display;
use std::io::{self, Write};

/// A line on stderr. Nobody may be left to read it, or no room to keep it: that is no reason not to go on.
pub fn err(text: impl Display) {
    // In one write, so that what parallel runs say does not mix.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// The same on stdout.
pub fn out(text: impl Display) {
    let _ = writeln!(io::stdout(), "{text}");
}
