//! From a command line to a serving proxy, in the order that keeps the start short: the CA and the roots load
//! while the decider says hello.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use srt_shared::secret::Secret;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{debug, info};

use crate::args::{Config, DeciderOn, ListenOn};
use crate::decider::{self, Link, LinkError};
use crate::dial::{Dialler, Resolver};
use crate::events::Events;
use crate::fds::{self, Direction, FdError, FdStream, Listener};
use crate::policy::Policy;
use crate::serve::serve;
use crate::session::Session;
use crate::tls::{Authority, CaError, LeafCache, RootsError, UpstreamTls};

/// Exit status for a wrong command line, and for a decider that ends before its hello.
pub const USAGE: u8 = 2;
const FAILED: u8 = 1;

/// Why the proxy did not start.
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
    /// The system.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// The exit status the protocol's document gives this failure.
    pub fn status(&self) -> u8 {
        match self {
            Self::Decider(_) => USAGE,
            _ => FAILED,
        }
    }
}

/// One line to the user, and the status to end with.
pub fn fail(status: u8, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("srt-proxy: {error}");
    ExitCode::from(status)
}

/// Runs the proxy until it is told to stop.
pub fn run(config: Config) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Held until the exit when the start fails: a client that is just connecting then sees a closed connection, as
    // any other client does, and not a port where nobody ever was.
    let mut listener = None;
    let result = runtime.block_on(run_async(config, &mut listener));
    // Blocking tasks (a name being looked up) must not hold up the exit.
    runtime.shutdown_background();
    result
}

async fn run_async(config: Config, held: &mut Option<Listener>) -> Result<(), StartError> {
    *held = Some(match &config.listen {
        ListenOn::Fd(arg) => Listener::adopt(*arg)?,
        ListenOn::Address(address) => listen(*address)?,
    });
    let (input, output) = match config.decider {
        DeciderOn::Socket(arg) => {
            let stream = FdStream::adopt_socket(arg)?;
            (stream.clone(), stream)
        }
        DeciderOn::Pair(input, output) => {
            (FdStream::adopt_pipe(input, Direction::In)?, FdStream::adopt_pipe(output, Direction::Out)?)
        }
    };
    let lifeline = config.lifeline.map(|arg| FdStream::adopt_pipe(arg, Direction::In)).transpose()?;
    let events = config.events.map_or(Ok(Events::off()), Events::to_fd)?;
    let upstream_tls = UpstreamTls::load(&config.upstream_ca)?;
    let ca = config.ca;
    let leaves = tokio::task::spawn_blocking(move || load_ca(ca));

    let (link, hello, mut ended) = decider::connect(input, output, config.decider_timeout).await?;
    let leaves = leaves.await.map_err(|e| io::Error::other(e.to_string()))??;
    let dialler = Dialler::new(Resolver::new(config.resolve.clone()), upstream_tls);
    let policy = Policy::from_hello(hello, link.clone(), leaves, &config);
    let session = Arc::new(Session::new(policy, dialler, events));
    info!("serving");

    let stop = async {
        tokio::select! {
            why = stop_requested(lifeline) => debug!("{why}"),
            () = ended.wait() => debug!("the decider is gone"),
        }
        close(&link);
    };
    if let Some(listener) = held.take() {
        serve(listener, session, stop).await?;
    }
    Ok(())
}

/// From here on nobody gets a verdict, and what waits for one is refused.
fn close(link: &Link) {
    link.close();
}

fn load_ca(ca: Option<fds::FdArg>) -> Result<Option<Arc<LeafCache>>, StartError> {
    let Some(arg) = ca else { return Ok(None) };
    let pem = Secret::from(fds::read_ca(arg)?);
    Ok(Some(Arc::new(LeafCache::new(Authority::from_pem(&pem)?))))
}

fn listen(address: std::net::SocketAddr) -> Result<Listener, StartError> {
    let listener = std::net::TcpListener::bind(address).map_err(StartError::Listen)?;
    listener.set_nonblocking(true)?;
    if !address.ip().is_loopback() {
        eprintln!("srt-proxy: warning: everybody who reaches {address} can use this proxy");
    }
    eprintln!("srt-proxy: listening on {}", listener.local_addr()?);
    Ok(Listener::Tcp(listener))
}

async fn stop_requested(lifeline: Option<FdStream>) -> &'static str {
    let Ok(mut term) = signal(SignalKind::terminate()) else { return "no signal handler" };
    let Ok(mut int) = signal(SignalKind::interrupt()) else { return "no signal handler" };
    tokio::select! {
        _ = term.recv() => "SIGTERM",
        _ = int.recv() => "SIGINT",
        () = end_of(lifeline) => "end of the lifeline",
    }
}

/// What is written to the lifeline means nothing; only its end does.
async fn end_of(lifeline: Option<FdStream>) {
    let Some(mut lifeline) = lifeline else { return std::future::pending().await };
    let mut scratch = [0; 512];
    while !matches!(lifeline.read(&mut scratch).await, Ok(0) | Err(_)) {}
}
