//! From a plan to a command that has run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};
use srt_shared::attach::Attach;

use crate::apply::{self, Caller, Command, During, Failure, Session, Step};
use crate::channel::{self, Order, Report};
use crate::exit::End;
use crate::init;
use crate::job::Job;
use crate::monitor::{self, Signals};
use crate::placeholders::{self, Vacancy};
use crate::plan::{Network, Plan, Provided};
use crate::proxy::{self, News, Relay, Told};
use crate::sys;

/// Where the sandbox's port leads.
#[derive(Debug)]
pub enum Uplink {
    /// Nowhere.
    None,
    /// To a running `srt-proxy`, over its attach socket.
    Attach {
        /// The socket.
        socket: OwnedFd,
        /// What it is asked for.
        request: Attach,
    },
    /// To another proxy of the host.
    Relay(Relay),
}

impl Uplink {
    /// The same once more, for another attempt.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        Ok(match self {
            Self::None => Self::None,
            Self::Attach { socket, request } => {
                Self::Attach { socket: socket.try_clone()?, request: request.clone() }
            }
            Self::Relay(relay) => Self::Relay(relay.clone()),
        })
    }
}

/// Makes, from the proxy's CA certificate, the files and the environment that the command gets because TLS is
/// terminated.
pub type Trusting<'a> = &'a dyn Fn(&str, &mut BTreeMap<OsString, OsString>) -> Vec<Provided>;

/// How a run has ended.
#[derive(Debug)]
pub struct Outcome {
    /// How the command has.
    pub end: End,
    /// What the proxy told meanwhile.
    pub told: Told,
}

impl Outcome {
    /// A run that ended with a failure which was told already.
    pub fn failed(status: i32) -> Self {
        Self { end: status.into(), told: Told::default() }
    }
}

/// Runs `argv` in the sandbox that `plan` describes.
///
/// # Errors
/// The step that failed. The command has then not run, or could not be executed ([`Failure::exit_status`]).
pub fn run(
    mut plan: Plan,
    argv: &[OsString],
    uplink: Uplink,
    trust: Trusting<'_>,
    warn: &mut dyn FnMut(&str),
) -> Result<Outcome, Failure> {
    apply::refuse_directories()?;
    if let Some(path) = &plan.missing_temp_dir {
        // By now somebody has removed it, or this plan is one to look at.
        return Err(Errno::ENOENT).during_at(Step::TempDir, "not there", path);
    }
    let terminal = Session::of_caller();
    let signals = Signals::take(terminal)?;
    let mut vacancy = Vacancy::of(&plan)?;
    // Dropped after the channel, with which the sandbox ends: for that it waits.
    let keeper;
    let mut way_out = WayOut::prepare(uplink)?;
    let (outside, inside) = channel::pair()?;
    let mut outside = Some(outside);
    let caller = Caller::current();

    let child = sys::clone_child(apply::flags(&plan.isolation), || {
        // Copies of the launcher's ends would keep its death from being seen.
        drop(outside.take());
        let mut bell = None;
        let settle = |plan: &mut Plan| {
            bell = vacancy.take().map(|vacancy| vacancy.settle(plan)).transpose()?;
            Ok(())
        };
        let connect = |plan: &mut Plan| {
            way_out.connect(plan, trust)?;
            if plan.network == Network::Proxy {
                inside.send(&Report::Connected);
            }
            Ok(())
        };
        let built = apply::build(&mut plan, caller, connect, settle);
        let result = built.and_then(|warning| {
            if let Some(text) = warning {
                inside.send(&Report::Warning(text));
            }
            let command = Command::new(argv, &plan)?;
            init::run(&plan, &command, terminal, signals.before(), &inside, bell.as_ref())
        });
        result.unwrap_or_else(|failure| {
            inside.send(&Report::Failed(failure.clone()));
            failure.exit_status()
        })
    })
    .during(Step::Namespaces, "clone")?;
    drop(inside);
    let mut outside = outside.expect("invariant: only the child took it");
    keeper = vacancy.map(|vacancy| vacancy.fill(&plan.placeholders, &child)).transpose()?;
    let mut news = way_out.serve()?;
    // Pid 1 would wait for it without end, and we for pid 1.
    outside.send(Order::Go).during(Step::Launch, "write")?;
    // While others work, and not when everybody waits for us.
    drop(plan);
    let end =
        monitor::watch(&child, &mut outside, &signals, Job::new(terminal), keeper.as_ref(), &mut news, warn);
    drop(keeper);
    if end.is_err() {
        // A keeper that was killed leaves its placeholders, and nobody inside is left to take their place.
        placeholders::sweep();
    }
    let told = news.finish();
    Ok(Outcome { end: end?, told })
}

/// The way out while it is made: inside makes the listener, outside serves it.
enum WayOut {
    None,
    Attach { socket: OwnedFd, request: Attach, session: proxy::Session },
    Relay { relay: Option<Relay>, ours: Option<OwnedFd>, theirs: Option<OwnedFd> },
}

impl WayOut {
    fn prepare(uplink: Uplink) -> Result<Self, Failure> {
        Ok(match uplink {
            Uplink::None => Self::None,
            Uplink::Attach { socket, request } => {
                let session = proxy::Session::pair().during(Step::Proxy, "socketpair")?;
                Self::Attach { socket, request, session }
            }
            Uplink::Relay(relay) => {
                let flags = SockFlag::SOCK_CLOEXEC;
                let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
                    .during(Step::Proxy, "socketpair")?;
                Self::Relay { relay: Some(relay), ours: Some(ours), theirs: Some(theirs) }
            }
        })
    }

    /// Inside: makes the listener and hands it out. No descriptor of it stays here.
    fn connect(&mut self, plan: &mut Plan, trust: Trusting<'_>) -> Result<(), Failure> {
        let listen = || proxy::listen().during(Step::Proxy, "listen");
        match std::mem::replace(self, Self::None) {
            Self::None => Ok(()),
            Self::Attach { socket, request, mut session } => {
                let ca = session.attach(socket, &request, listen()?).map_err(|e| Failure::proxy(&e))?;
                if let Some(pem) = ca {
                    plan.provided.extend(trust(&pem, &mut plan.env));
                }
                Ok(())
            }
            Self::Relay { theirs, .. } => {
                let listener = listen()?;
                let socket = theirs.ok_or(Errno::EBADF).during(Step::Proxy, "sendmsg")?;
                let fds = [listener.as_raw_fd()];
                let control = [ControlMessage::ScmRights(&fds)];
                sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(b"l")], &control, MsgFlags::empty(), None)
                    .during(Step::Proxy, "sendmsg")?;
                Ok(())
            }
        }
    }

    /// Outside: forgets what is inside's, and serves what it hands out. Returns what the proxy will tell.
    fn serve(self) -> Result<News, Failure> {
        match self {
            Self::None => {}
            Self::Attach { mut session, .. } => {
                session.keep_ours();
                return Ok(News::of(Some(session)));
            }
            Self::Relay { relay, ours, theirs } => {
                drop(theirs);
                let mut byte = [0];
                let socket = ours.ok_or(Errno::EBADF).during(Step::Proxy, "recvmsg")?;
                let received = sys::receive_descriptor(&socket, &mut [IoSliceMut::new(&mut byte)]);
                // Nothing comes if inside has failed, which it reports itself.
                if let (_, Some(listener)) = received.during(Step::Proxy, "recvmsg")?
                    && let Some(relay) = relay
                {
                    relay.serve(listener).during(Step::Proxy, "start a thread")?;
                }
            }
        }
        Ok(News::of(None))
    }
}
