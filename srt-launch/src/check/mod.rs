//! `srt check`: builds a real sandbox on this machine and tries, from inside, what it must refuse.
//!
//! Nothing is concluded from versions or kernel settings: the steps are those of every run, and each protection has a
//! canary that would get out if it did not hold.

mod canary;
mod connection;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::unistd::{geteuid, getpid, mkdtemp};
use srt_shared::settings::{Loaded, Source, load};

use crate::apply::Failure;
use crate::compose::Proxy;
use crate::launch::{self, Uplink};
use crate::plan::{Inputs, Network};
use crate::{exit, hint, prepare, say};
use canary::{Canary, Scene};
use connection::{Servers, Way};

type Error = Box<dyn std::error::Error>;

/// Runs `srt check` with what follows those words. Returns its exit status: 0 only if everything holds.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> i32 {
    match arguments.next() {
        None => report(),
        Some(word) if word == INSIDE => {
            let words: Vec<OsString> = arguments.collect();
            Way::run_inside(&words).unwrap_or_else(|| canary::run_inside(words))
        }
        Some(word) => {
            let known = word == "--help" || word == "-h";
            let text = "Usage: srt check\n\nBuilds a sandbox and says what holds on this machine, and what to change \
                        where something does not.\nExit status: 0 if everything holds, 1 if not, 125 if it could not be tried.";
            if known {
                say::out(text)
            } else {
                say::err(format_args!(
                    "srt check: it takes no arguments; to run a program of that name, write `srt -- check`\n\n{text}"
                ))
            }
            if known { 0 } else { exit::OWN_FAILURE }
        }
    }
}

/// How a canary is started; of no use to anybody else, and no harm.
const INSIDE: &str = "--inside";

/// What a canary's exit status says.
const REFUSED: i32 = 0;
const GOT_OUT: i32 = 1;
const NOT_REACHED: i32 = 2;

fn report() -> i32 {
    match try_all() {
        Ok(true) => {
            say::out("everything holds");
            0
        }
        Ok(false) => 1,
        Err(e) => {
            say::err(format_args!("srt check: {e}"));
            exit::OWN_FAILURE
        }
    }
}

/// Whether all holds.
fn try_all() -> Result<bool, Error> {
    let cage = Cage::make().map_err(|e| {
        let folder = std::env::temp_dir();
        format!(
            "cannot set up in `{}` what is tried: {e}; set TMPDIR to a folder that can be written",
            folder.display()
        )
    })?;
    let mut all = true;
    for canary in Canary::ALL {
        match tell(&canary, canary.remedy(), cage.find(canary)?)? {
            Told::Holds => {}
            Told::Fails => all = false,
            // The others would say the same.
            Told::Ends => return Ok(false),
        }
    }
    let proxy = Proxy::start(&cage.loaded, None, false)?;
    for way in Way::ALL {
        const REMEDY: &str = "the proxy lets through what the settings do not allow; please report this";
        all &= matches!(tell(&way, REMEDY, cage.go(way, &proxy)?)?, Told::Holds);
    }
    Ok(all)
}

enum Told {
    Holds,
    Fails,
    /// There is no sandbox to try anything in.
    Ends,
}

fn tell(what: &dyn Display, remedy: &str, finding: Finding) -> Result<Told, Error> {
    let mut out = std::io::stdout().lock();
    match finding {
        Finding::Holds => {
            writeln!(out, "holds          {what}")?;
            return Ok(Told::Holds);
        }
        Finding::DoesNotHold => writeln!(out, "DOES NOT HOLD  {what}\n               change: {remedy}")?,
        Finding::CannotTell(why) => writeln!(out, "cannot tell    {what}: {why}")?,
        Finding::NoSandbox(failure) => {
            writeln!(out, "NO SANDBOX     {failure}")?;
            if let Some(hint) = hint::hint(&failure) {
                writeln!(out, "               change: {hint}")?;
            }
            return Ok(Told::Ends);
        }
    }
    Ok(Told::Fails)
}

enum Finding {
    Holds,
    DoesNotHold,
    /// It does not work outside either, so that it is refused inside says nothing.
    CannotTell(String),
    NoSandbox(Failure),
}

