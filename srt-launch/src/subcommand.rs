//! The words that make `srt` do something else than run a command.

use std::ffi::{OsStr, OsString};

use crate::args::SrtArgs;

/// A use of `srt` besides running a command. It is asked for by the first word, and by no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subcommand {
    /// `srt check`
    Check,
    /// `srt proxy`
    Proxy,
}

impl Subcommand {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Check, Self::Proxy];

    /// What asks for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Proxy => "proxy",
        }
    }

    /// What it does, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Check => "Say what holds on this machine",
            Self::Proxy => "Run srt-proxy",
        }
    }

    /// The one that a word asks for.
    pub fn of(word: &OsStr) -> Option<Self> {
        Self::ALL.into_iter().find(|one| word == one.name())
    }

    /// What to say where options come before such a word. It may be meant either way, and whoever means the other one
    /// would have a program run, or not run, that he did not ask for.
    ///
    /// `words` is the command line that `args` was parsed from, without the program's own name.
    pub fn misplaced(args: &SrtArgs, words: &[OsString]) -> Option<String> {
        // Behind `-c` it is an argument of the shell's.
        let one = args.command.first().filter(|_| args.shell_command.is_none())?;
        let one = Self::of(one)?;
        // From its name on, a command is all of the rest.
        let before = words.len().checked_sub(args.command.len() + 1)?;
        if words.get(before).is_some_and(|word| word == "--") {
            return None;
        }
        let name = one.name();
        let way = match one {
            Self::Check => "`srt check`, which takes no options",
            Self::Proxy => "`srt proxy ARGUMENTS`, with the options of srt-proxy",
        };
        Some(format!(
            "`{name}` must be the first word: {way}; to run a program of that name, write `-- {name}`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn misplaced(words: &[&str]) -> Option<String> {
        let args = SrtArgs::try_parse_from(std::iter::once(&"srt").chain(words)).unwrap();
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        Subcommand::misplaced(&args, &words)
    }

    #[test]
    fn options_before_such_a_word_are_not_guessed_at() {
        for words in [
            &["-d", "check"][..],
            &["-s", "x.json", "check"],
            &["--settings=x.json", "check"],
            &["--strict", "-q", "proxy", "--listen", "127.0.0.1:0"],
            &["--strict", "check", "--", "check"],
            &["--explain", "check"],
        ] {
            let said = misplaced(words).unwrap_or_else(|| panic!("{words:?}"));
            assert!(said.contains("must be the first word") && said.contains("write `-- "), "{said}");
        }
        for words in [
            &["--", "check"][..],
            &["-d", "--", "proxy", "x"],
            &["--strict", "--", "check", "--", "check"],
            &["-d", "./check"],
            &["-d", "env", "check"],
            &["-d", "check it"],
            &["-c", "echo $0", "check"],
            &["-c", "--", "check"],
            &["--explain"],
        ] {
            assert_eq!(misplaced(words), None, "{words:?}");
        }
    }
}
