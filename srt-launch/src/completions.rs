//! `--completions`: a script that tells a shell how to complete our command lines.
//!
//! What such a script has to know beyond options is where they end: from the command's name on the line is that
//! command's, and is completed as it would be without us.

use std::fmt::Write;
use std::io::{self, Write as _};

use clap::{Arg, ArgAction, CommandFactory, ValueEnum, ValueHint};

use crate::subcommand::Subcommand;

/// Shells with completions.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[expect(missing_docs, reason = "they are their names")]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script for a program with these options and subcommands.
pub fn print<P: CommandFactory>(shell: Shell, subcommands: &[Subcommand]) {
    // Whoever reads no further has what he wanted.
    let _ = io::stdout().write_all(script::<P>(shell, subcommands).as_bytes());
}

/// The script for a program with these options and subcommands.
fn script<P: CommandFactory>(shell: Shell, subcommands: &[Subcommand]) -> String {
    let mut command = P::command();
    // Adds --help and --version.
    command.build();
    let program = command.get_name();
    let options: Vec<Opt> = command.get_arguments().filter_map(Opt::of).collect();
    let (template, parts) = match shell {
        Shell::Bash => (include_str!("completions/template.bash"), bash(&options, subcommands)),
        Shell::Zsh => (include_str!("completions/template.zsh"), zsh(&options, subcommands)),
        Shell::Fish => (include_str!("completions/template.fish"), fish(program, &options, subcommands)),
    };
    let names = [("@PROGRAM@", program.to_owned()), ("@FUNCTION@", function(program))];
    names.into_iter().chain(parts).fold(template.to_owned(), |text, (hole, part)| text.replace(hole, &part))
}

