//! From a command line to a serving proxy, in the order that keeps the start short: the CA loads while the decider
//! says hello, the roots when an upstream will need them.

use std::io;
use std::panic;
use std::process::{self, ExitCode};
use std::sync::Arc;

use srt_shared::secret::Secret;
use srt_shared::settings::Settings;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{debug, info};

use crate::args::{Config, DeciderOn, ListenOn};
use crate::attach::serve_attach;
use crate::control::{Control, ControlError};
use crate::decider::{self, Ended, LinkError};
use crate::dial::{Dialler, Resolver};
use crate::events::Events;
use crate::fds::{self, Direction, FdArg, FdError, FdStream, Listener, PacketSocket};
use crate::governor::Governor;
use crate::limits;
use crate::log;
use crate::policy::{Decider, Policy, SettingsError, SettingsPolicies};
use crate::serve::{refuse_waiting, serve};
use crate::session::{Common, Session, Slots};
use crate::sys;
use crate::tls::{Authority, CaError, LeafCache, RootsError, ServerTls, UpstreamTls};

/// Exit status for a wrong command line, and for a decider that ends before its hello.
pub const USAGE: u8 = 2;
const FAILED: u8 = 1;

/// How many tasks a thread polls before it looks for new events, while there are tasks to poll.
const EVENT_INTERVAL: u32 = 2;

