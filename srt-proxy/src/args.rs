//! The command line: what the user typed ([`Args`]), and what the program works with ([`Config`]).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use srt_shared::address::AddrRange;
use srt_shared::field_name::{FieldName, FieldNameError};

use crate::dial::Override;
use crate::fds::FdArg;
use crate::limits;

/// What the user typed.
#[derive(Debug, Parser)]
#[command(
    name = "srt-proxy",
    version,
    about = "A filtering proxy: terminates TLS, checks where a name really leads, and asks a decider about every request",
    after_help = "\
Descriptors are opened by the host that starts srt-proxy and are made non-blocking.

Examples:
  # a listening socket on 3, a socket pair to the decider on 4, the CA's key and certificate on 5
  srt-proxy --listen-fd 3 --decider-fd 4 --ca-fd 5

  # a port of our own, a decider on two pipes, plain HTTP only
  srt-proxy --listen 127.0.0.1:3128 --decider-in 3 --decider-out 4

  # no decider: settings say which hosts may be reached, launchers attach their sandboxes on 3
  srt-proxy --attach-fd 3 --settings-fd 4

  # let one name lead to a server on this machine
  srt-proxy --listen-fd 3 --decider-fd 4 --resolve app.test=127.0.0.1 --allow-resolved 127.0.0.1

Exit status: 0 after SIGTERM, SIGINT, the end of the lifeline, of the decider, or of the last attached
sandbox where nothing else can come; 1 when the listener, the CA, the settings or a file of --upstream-ca
cannot be used; 2 for a wrong command line, for other descriptors that are not open or of the wrong kind,
and for a decider that ends before its hello."
)]
pub struct Args {
    /// Accept on this listening TCP or unix socket
    #[arg(long, value_name = "FD", value_parser = parse_fd, conflicts_with = "listen")]
    listen_fd: Option<RawFd>,

    /// Listen on a loopback address: 127.0.0.0/8, [::1] or localhost
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,

    /// Let --listen take any address of this host (everybody who reaches it can use the proxy)
    #[arg(long, overrides_with = "listen_any_interface")]
    listen_any_interface: bool,

    /// The decider, on one socket for both directions
    #[arg(long, value_name = "FD", value_parser = parse_fd, conflicts_with_all = ["decider_in", "decider_out"])]
    decider_fd: Option<RawFd>,

    /// The decider's messages to us, on a pipe or socket
    #[arg(long, value_name = "FD", value_parser = parse_fd, requires = "decider_out")]
    decider_in: Option<RawFd>,

    /// Our messages to the decider, on a pipe or socket
    #[arg(long, value_name = "FD", value_parser = parse_fd, requires = "decider_in")]
    decider_out: Option<RawFd>,

    /// Serve the sandboxes that launchers attach over this SOCK_SEQPACKET socket
    #[arg(long, value_name = "FD", value_parser = parse_fd)]
    attach_fd: Option<RawFd>,

    /// Read settings (JSON, as in ~/.srt-settings.json) from this descriptor, to its end
    #[arg(long, value_name = "FD", value_parser = parse_fd)]
    settings_fd: Option<RawFd>,

    /// Say nothing of keys in these settings that have no effect: whoever starts us has said it
    #[arg(long, requires = "settings_fd")]
    settings_told: bool,

    /// Replace the settings by each line (JSON, complete settings) that comes on this descriptor
    #[arg(long, value_name = "FD", value_parser = parse_fd, requires = "settings_fd")]
    control_fd: Option<RawFd>,

    /// Stop when this descriptor reaches its end; what is written to it is ignored
    #[arg(long, value_name = "FD", value_parser = parse_fd)]
    lifeline_fd: Option<RawFd>,

    /// Read the CA's certificate and private key (PEM) from this descriptor; without it no TLS is served
    #[arg(long, value_name = "FD", value_parser = parse_fd)]
    ca_fd: Option<RawFd>,

    /// Never pass this response header back (`-`, `_` and `.` are one); repeatable
    #[arg(long, value_name = "NAME", value_parser = parse_field_name)]
    strip_response_header: Vec<FieldName>,

    /// Let the decider set headers and place credentials on cleartext requests
    #[arg(long, overrides_with = "plaintext_header_set")]
    plaintext_header_set: bool,

    /// At most this many terminated tunnels at once
    #[arg(long, value_name = "N", default_value_t = limits::TUNNELS, value_parser = clap::value_parser!(u32).range(1..=65536))]
    max_tunnels: u32,

    /// How long the decider may take for each verdict
    #[arg(long, value_name = "MS", default_value_t = limits::VERDICT_MS, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    decider_timeout_ms: u64,

    /// Let names resolve to this address or range although it is denied by default; repeatable
    #[arg(long, value_name = "CIDR")]
    allow_resolved: Vec<AddrRange>,