type Parts = Vec<(&'static str, String)>;

fn function(program: &str) -> String {
    format!("_{}", program.replace('-', "_"))
}

/// An option, as far as it matters here.
struct Opt {
    short: Option<char>,
    long: Option<String>,
    about: String,
    value: Option<Value>,
    repeatable: bool,
}

struct Value {
    name: String,
    kind: Kind,
}

/// What a value may be.
enum Kind {
    File,
    Folder,
    OneOf(Vec<String>),
    /// Nothing a shell could know.
    Other,
}

impl Opt {
    fn of(arg: &Arg) -> Option<Self> {
        if arg.is_positional() {
            return None;
        }
        let value = arg.get_action().takes_values().then(|| Value {
            name: arg
                .get_value_names()
                .and_then(|names| names.first())
                .map(ToString::to_string)
                .unwrap_or_default(),
            kind: Kind::of(arg),
        });
        Some(Self {
            short: arg.get_short(),
            long: arg.get_long().map(str::to_owned),
            about: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            value,
            repeatable: matches!(arg.get_action(), ArgAction::Append | ArgAction::Count),
        })
    }

    fn spellings(&self) -> Vec<String> {
        let short = self.short.map(|letter| format!("-{letter}"));
        let long = self.long.as_deref().map(|long| format!("--{long}"));
        short.into_iter().chain(long).collect()
    }
}

impl Kind {
    fn of(arg: &Arg) -> Self {
        let choices: Vec<String> =
            arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        match arg.get_value_hint() {
            _ if !choices.is_empty() => Self::OneOf(choices),
            ValueHint::DirPath => Self::Folder,
            ValueHint::AnyPath | ValueHint::FilePath => Self::File,
            _ => Self::Other,
        }
    }
}

fn names(subcommands: &[Subcommand]) -> String {
    subcommands.iter().map(|one| one.name()).collect::<Vec<_>>().join(" ")
}

/// All spellings of the options that `wanted` picks.
fn spellings(options: &[Opt], wanted: impl Fn(&Opt) -> bool) -> Vec<String> {
    options.iter().filter(|option| wanted(option)).flat_map(Opt::spellings).collect()
}

fn bash(options: &[Opt], subcommands: &[Subcommand]) -> Parts {
    let letters = |valued: bool| -> String {
        options
            .iter()
            .filter(|option| option.value.is_some() == valued)
            .filter_map(|option| option.short)
            .collect()
    };
    let mut values = String::new();
    for option in options {
        let does = match option.value.as_ref().map(|value| &value.kind) {
            // Files are what is offered where we offer nothing.
            None | Some(Kind::File) => continue,
            Some(Kind::Folder) => "compopt -o dirnames".to_owned(),
            Some(Kind::OneOf(choices)) => {
                format!("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", choices.join(" "))
            }
            Some(Kind::Other) => "compopt +o default +o bashdefault".to_owned(),
        };
        let _ = writeln!(values, "                {}) {does} ;;", option.spellings().join(" | "));
    }
    vec![
        ("@OPTIONS@", spellings(options, |_| true).join(" ")),
        ("@LONG_WITH_VALUE@", {
            let valued = options.iter().filter(|option| option.value.is_some());
            valued.filter_map(|option| option.long.clone()).collect::<Vec<_>>().join("|")
        }),
        ("@LETTERS@", letters(false)),
        ("@LETTERS_WITH_VALUE@", letters(true)),
        ("@VALUES@", values.trim().to_owned()),
        ("@SUBCOMMANDS@", names(subcommands)),
    ]
}

fn zsh(options: &[Opt], subcommands: &[Subcommand]) -> Parts {
    let specs = options.iter().map(|option| {
        let valued = option.value.is_some();
        let spellings = option.spellings();
        // `+`: the value may be joined to the letter; `=`: or to the word, behind that character.
        let names: Vec<String> = spellings
            .iter()
            .map(|name| match (valued, name.starts_with("--")) {
                (false, _) => name.clone(),
                (true, true) => format!("{name}="),
                (true, false) => format!("{name}+"),
            })
            .collect();
        let head = match names.as_slice() {
            [one] if option.repeatable => format!("'*'{one}"),
            [one] => one.clone(),
            several => format!("'({})'{{{}}}", spellings.join(" "), several.join(",")),
        };
        let about = escaped(&option.about, "\\[]");
        let value = option.value.as_ref().map_or_else(String::new, |value| {
            let does = match &value.kind {
                Kind::File => "_files".to_owned(),
                Kind::Folder => "_files -/".to_owned(),
                Kind::OneOf(choices) => format!("({})", choices.join(" ")),
                Kind::Other => " ".to_owned(),
            };
            format!(":{}:{does}", escaped(&value.name, "\\:"))
        });
        format!("{head}{}", quoted(&format!("[{about}]{value}")))
    });
    let own = subcommands.iter().map(|one| quoted(&format!("{}:{}", one.name(), one.about())));
    vec![
        ("@OPTIONS@", specs.collect::<Vec<_>>().join(" \\\n        ")),
        ("@SUBCOMMANDS@", own.collect::<Vec<_>>().join(" ")),
    ]
}

fn fish(program: &str, options: &[Opt], subcommands: &[Subcommand]) -> Parts {
    let mut lines = String::new();
    let (name, at_options) = (function(program), format!("_{}_at_options", function(program)));
    for option in options {
        let _ = write!(lines, "complete -c {program} -n {at_options}");
        if let Some(letter) = option.short {
            let _ = write!(lines, " -s {letter}");
        }
        if let Some(long) = &option.long {
            let _ = write!(lines, " -l {long}");
        }
        let _ = match option.value.as_ref().map(|value| &value.kind) {
            None => Ok(()),
            Some(Kind::File) => write!(lines, " -r -F"),
            Some(Kind::Folder) => write!(lines, " -x -a '(__fish_complete_directories)'"),
            Some(Kind::OneOf(choices)) => write!(lines, " -x -a '{}'", choices.join(" ")),
            Some(Kind::Other) => write!(lines, " -x"),
        };
        let _ = writeln!(lines, " -d {}", quoted_for_fish(&option.about));
    }
    for one in subcommands {
        let about = quoted_for_fish(one.about());
        let _ =
            writeln!(lines, "complete -c {program} -n _{name}_at_first_word -a {} -d {about}", one.name());
    }
    vec![
        ("@OPTIONS@", lines.trim_end().to_owned()),
        ("@WITH_VALUE@", spellings(options, |option| option.value.is_some()).join(" ")),
    ]
}

fn escaped(text: &str, special: &str) -> String {
    text.chars().flat_map(|c| special.contains(c).then_some('\\').into_iter().chain([c])).collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn quoted_for_fish(text: &str) -> String {
    format!("'{}'", escaped(text, "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{LaunchArgs, SrtArgs};

    #[test]
    fn no_hole_stays_open() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            for text in [script::<SrtArgs>(shell, &Subcommand::ALL), script::<LaunchArgs>(shell, &[])] {
                assert!(!text.contains("@P") && !text.contains("@F") && !text.contains("S@"), "{text}");
            }
        }
    }

    #[test]
    fn every_option_is_known_with_its_values() {
        let zsh = script::<LaunchArgs>(Shell::Zsh, &[]);
        for line in [
            "'(-s --settings)'{-s+,--settings=}'[Read settings from this file instead of ~/.srt-settings.json]:FILE:_files'",
            "--strict'[Take every warning for an error]'",
            "--chdir='[Start the command in this folder]:DIR:_files -/'",
            "'*'--setenv='[Set a variable for the command; repeatable]:NAME=VALUE: '",
            "--proxy='[Lead the network to the HTTP proxy at this address]:HOST\\:PORT: '",
            "--completions='[Print completions for a shell and run nothing]:SHELL:(bash zsh fish)'",
        ] {
            assert!(zsh.contains(line), "{line} is not in:\n{zsh}");
        }
        let fish = script::<SrtArgs>(Shell::Fish, &Subcommand::ALL);
        for line in [
            "complete -c srt -n __srt_at_options -s s -l settings -r -F -d ",
            "complete -c srt -n __srt_at_options -l strict -d ",
            "complete -c srt -n __srt_at_options -l completions -x -a 'bash zsh fish' -d ",
            "complete -c srt -n __srt_at_first_word -a check -d 'Say what holds on this machine'",
        ] {
            assert!(fish.contains(line), "{line} is not in:\n{fish}");
        }
    }
}
