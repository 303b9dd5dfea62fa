//! The command lines of `srt-launch` and `srt`: what the user typed.
//!
//! Everything behind the command's name is the command's, our own options' names too.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;

use clap::{Args, Parser, ValueHint};
use srt_shared::domain::{DomainPattern, ListKind};

use crate::completions::Shell;

/// What both programs know.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Read settings from this file instead of ~/.srt-settings.json
    #[arg(short, long, value_name = "FILE")]
    pub settings: Option<PathBuf>,

    /// Take every warning for an error
    #[arg(long)]
    pub strict: bool,

    /// Say on stderr what is done (also with SRT_DEBUG in the environment)
    #[arg(short, long)]
    pub debug: bool,

    /// Print what the sandbox would be, with the reason for each line, and run nothing
    #[arg(long)]
    pub explain: bool,

    /// With --explain: as JSON
    #[arg(long, requires = "explain")]
    pub json: bool,

    /// Print completions for a shell and run nothing
    #[arg(long, value_name = "SHELL")]
    pub completions: Option<Shell>,
}

/// `srt-launch`
#[derive(Debug, Parser)]
#[command(
    name = "srt-launch",
    version,
    about = "Runs a command in a Linux sandbox built from a settings file",
    after_help = "\
Without a proxy the command has no network.

Examples:
  # what may be read and written comes from ~/.srt-settings.json
  srt-launch --no-network -- make test

  # a CI runner's proxy, one for many sandboxes, on an inherited descriptor
  srt-launch --proxy-fd 3 --name build-42 --allow registry.example.org -- npm ci

  # what would the sandbox be, and why?
  srt-launch --explain -- make test

Exit status: the command's own, 128 and the signal's number if one ended it, 127 if it was not found,
126 if it cannot be executed, 125 for every failure of ours, and then it has not run."
)]
pub struct LaunchArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "its fields have docs")]
    pub common: Common,

    /// Give the command no network, and say nothing about it
    #[arg(long, group = "uplink")]
    pub no_network: bool,

    /// Attach to the srt-proxy behind this SOCK_SEQPACKET socket
    #[arg(long, value_name = "FD", group = "uplink")]
    pub proxy_fd: Option<RawFd>,

    /// Lead the network to the HTTP proxy behind this unix socket
    #[arg(long, value_name = "PATH", group = "uplink")]
    pub proxy_unix: Option<PathBuf>,

    /// Lead the network to the HTTP proxy at this address
    #[arg(long, value_name = "HOST:PORT", group = "uplink", value_parser = parse_address)]
    pub proxy: Option<String>,

    /// Name of the sandbox in the proxy's events and in the report at the end
    #[arg(long, value_name = "NAME", requires = "proxy_fd")]
    pub name: Option<String>,

    /// A host that this sandbox may reach besides those of the proxy's settings; repeatable
    #[arg(long, value_name = "HOST", requires = "proxy_fd", value_parser = parse_allowed)]
    pub allow: Vec<DomainPattern>,

    /// Let the command keep this descriptor; repeatable
    #[arg(long, value_name = "FD")]
    pub pass_fd: Vec<RawFd>,

    /// Start the command in this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub chdir: Option<PathBuf>,

    /// Set a variable for the command; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub setenv: Vec<(OsString, OsString)>,

    /// Take a variable from the command; repeatable
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub unsetenv: Vec<OsString>,

    /// The command and its arguments, which all that follows its name are
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `srt`
#[derive(Debug, Parser)]
#[command(
    name = "srt",
    version,
    about = "Runs a command that is not trusted: it reaches the files and hosts that the settings allow, and nothing else",
    after_help = "\
Other uses, by the first word of all (`srt -- check` runs a program of that name):
  srt check              say what holds on this machine, and what to change where something does not
  srt proxy ARGUMENTS    run srt-proxy

Examples:
  srt npm test
  srt \"curl example.com | head\"        a single argument with blanks is a shell command
  srt -c 'cat *.md; ls'                the same, said explicitly
  srt -s strict.json -- ./install.sh