    /// Never dial a name that resolves to this address or range; repeatable, wins over --allow-resolved
    #[arg(long, value_name = "CIDR")]
    deny_resolved: Vec<AddrRange>,

    /// Take this address for the name instead of looking it up; still checked; repeatable
    #[arg(long, value_name = "NAME=ADDRESS")]
    resolve: Vec<Override>,

    /// Trust the certificates of this PEM file for upstreams, beside the system's; repeatable
    #[arg(long, value_name = "FILE")]
    upstream_ca: Vec<PathBuf>,

    /// Write one JSON line for each request, refusal and failure to this descriptor
    #[arg(long, value_name = "FD", value_parser = parse_fd)]
    events_fd: Option<RawFd>,

    /// Log what happens to stderr
    #[arg(long, overrides_with = "debug")]
    debug: bool,
}

/// Where to accept connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenOn {
    /// An inherited socket.
    Fd(FdArg),
    /// A socket of our own.
    Address(SocketAddr),
}

/// How to reach the decider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeciderOn {
    /// One socket for both directions.
    Socket(FdArg),
    /// Two descriptors: theirs to us, ours to them.
    Pair(FdArg, FdArg),
}

/// What the program works with: complete, and checked as far as it can be without touching a descriptor.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to accept connections. None only where launchers attach.
    pub listen: Option<ListenOn>,
    /// Where launchers attach.
    pub attach: Option<FdArg>,
    /// How to reach the decider. None only under settings.
    pub decider: Option<DeciderOn>,
    /// Where the settings come from.
    pub settings: Option<FdArg>,
    /// Whether somebody else has told their warnings.
    pub settings_told: bool,
    /// Where further settings come from.
    pub control: Option<FdArg>,
    /// Whose end stops us.
    pub lifeline: Option<FdArg>,
    /// Where the CA comes from.
    pub ca: Option<FdArg>,
    /// Response headers never passed back.
    pub strip_response_headers: Vec<FieldName>,
    /// Whether header sets may travel in cleartext.
    pub plaintext_header_set: bool,
    /// Terminated tunnels at once.
    pub max_tunnels: usize,
    /// Time for each verdict.
    pub decider_timeout: Duration,
    /// Ranges names may resolve to although denied by default.
    pub allow_resolved: Vec<AddrRange>,
    /// Ranges names must not resolve to.
    pub deny_resolved: Vec<AddrRange>,
    /// Fixed addresses of names.
    pub resolve: Vec<Override>,
    /// Further trusted roots for upstreams.
    pub upstream_ca: Vec<PathBuf>,
    /// Where events go.
    pub events: Option<FdArg>,
    /// Whether to log.
    pub debug: bool,
}

/// What is wrong with the command line beyond what the parser sees.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArgsError {
    /// Nowhere to accept.
    #[error("no listener: give --listen-fd FD, --listen HOST:PORT, or --attach-fd FD")]
    NoListener,
    /// Nobody to ask.
    #[error(
        "nobody decides: give --decider-fd FD (or --decider-in FD and --decider-out FD), or --settings-fd FD"
    )]
    NoDecider,
    /// The listening address would be reachable from outside, or is none.
    #[error("--listen {0}: {1}")]
    Listen(String, &'static str),
}

impl Args {
    /// Turns what was typed into what the program works with.
    pub fn into_config(self) -> Result<Config, ArgsError> {
        let fd = |flag| move |number| FdArg { flag, number };
        let listen = match (self.listen_fd, self.listen) {
            (Some(number), _) => Some(ListenOn::Fd(fd("--listen-fd")(number))),
            (None, Some(text)) => match listen_address(&text, self.listen_any_interface) {
                Ok(address) => Some(ListenOn::Address(address)),
                Err(why) => return Err(ArgsError::Listen(text, why)),
            },
            (None, None) if self.attach_fd.is_some() => None,
            (None, None) => return Err(ArgsError::NoListener),
        };
        let decider = match (self.decider_fd, self.decider_in, self.decider_out) {
            (Some(number), _, _) => Some(DeciderOn::Socket(fd("--decider-fd")(number))),
            (None, Some(input), Some(output)) => {
                Some(DeciderOn::Pair(fd("--decider-in")(input), fd("--decider-out")(output)))
            }
            _ if self.settings_fd.is_some() => None,
            _ => return Err(ArgsError::NoDecider),
        };
        Ok(Config {
            listen,
            attach: self.attach_fd.map(fd("--attach-fd")),
            decider,
            settings: self.settings_fd.map(fd("--settings-fd")),
            settings_told: self.settings_told,
            control: self.control_fd.map(fd("--control-fd")),
            lifeline: self.lifeline_fd.map(fd("--lifeline-fd")),
            ca: self.ca_fd.map(fd("--ca-fd")),
            strip_response_headers: self.strip_response_header,
            plaintext_header_set: self.plaintext_header_set,
            max_tunnels: self.max_tunnels as usize,
            decider_timeout: Duration::from_millis(self.decider_timeout_ms),
            allow_resolved: self.allow_resolved,
            deny_resolved: self.deny_resolved,
            resolve: self.resolve,
            upstream_ca: self.upstream_ca,
            events: self.events_fd.map(fd("--events-fd")),
            debug: self.debug,
        })
    }
}

