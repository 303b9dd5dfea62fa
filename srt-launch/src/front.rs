//! `srt-launch` behind its command line, and what `srt` has in common with it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::errno::Errno;
use nix::unistd::getpid;
use srt_shared::attach::{Attach, ListenerKind};
use srt_shared::settings::{Loaded, Settings};

use crate::apply::{Failure, Step};
use crate::args::LaunchArgs;
use crate::exit::{self, End};
use crate::interpreter::Reason;
use crate::launch::{self, Outcome, Uplink};
use crate::plan::{Explanation, Inputs, Network, edit, trust_environment};
use crate::prepare::{self, PrepareError, Voice, Wishes};
use crate::proxy::{Ignored, Relay, RelayTarget, report};
use crate::{connect, hint, say, sys, trust};

/// The exit status of the connect helper, if this program was started under its name.
pub fn connect(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let program = args.next()?;
    if Path::new(&program).file_name() != Some(OsStr::new(connect::NAME)) {
        return None;
    }
    let words: Vec<String> = args.map_while(|word| word.into_string().ok()).collect();
    Some(match words.as_slice() {
        [host, port] => connect::run(host, port),
        _ => {
            say::err(format_args!("sandbox proxy: usage: {} HOST PORT", program.display()));
            exit::code(exit::OWN_FAILURE)
        }
    })
}

/// Help and version are no failures; anything else is ours, not the command's.
pub fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() { exit::code(exit::OWN_FAILURE) } else { ExitCode::SUCCESS }
}

/// Runs `srt-launch`, and says how it is to end.
pub fn launch(args: LaunchArgs) -> End {
    let voice = Voice::new("srt-launch", &args.common);
    end(try_launch(args, &voice), &voice)
}

/// How a program ends, which says why if it could not run the command.
pub fn end(result: Result<End, Box<dyn std::error::Error>>, voice: &Voice) -> End {
    result.unwrap_or_else(|e| {
        voice.error(&e);
        exit::OWN_FAILURE.into()
    })
}

fn try_launch(args: LaunchArgs, voice: &Voice) -> Result<End, Box<dyn std::error::Error>> {
    if args.command.is_empty() && !args.common.explain {
        return Err("no command; see srt-launch --help".into());
    }
    // Before anything is opened: a number that is free now would soon be a descriptor of ours.
    if let Some(fd) = args.pass_fd.iter().find(|fd| !sys::is_open(**fd)) {
        return Err(format!("--pass-fd {fd}: not open").into());
    }
    let loaded = prepare::settings(&args.common, voice)?;
    let sets = args.setenv.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
    let wishes = Wishes {
        chdir: args.chdir.clone(),
        env_edits: sets.chain(args.unsetenv.iter().map(|name| (name.clone(), None))).collect(),
        pass_fds: args.pass_fd.clone(),
        ..wishes(&loaded)
    };
    let uplink = uplink(&args, &loaded.settings, voice)?;
    let network = if matches!(uplink, Uplink::None) { Network::None } else { Network::Proxy };
    let inputs = prepare::inputs(&loaded, network, wishes)?;
    if args.common.explain {
        return Ok(explain(&inputs, args.common.json, voice)?.into());
    }
    if let Uplink::Relay(relay) = &uplink {
        warn_of_absent(relay, voice)?;
    }
    let outcome = run(&inputs, &args.command, uplink, voice)?;
    tell_violations(&outcome, &loaded.settings, &args.command, args.name.as_deref());
    Ok(outcome.end)
}

fn uplink(
    args: &LaunchArgs,
    settings: &Settings,
    voice: &Voice,
) -> Result<Uplink, Box<dyn std::error::Error>> {
    let relay = |http| Uplink::Relay(Relay { http, socks: None });
    if let Some(fd) = args.proxy_fd {
        let name = args.name.clone().unwrap_or_else(|| format!("srt-launch-{}", getpid()));
        return Ok(attach(adopt("--proxy-fd", fd)?, name, args)?);
    }
    if let Some(path) = &args.proxy_unix {
        return Ok(relay(RelayTarget::Unix(path.clone())));
    }
    if let Some(address) = &args.proxy {
        return Ok(relay(RelayTarget::Tcp(address.clone())));
    }
    if !args.no_network && !settings.network.allowed_domains.is_empty() {
        voice.warn(
            "the command has no network: give --proxy-fd, --proxy-unix or --proxy, or say --no-network",
        )?;
    }
    Ok(Uplink::None)
}

fn attach(
    socket: OwnedFd,
    name: String,
    args: &LaunchArgs,
) -> Result<Uplink, srt_shared::attach::AttachError> {
    let request = Attach::new(name, vec![ListenerKind::Proxy], args.allow.clone())?;
    Ok(Uplink::Attach { socket, request })
}