/// Why the proxy did not start, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A descriptor of the command line.
    #[error(transparent)]
    Fd(#[from] FdError),
    /// The CA.
    #[error("--ca-fd: {0}")]
    Ca(#[from] CaError),
    /// An `--upstream-ca` file.
    #[error("--upstream-ca: {0}")]
    Roots(#[from] RootsError),
    /// Our own listener.
    #[error("--listen: {0}")]
    Listen(io::Error),
    /// The decider, before its hello.
    #[error(transparent)]
    Decider(#[from] LinkError),
    /// The settings are not valid.
    #[error("--settings-fd: {0}")]
    Settings(String),
    /// The settings cannot be put into force.
    #[error("--settings-fd: {0}")]
    Enforce(#[from] SettingsError),
    /// The control descriptor.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The system.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// The exit status the protocol's document gives this failure.
    pub fn status(&self) -> u8 {
        match self {
            Self::Decider(_) => USAGE,
            // A number that names no such descriptor is a wrong command line; but for these two the protocol's document
            // has a status of their own.
            Self::Fd(e) if !matches!(e.flag(), "--listen-fd" | "--ca-fd") => USAGE,
            _ => FAILED,
        }
    }
}

/// One line to the user, and the status to end with.
pub fn fail(status: u8, error: &dyn std::error::Error) -> ExitCode {
    log::tell(error);
    ExitCode::from(status)
}

/// Runs the proxy until it is told to stop.
pub fn run(config: Config) -> Result<(), StartError> {
    sys::tune_allocator();
    fds::raise_limit();
    end_where_it_panics();
    // When a burst of verdicts wakes hundreds of requests at once, the first of them have their upstream's answer
    // long before the last has been polled; looking for events only every 61 polls would let these wait.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().event_interval(EVENT_INTERVAL).enable_all().build()?;
    let result = runtime.block_on(run_async(config));
    // Blocking tasks (a name being looked up) must not hold up the exit.
    runtime.shutdown_background();
    result
}

/// Ends the process where it panics for want of a thread or a descriptor, until it serves.
///
/// Tokio panics then, and while its `build` unwinds waits for the threads it has already: for ever, in a process that does
/// not look yet whether it is to end.
fn end_where_it_panics() {
    panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let reason = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("panicked");
        log::tell(format_args!(
            "cannot start: {reason}; raise the limit of open files (ulimit -n), of processes (ulimit -u, pids.max) or \
             of memory (ulimit -v)"
        ));
        process::exit(FAILED.into());
    }));
}

async fn run_async(config: Config) -> Result<(), StartError> {
    let mut listener = match &config.listen {
        None => None,
        Some(ListenOn::Fd(arg)) => Some(Listener::adopt(*arg)?),
        Some(ListenOn::Address(address)) => Some(listen(*address)?),
    };
    let decider = config.decider.map(adopt_decider).transpose()?;
    let attach = config.attach.map(PacketSocket::adopt).transpose()?;
    let control = config.control.map(Control::start).transpose()?;
    let lifeline = config.lifeline.map(|arg| FdStream::adopt_pipe(arg, Direction::In)).transpose()?;
    let events = config.events.map_or(Ok(Events::off()), Events::to_fd)?;
    let upstream_tls = UpstreamTls::new(&config.upstream_ca)?;

    let told_to_stop = told_to_stop(lifeline);
    tokio::pin!(told_to_stop);
    let prepared = tokio::select! {
        // First, so that a signal is taken from now on: all of these may have to be waited for.
        biased;
        why = &mut told_to_stop => return why.map(|why| debug!("{why}")).map_err(StartError::from),
        prepared = prepare(decider, &config) => prepared,
    };
    if matches!(prepared, Err(StartError::Decider(_)))
        && let Some(listener) = listener.take()
    {
        refuse_waiting(listener).await?;
    }
    let Prepared { decider, ended, leaves, settings } = prepared?;
    let link = decider.as_ref().map(|decider| decider.link.clone());
    let dialler = Dialler::new(Resolver::new(config.resolve.clone()), upstream_tls);
    let governor = govern(settings.as_ref(), decider, leaves, config)?;
    let common =
        Arc::new(Common { governor, dialler, server_tls: ServerTls::new(), tunnels: Slots::default() });
    drop(panic::take_hook());
    info!("serving");

    let alone = listener.is_none();
    let attached = attach.map(|socket| serve_attach(socket, Arc::clone(&common), events.clone()));
    let mut outcome = Ok("");
    let stop = async {
        outcome = tokio::select! {
            why = &mut told_to_stop => why.map_err(StartError::from),
            () = ended_link(ended) => Ok("the decider is gone"),
            // Without a listener of our own there is nothing left to do once the last sandbox is gone.
            () = finished(attached, alone) => Ok("the last attached sandbox is gone"),
            failed = failed_control(control, &common.governor, settings.as_ref()) => Err(failed.into()),
        };
        // From here on nobody gets a verdict, and what waits for one is refused.
        if let Some(link) = link {
            link.close();
        }
    };
    let served = match listener {
        Some(listener) => {
            let session = Session::new(Arc::clone(&common), Vec::new(), events.clone())?;
            serve(listener, Arc::new(session), stop, limits::DRAIN).await
        }
        None => {
            stop.await;
            Ok(())
        }
    };
    // The last refusals are those somebody will ask about.
    events.flush(limits::DRAIN);
    served?;
    outcome.map(|why| debug!("{why}"))
}

/// What others have to give us before we can serve.
struct Prepared {
    decider: Option<Decider>,
    ended: Option<Ended>,
    leaves: Option<Arc<LeafCache>>,
    settings: Option<Settings>,
}

/// Waits for all of it at once. The first that fails is told at once: a CA that cannot be used does not get better by a
/// hello.
async fn prepare(decider: Option<(FdStream, FdStream)>, config: &Config) -> Result<Prepared, StartError> {
    let (ca, settings, told) = (config.ca, config.settings, config.settings_told);
    let connected = async {
        let Some((input, output)) = decider else { return Ok((None, None)) };
        let (link, hello, ended) = decider::connect(input, output, config.decider_timeout).await?;
        Ok((Some(Decider { link, hello }), Some(ended)))
    };
    let ((decider, ended), leaves, settings) =
        tokio::try_join!(connected, read(ca, load_ca), read(settings, move |arg| read_settings(arg, told)))?;
    Ok(Prepared { decider, ended, leaves, settings })
}

/// Reads what was given; its writer may take its time.
async fn read<T: Send + 'static>(
    from: Option<FdArg>,
    how: impl FnOnce(FdArg) -> Result<T, StartError> + Send + 'static,
) -> Result<Option<T>, StartError> {
    let Some(from) = from else { return Ok(None) };
    let read = tokio::task::spawn_blocking(move || how(from)).await;
    read.map_err(|e| io::Error::other(e.to_string()))?.map(Some)
}