/// `HOST:PORT` where HOST is a literal or `localhost`: a name would have to be resolved, and could lead anywhere.
fn listen_address(text: &str, any_interface: bool) -> Result<SocketAddr, &'static str> {
    let (host, port) = text.rsplit_once(':').ok_or("no port; write HOST:PORT")?;
    if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err("the port is not a number");
    }
    let port: u16 = port.parse().map_err(|_| "the port is not in 0..65535")?;
    let ip = if host.eq_ignore_ascii_case("localhost") {
        IpAddr::from([127, 0, 0, 1])
    } else if let Some(v6) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        IpAddr::V6(v6.parse().map_err(|_| "not an IPv6 address")?)
    } else {
        IpAddr::V4(host.parse().map_err(|_| "the host is not an IP address or localhost")?)
    };
    let loopback = match ip {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => v6 == Ipv6Addr::LOCALHOST,
    };
    if !loopback && !any_interface {
        return Err("not a loopback address; add --listen-any-interface if others shall reach it");
    }
    Ok(SocketAddr::new(ip, port))
}

/// Digits and nothing else: what a host writes as `+3` or `-1` is no number it was given by the kernel.
fn parse_fd(text: &str) -> Result<RawFd, &'static str> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("expected the number of an open descriptor");
    }
    text.parse().map_err(|_| "expected the number of an open descriptor")
}

/// Any case, as header names are.
fn parse_field_name(text: &str) -> Result<FieldName, FieldNameError> {
    FieldName::parse(&text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(args: &[&str]) -> Result<Config, ArgsError> {
        Args::try_parse_from(std::iter::once(&"srt-proxy").chain(args)).unwrap().into_config()
    }

    #[test]
    fn loopback_listens_and_nothing_else_does() {
        for good in ["127.0.0.1:0", "127.9.8.7:80", "[::1]:3128", "localhost:1", "LocalHost:1"] {
            assert!(config(&["--decider-fd", "9", "--listen", good]).is_ok(), "{good}");
        }
        for bad in [
            "0.0.0.0:0",
            "[::]:0",
            ":0",
            "example.com:0",
            "0177.0.0.1:0",
            "127.0.0.1",
            "127.0.0.1:65536",
            "127.0.0.1:http",
            "[::ffff:127.0.0.1]:0",
            "127.0.0.1:+1",
            "127.1:1",
            "::1:80",
        ] {
            assert!(config(&["--decider-fd", "9", "--listen", bad]).is_err(), "{bad}");
        }
        let any = config(&["--decider-fd", "9", "--listen", "0.0.0.0:1", "--listen-any-interface"]);
        assert_eq!(any.unwrap().listen, Some(ListenOn::Address("0.0.0.0:1".parse().unwrap())));
    }

    #[test]
    fn a_listener_and_a_decider_are_needed() {
        assert_eq!(config(&["--decider-fd", "9"]).unwrap_err(), ArgsError::NoListener);
        assert_eq!(config(&["--listen-fd", "3"]).unwrap_err(), ArgsError::NoDecider);
        assert!(config(&["--attach-fd", "3", "--settings-fd", "4"]).is_ok());
        assert!(Args::try_parse_from(["srt-proxy", "--attach-fd", "3", "--control-fd", "4"]).is_err());
        assert!(Args::try_parse_from(["srt-proxy", "--listen-fd", "3", "--decider-in", "4"]).is_err());
    }

    #[test]
    fn a_descriptor_is_a_plain_number() {
        for bad in ["+3", "-1", "", " 3", "0x3", "3.0", "99999999999"] {
            let args = ["srt-proxy", "--listen-fd", "3", &format!("--decider-fd={bad}")];
            assert!(Args::try_parse_from(args).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_switch_may_be_turned_on_twice() {
        let switches = ["--debug", "--plaintext-header-set", "--listen-any-interface"];
        let twice: Vec<_> = ["--listen-fd", "3", "--decider-fd", "4"]
            .iter()
            .chain(&switches)
            .chain(&switches)
            .copied()
            .collect();
        let config = config(&twice).unwrap();
        assert!(config.debug && config.plaintext_header_set);
    }

    #[test]
    fn the_help_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