/// A proxy of the host may also be started while the command runs, so this is no error of its own.
pub fn warn_of_absent(relay: &Relay, voice: &Voice) -> Result<(), PrepareError> {
    relay.absent().iter().try_for_each(|text| voice.warn(text))
}

/// Takes over a descriptor that the caller opened for us.
pub fn adopt(flag: &str, fd: RawFd) -> io::Result<OwnedFd> {
    sys::adopt(fd).map_err(|errno| io::Error::other(format!("{flag} {fd}: {}", errno.desc())))
}

/// Files of the settings that hold secrets of ours: no command may read the key that signs what it trusts.
fn hidden_files(settings: &Settings) -> Vec<PathBuf> {
    let ca = settings.network.tls_terminate.as_ref().and_then(|tls| tls.ca.as_ref());
    ca.map(|files| PathBuf::from(&files.key)).and_then(|key| key.canonicalize().ok()).into_iter().collect()
}

/// Prints the plan.
pub fn explain(inputs: &Inputs, json: bool, voice: &Voice) -> Result<i32, Box<dyn std::error::Error>> {
    let plan = prepare::plan(inputs)?;
    prepare::tell(&plan, voice)?;
    let explanation = Explanation::new(&plan, inputs);
    let mut out = io::stdout().lock();
    let written = if json { writeln!(out, "{:#}", explanation.json()) } else { write!(out, "{explanation}") };
    match written {
        // The reader of a long explanation may have seen enough.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(0),
    }
}

/// Computes the plan and runs it. Files come and go meanwhile: then the plan is made anew.
pub fn run(
    inputs: &Inputs,
    argv: &[OsString],
    mut uplink: Uplink,
    voice: &Voice,
) -> Result<Outcome, Box<dyn std::error::Error>> {
    let roots = inputs.env.get(OsStr::new("SSL_CERT_FILE")).map(PathBuf::from);
    let tls = inputs.settings.network.tls_terminate.as_ref();
    let extra: Vec<PathBuf> =
        tls.into_iter().flat_map(|tls| &tls.extra_ca_cert_paths).map(|path| inputs.home_path(path)).collect();
    let trusting = |ca_pem: &str, env: &mut _| {
        trust_environment(env, &trust::places());
        edit(env, &inputs.env_edits);
        trust::provide(ca_pem, roots.as_deref(), &extra)
    };
    let mut told = false;
    let result = prepare::until_a_plan_fits(inputs, |plan| {
        if !std::mem::replace(&mut told, true) {
            prepare::tell(&plan, voice)?;
        }
        let again = uplink.try_clone()?;
        let uplink = std::mem::replace(&mut uplink, again);
        let mut warnings = Vec::new();
        let result = launch::run(plan, argv, uplink, &trusting, &mut |text| warnings.push(text.to_owned()));
        for warning in warnings {
            voice.warn(&warning)?;
        }
        if let Err(failure) = &result
            && failure.is_stale_plan()
        {
            voice.debug(&format!("{failure}: files have come or gone since they were looked at"));
        }
        Ok::<_, Box<dyn std::error::Error>>(result)
    })?;
    Ok(result.unwrap_or_else(|failure| {
        tell(&failure, reason_not_found(&failure, inputs, argv), voice);
        Outcome::failed(failure.exit_status())
    }))
}

/// Says what failed and what to change.
fn tell(failure: &Failure, not_found: Option<Reason>, voice: &Voice) {
    let hint = match not_found {
        Some(reason @ Reason::NoInterpreter(_)) => {
            return voice.error(&format!("cannot {} {}: {reason}", failure.step, failure.object));
        }
        Some(reason @ Reason::Hidden) => Some(reason.to_string()),
        None => hint::hint(failure).map(str::to_owned),
    };
    voice.error(failure);
    if let Some(hint) = hint {
        voice.error(&format!("hint: {hint}"));
    }
}

/// Why the command was not found, where the system's own words would lead astray.
fn reason_not_found(failure: &Failure, inputs: &Inputs, argv: &[OsString]) -> Option<Reason> {
    if failure.step != Step::Command || failure.errno != Errno::ENOENT as i32 {
        return None;
    }
    let mut env = inputs.env.clone();
    edit(&mut env, &inputs.env_edits);
    Reason::find(argv.first()?, env.get(OsStr::new("PATH")).map(OsString::as_os_str), &inputs.cwd)
}

/// Says what was refused, `ignoreViolations` for this command aside, and in which sandbox if it was given a name.
pub fn tell_violations(outcome: &Outcome, settings: &Settings, command: &[OsString], name: Option<&str>) {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let ignored = Ignored::of_command(&settings.ignore_violations, &words.join(" "));
    if let Some(text) = report(&outcome.told, &ignored, name) {
        say::err(text);
    }
}

/// What both programs hand from the settings to the plan.
pub fn wishes(loaded: &Loaded) -> Wishes {
    Wishes { hidden: hidden_files(&loaded.settings), ..Wishes::default() }
}