impl Finding {
    fn of(result: Result<i32, Failure>) -> Self {
        match result {
            Err(failure) => Self::NoSandbox(failure),
            Ok(REFUSED) => Self::Holds,
            Ok(GOT_OUT) => Self::DoesNotHold,
            Ok(NOT_REACHED) => Self::CannotTell("what is allowed is not reached either".to_owned()),
            Ok(status) => Self::CannotTell(format!("it ended with status {status}")),
        }
    }
}

/// Settings for a sandbox, and around it what its canaries try to reach.
struct Cage {
    folder: PathBuf,
    scene: Scene,
    loaded: Loaded,
    inputs: Inputs,
    servers: Servers,
    _socket: UnixListener,
    _port: TcpListener,
}

impl Cage {
    fn make() -> Result<Self, Error> {
        let folder = mkdtemp(&std::env::temp_dir().join("srt-check-XXXXXX"))?.canonicalize()?;
        // From here on it is removed whatever fails.
        let folder = RemovedOnError(Some(folder));
        let path = |name: &str| folder.path().join(name);
        for name in ["work", "outside"] {
            fs::create_dir(path(name))?;
        }
        fs::write(path("secret"), "secret\n")?;
        fs::write(path("work/denied"), "")?;
        let settings = path("settings.json");
        let servers = Servers::start()?;
        let allowed = format!("127.0.0.1:{}", servers.allowed);
        let document = serde_json::json!({
            "network": {"allowedDomains": [allowed], "deniedDomains": []},
            "filesystem": {
                "denyRead": [path("secret")], "allowWrite": [path("work")], "denyWrite": [path("work/denied")],
            },
        });
        fs::write(&settings, document.to_string())?;
        let loaded = load(Source::File(&settings))?;

        let socket = UnixListener::bind(path("outside/socket"))?;
        let port = TcpListener::bind("127.0.0.1:0")?;
        let scene = Scene {
            folder: folder.path().to_owned(),
            port: port.local_addr()?.port(),
            pid: getpid().as_raw(),
        };
        let uid = geteuid().as_raw();
        let mut inputs = Inputs::new(loaded.settings.clone(), path("work"), path("work"), uid);
        inputs.env = std::env::vars_os().collect();
        Ok(Self { folder: folder.keep(), scene, loaded, inputs, servers, _socket: socket, _port: port })
    }

    fn find(&self, canary: Canary) -> Result<Finding, Error> {
        if canary.works_outside()
            && let Err(why) = canary.fly(&self.scene)
        {
            return Ok(Finding::CannotTell(format!("it fails outside as well: {why}")));
        }
        let words = std::iter::once(canary.name().into()).chain(self.scene.arguments());
        Ok(match send_in(words, &self.inputs, &|| Ok(Uplink::None))? {
            // A system call that the filter answers with the end of the process.
            Ok(status) if status > 128 => Finding::Holds,
            result => Finding::of(result),
        })
    }

    /// Goes a way through the proxy.
    fn go(&self, way: Way, proxy: &Proxy) -> Result<Finding, Error> {
        let inputs = Inputs { network: Network::Proxy, ..self.inputs.clone() };
        Ok(Finding::of(send_in(way.arguments(&self.servers), &inputs, &|| proxy.uplink())?))
    }
}

/// Runs this program in the sandbox, with what it is to do there. Gives its exit status.
fn send_in(
    words: impl IntoIterator<Item = OsString>,
    inputs: &Inputs,
    uplink: &dyn Fn() -> Result<Uplink, Error>,
) -> Result<Result<i32, Failure>, Error> {
    // Not by its path, which the plan may hide.
    let mut argv: Vec<OsString> = ["/proc/self/exe", "check", INSIDE].map(Into::into).into();
    argv.extend(words);
    let trust = |_: &str, _: &mut _| Vec::new();
    prepare::until_a_plan_fits(inputs, |plan| {
        let mut warn = |text: &str| say::err(format_args!("srt check: {text}"));
        Ok(launch::run(plan, &argv, uplink()?, &trust, &mut warn).map(|outcome| outcome.end.status()))
    })
}

impl Drop for Cage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

struct RemovedOnError(Option<PathBuf>);

impl RemovedOnError {
    fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new(""))
    }

    fn keep(mut self) -> PathBuf {
        self.0.take().unwrap_or_default()
    }
}

impl Drop for RemovedOnError {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}
