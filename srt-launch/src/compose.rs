//! `srt`: starts the proxy beside building the sandbox, runs the command, reports what was refused.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{AccessFlags, access, getpid, pipe2};
use srt_shared::attach::{Attach, ListenerKind};
use srt_shared::event::Event;
use srt_shared::settings::{Loaded, Network as NetworkSettings};

use crate::args::SrtArgs;
use crate::exit::{self, End};
use crate::front;
use crate::launch::Uplink;
use crate::plan::Network;
use crate::prepare::{self, Voice};
use crate::proxy::{Relay, RelayTarget};
use crate::{say, sys};

type Error = Box<dyn std::error::Error>;

/// Runs `srt`, and says how it is to end.
pub fn run(args: SrtArgs) -> End {
    let voice = Voice::new("srt", &args.common);
    front::end(try_run(&args, &voice), &voice)
}

/// `srt proxy`: becomes `srt-proxy`. Returns only if that fails.
pub fn run_proxy(arguments: impl Iterator<Item = OsString>) -> i32 {
    let failed = match beside_us("srt-proxy") {
        Ok(program) => Command::new(program).args(arguments).exec(),
        Err(e) => e,
    };
    say::err(format_args!("srt proxy: {failed}"));
    exit::OWN_FAILURE
}

fn try_run(args: &SrtArgs, voice: &Voice) -> Result<End, Error> {
    let command = command(args)?;
    let loaded = prepare::settings(&args.common, voice)?;
    let inputs = prepare::inputs(&loaded, Network::Proxy, front::wishes(&loaded))?;
    if args.common.explain {
        return Ok(front::explain(&inputs, args.common.json, voice)?.into());
    }
    let violations = args.violations.as_deref().map(open_violations).transpose()?;
    let control = args.control_fd.map(control_descriptor).transpose()?;
    let (uplink, _proxy) = match host_proxies(&loaded.settings.network) {
        Some(relay) => {
            front::warn_of_absent(&relay, voice)?;
            if control.is_some() {
                voice.warn(
                    "--control-fd has no effect: network.httpProxyPort or socksProxyPort names another proxy",
                )?;
            }
            (Uplink::Relay(relay), None)
        }
        None => {
            let proxy = Proxy::start(&loaded, control.as_ref(), voice.is_debug())?;
            (proxy.uplink()?, Some(proxy))
        }
    };
    let outcome = front::run(&inputs, &command, uplink, voice)?;
    if !args.quiet {
        front::tell_violations(&outcome, &loaded.settings, &command, None);
    }
    if let Some(file) = &violations
        && let Err(e) = write_events(file, &outcome.told.events)
    {
        // The command has run, and how it ended is what matters.
        voice.error(&format!("--violations: {e}"));
    }
    if violations.is_some() && outcome.told.unlisted > 0 {
        voice.error(&format!("--violations: {} more events are not listed", outcome.told.unlisted));
    }
    Ok(outcome.end)
}

/// What is to be executed.
fn command(args: &SrtArgs) -> Result<Vec<OsString>, Error> {
    let shell = |string: &OsStr| vec![shell_program().into(), "-c".into(), string.to_owned()];
    match (&args.shell_command, args.command.as_slice()) {
        (Some(string), rest) => Ok([shell(string), rest.to_vec()].concat()),
        (None, []) if args.common.explain => Ok(Vec::new()),
        (None, []) => Err("no command; see srt --help".into()),
        (None, [one]) if is_shell_string(one) => Ok(shell(one)),
        (None, command) => Ok(command.to_vec()),
    }
}

/// A single argument with blanks that names no executable file: how the reference's manual writes commands.
fn is_shell_string(word: &OsStr) -> bool {
    let has_blank = word.as_bytes().iter().any(u8::is_ascii_whitespace);
    has_blank && access(word, AccessFlags::X_OK).is_err()
}

fn shell_program() -> &'static str {
    if ["/bin/bash", "/usr/bin/bash"].iter().any(|path| Path::new(path).exists()) { "bash" } else { "sh" }
}

/// Proxies of the host that take the place of ours.
fn host_proxies(network: &NetworkSettings) -> Option<Relay> {
    let local = |port: std::num::NonZeroU16| RelayTarget::Tcp(format!("127.0.0.1:{port}"));
    let http = network.http_proxy_port.map(local);
    let socks = network.socks_proxy_port.map(local);
    Some(Relay { http: http.clone().or(socks.clone())?, socks })
}

