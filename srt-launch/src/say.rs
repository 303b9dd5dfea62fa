//! Words for people.

use std::fmt::Display;
use std::io::{self, Write};

/// A line on stderr. Nobody may be left to read it, or no room to keep it: that is no reason not to go on.
pub fn err(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// The same on stdout.
pub fn out(text: impl Display) {
    let _ = writeln!(io::stdout(), "{text}");
}