Settings (~/.srt-settings.json), for instance:
  {\"network\": {\"allowedDomains\": [\"*.npmjs.org\"], \"deniedDomains\": []},
   \"filesystem\": {\"denyRead\": [\"~/.ssh\"], \"allowWrite\": [\".\"], \"denyWrite\": [\".env\"]}}

Exit status: the command's own, 128 and the signal's number if one ended it, 127 if it was not found,
126 if it cannot be executed, 125 for every failure of ours, and then it has not run."
)]
pub struct SrtArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "its fields have docs")]
    pub common: Common,

    /// Run this string with bash (or sh); what follows are its arguments
    #[arg(short = 'c', value_name = "STRING", allow_hyphen_values = true)]
    pub shell_command: Option<OsString>,

    /// Replace the network settings by each line that comes on this descriptor
    #[arg(long, value_name = "FD", value_parser = clap::value_parser!(i32).range(3..))]
    pub control_fd: Option<RawFd>,

    /// Do not report at the end what was refused
    #[arg(short, long)]
    pub quiet: bool,

    /// Append what was refused to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub violations: Option<PathBuf>,

    /// The command and its arguments, which all that follows its name are
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn parse_variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some(("", _)) | None => Err("write NAME=VALUE".to_owned()),
        Some((name, value)) => Ok((name.into(), value.into())),
    }
}

/// One with a value would take nothing away, and nobody would know.
fn parse_name(text: &str) -> Result<OsString, String> {
    if text.is_empty() || text.contains('=') { Err("write NAME".to_owned()) } else { Ok(text.into()) }
}

/// What is no address would only be found out connection by connection, by the command.
fn parse_address(text: &str) -> Result<String, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or_default();
    let bracketed = host.starts_with('[') && host.ends_with(']');
    let host_fits = !host.is_empty() && !host.contains('/') && (bracketed || !host.contains(':'));
    let port_fits = port.parse::<u16>().is_ok_and(|port| port > 0);
    if host_fits && port_fits { Ok(text.to_owned()) } else { Err("write HOST:PORT".to_owned()) }
}

fn parse_allowed(text: &str) -> Result<DomainPattern, String> {
    DomainPattern::parse_settings(text, ListKind::Allowed).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn variables_are_written_as_they_are_meant() {
        assert_eq!(parse_variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(parse_name("A"), Ok("A".into()));
        assert!(["A", "=b", ""].into_iter().all(|text| parse_variable(text).is_err()));
        assert!(["A=b", "A=", ""].into_iter().all(|text| parse_name(text).is_err()));
    }

    fn srt(args: &[&str]) -> SrtArgs {
        SrtArgs::try_parse_from(std::iter::once(&"srt").chain(args)).unwrap()
    }

    #[test]
    fn what_follows_the_command_is_the_commands() {
        for (args, command) in [
            (&["echo", "--debug", "-c", "x"][..], &["echo", "--debug", "-c", "x"][..]),
            (&["-d", "python3", "-c", "print(1)"], &["python3", "-c", "print(1)"]),
            (&["--", "-odd", "--"], &["-odd", "--"]),
            (&["npx", "-y", "pkg", "--", "x"], &["npx", "-y", "pkg", "--", "x"]),
        ] {
            let parsed = srt(args);
            assert_eq!(parsed.command, command, "{args:?}");
            assert_eq!(parsed.shell_command, None);
        }
        assert!(srt(&["-d", "true"]).common.debug);
        assert!(!srt(&["true", "-d"]).common.debug);
    }

    #[test]
    fn a_misspelt_option_is_not_the_command() {
        for args in [&["srt-launch", "--chdri", "/", "true"][..], &["srt-launch", "-x", "true"]] {
            let error = LaunchArgs::try_parse_from(args).unwrap_err().to_string();
            assert!(error.contains(args[1]), "{error}");
        }
        let error = SrtArgs::try_parse_from(["srt", "--setings", "x", "true"]).unwrap_err().to_string();
        assert!(error.contains("--settings"), "{error}");
    }

    #[test]
    fn control_descriptors_are_numbers_above_two() {
        for bad in ["0", "1", "2", "-1", "abc", "3.5", "0x10", ""] {
            let args = ["srt".to_owned(), format!("--control-fd={bad}"), "true".to_owned()];
            assert!(SrtArgs::try_parse_from(args).is_err(), "{bad:?}");
        }
        assert_eq!(srt(&["--control-fd", "3", "true"]).control_fd, Some(3));
    }

    #[test]
    fn the_proxy_is_an_address() {
        let parse = |address| LaunchArgs::try_parse_from(["srt-launch", "--proxy", address, "true"]);
        for bad in ["", "x", ":1", "h:", "h:0", "h:65536", "http://h:1", "::1:80", "h:p"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        for good in ["127.0.0.1:8080", "[::1]:80", "proxy.corp:3128"] {
            assert_eq!(parse(good).unwrap().proxy.as_deref(), Some(good));
        }
    }

    #[test]
    fn only_one_way_out() {
        let args = ["srt-launch", "--no-network", "--proxy", "127.0.0.1:1", "true"];
        assert!(LaunchArgs::try_parse_from(args).is_err());
        LaunchArgs::command().debug_assert();
        SrtArgs::command().debug_assert();
    }
}