/// Takes the control descriptor, if anything can ever be read from it.
fn control_descriptor(number: RawFd) -> Result<OwnedFd, Error> {
    let fd = front::adopt("--control-fd", number)?;
    let mode = OFlag::from_bits_truncate(fcntl(&fd, FcntlArg::F_GETFL)?);
    if mode & OFlag::O_ACCMODE == OFlag::O_WRONLY {
        return Err(format!("--control-fd {number}: not readable").into());
    }
    if File::from(fd.try_clone()?).metadata()?.is_dir() {
        return Err(format!("--control-fd {number}: a folder, from which nothing can be read").into());
    }
    Ok(fd)
}

/// A running `srt-proxy`, which ends when this process does, however.
pub struct Proxy {
    attach: OwnedFd,
    _lifeline: OwnedFd,
    _child: Child,
}

impl Proxy {
    /// Starts it with the network half of the settings, and perhaps with where more of them come from.
    pub fn start(loaded: &Loaded, control: Option<&OwnedFd>, debug: bool) -> Result<Self, Error> {
        let program = beside_us("srt-proxy")?;
        let (attach, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let (lifeline_end, lifeline) = pipe2(OFlag::O_CLOEXEC)?;
        let mut settings = File::from(memfd_create("srt-settings", MFdFlags::MFD_CLOEXEC)?);
        settings.write_all(&loaded.document)?;
        settings.rewind()?;
        let mut command = Command::new(&program);
        let mut pass = |flag: &str, fd: RawFd| -> io::Result<()> {
            sys::keep_on_exec(fd)?;
            command.arg(flag).arg(fd.to_string());
            Ok(())
        };
        pass("--attach-fd", theirs.as_raw_fd())?;
        pass("--settings-fd", settings.as_raw_fd())?;
        pass("--lifeline-fd", lifeline_end.as_raw_fd())?;
        if let Some(control) = control {
            pass("--control-fd", control.as_raw_fd())?;
        }
        // By us, when we read them.
        command.arg("--settings-told");
        if debug {
            command.arg("--debug");
        }
        // Out of the way of Ctrl-C: the command decides what it means, and may want to say goodbye to a server.
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0).spawn();
        let child = child.map_err(|e| format!("{}: {e}", program.display()))?;
        Ok(Self { attach, _lifeline: lifeline, _child: child })
    }

    /// A way for one sandbox to attach to it.
    pub fn uplink(&self) -> Result<Uplink, Error> {
        let request = Attach::new(format!("srt-{}", getpid()), vec![ListenerKind::Proxy], Vec::new())?;
        Ok(Uplink::Attach { socket: self.attach.try_clone()?, request })
    }
}

/// A program of ours is looked for beside this one, and nowhere else: `PATH` is the caller's, not ours to trust.
fn beside_us(name: &str) -> io::Result<PathBuf> {
    beside(&std::env::current_exe()?.canonicalize()?, name)
}

fn beside(us: &Path, name: &str) -> io::Result<PathBuf> {
    let program = us.with_file_name(name);
    if program.is_file() {
        return Ok(program);
    }
    let text = format!(
        "{} is missing: srt, srt-launch and {name} belong in one folder; copy it there, or build all of them \
         (cargo build --release --bins)",
        program.display()
    );
    Err(io::Error::new(io::ErrorKind::NotFound, text))
}

/// Opened before the command runs: if it cannot be, nothing has run yet, and a command that may write beside it cannot
/// put a link to some other file in its place.
fn open_violations(path: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|e| format!("--violations {}: {e}", path.display()).into())
}

/// One write, so that the lines of runs that share the file do not mix.
fn write_events(mut file: &File, events: &[Event]) -> io::Result<()> {
    let mut lines = Vec::new();
    for event in events {
        serde_json::to_writer(&mut lines, event)?;
        lines.push(b'\n');
    }
    file.write_all(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_beside_us_is_missed_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let us = folder.path().join("srt");
        let text = beside(&us, "srt-proxy").unwrap_err().to_string();
        assert!(text.starts_with(&format!("{}/srt-proxy is missing: ", folder.path().display())), "{text}");
        assert!(text.contains("copy it there, or build") && text.lines().count() == 1, "{text}");
        let there = folder.path().join("srt-proxy");
        std::fs::write(&there, "").unwrap();
        assert_eq!(beside(&us, "srt-proxy").unwrap(), there);
    }
}