fn adopt_decider(on: DeciderOn) -> Result<(FdStream, FdStream), FdError> {
    match on {
        DeciderOn::Socket(arg) => {
            let stream = FdStream::adopt_socket(arg)?;
            Ok((stream.clone(), stream))
        }
        DeciderOn::Pair(input, output) => {
            Ok((FdStream::adopt_pipe(input, Direction::In)?, FdStream::adopt_pipe(output, Direction::Out)?))
        }
    }
}

/// Who decides: a decider alone, or settings, perhaps with a decider.
fn govern(
    settings: Option<&Settings>,
    decider: Option<Decider>,
    leaves: Option<Arc<LeafCache>>,
    config: Config,
) -> Result<Governor, StartError> {
    match (settings, decider) {
        (None, Some(Decider { link, hello })) => {
            Ok(Governor::Fixed(Arc::new(Policy::from_hello(hello, link, leaves, &config))))
        }
        (Some(settings), decider) => {
            let policies = SettingsPolicies::new(&settings.network, leaves, decider, config)?;
            Ok(Governor::settings(policies, settings.network.clone())?)
        }
        // The command line asks for one of the two.
        (None, None) => Err(StartError::Settings("there are none, and no decider".to_owned())),
    }
}

fn read_settings(arg: FdArg, told: bool) -> Result<Settings, StartError> {
    let document = fds::read_to_end(arg, limits::SETTINGS)?;
    let parsed = Settings::parse(&document).map_err(|problems| StartError::Settings(problems.to_string()))?;
    for warning in parsed.warnings.iter().filter(|_| !told) {
        log::tell(format_args!("{}: {warning}", arg.flag));
    }
    Ok(parsed.settings)
}

fn load_ca(arg: FdArg) -> Result<Arc<LeafCache>, StartError> {
    let pem = Secret::from(fds::read_to_end(arg, limits::CA_BYTES)?);
    Ok(Arc::new(LeafCache::new(Authority::from_pem(&pem)?)))
}

fn listen(address: std::net::SocketAddr) -> Result<Listener, StartError> {
    let listener = std::net::TcpListener::bind(address).map_err(StartError::Listen)?;
    listener.set_nonblocking(true)?;
    if !address.ip().is_loopback() {
        log::tell(format_args!("warning: everybody who reaches {address} can use this proxy"));
    }
    log::tell(format_args!("listening on {}", listener.local_addr()?));
    Ok(Listener::Tcp(listener))
}

async fn told_to_stop(lifeline: Option<FdStream>) -> io::Result<&'static str> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = term.recv() => "SIGTERM",
        _ = int.recv() => "SIGINT",
        () = end_of(lifeline) => "the lifeline has ended",
    })
}

/// What is written to the lifeline means nothing; only its end does.
async fn end_of(lifeline: Option<FdStream>) {
    let Some(mut lifeline) = lifeline else { return std::future::pending().await };
    let mut scratch = [0; 512];
    while !matches!(lifeline.read(&mut scratch).await, Ok(0) | Err(_)) {}
}

async fn ended_link(ended: Option<Ended>) {
    match ended {
        Some(mut ended) => ended.wait().await,
        None => std::future::pending().await,
    }
}

async fn finished(attached: Option<impl Future<Output = ()>>, alone: bool) {
    if let Some(attached) = attached {
        attached.await;
        if alone {
            return;
        }
    }
    std::future::pending().await
}

/// Ready only if the control descriptor fails before it has delivered anything.
async fn failed_control(
    control: Option<Control>,
    governor: &Governor,
    settings: Option<&Settings>,
) -> ControlError {
    if let (Some(control), Some(settings)) = (control, settings)
        && let Err(failed) = control.run(governor, settings).await
    {
        return failed;
    }
    std::future::pending().await
}
