//! `srt check`: builds a real sandbox on this machine and tries, from inside, what it must refuse.
//!
//! Nothing is concluded from versions or kernel settings: the steps are those of every run, and each protection has a
//! canary that would get out if it did not hold.

mod canary;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::unistd::{geteuid, getpid, mkdtemp};
use srt_shared::settings::{Source, load};

use crate::apply::Failure;
use crate::launch::{self, Uplink};
use crate::placeholders;
use crate::plan::{Inputs, Plan};
use crate::{exit, hint};
use canary::{Canary, Scene};

type Error = Box<dyn std::error::Error>;

/// Runs `srt check` with what follows those words. Returns its exit status: 0 only if everything holds.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> i32 {
    match arguments.next() {
        None => report(),
        Some(word) if word == INSIDE => canary::run_inside(arguments),
        Some(word) => {
            let known = word == "--help" || word == "-h";
            let text = "Usage: srt check\n\nBuilds a sandbox and says what holds on this machine, and what to change \
                        where something does not.\nExit status: 0 if everything holds, 1 if not.";
            if known {
                println!("{text}")
            } else {
                eprintln!("srt check: it takes no arguments\n\n{text}")
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

fn report() -> i32 {
    match try_all() {
        Ok(true) => {
            println!("everything holds");
            0
        }
        Ok(false) => 1,
        Err(e) => {
            eprintln!("srt check: {e}");
            exit::OWN_FAILURE
        }
    }
}

/// Whether all holds.
fn try_all() -> Result<bool, Error> {
    let cage = Cage::make()?;
    let mut all = true;
    for canary in Canary::ALL {
        let finding = cage.find(canary)?;
        all &= matches!(finding, Finding::Holds);
        let mut out = std::io::stdout().lock();
        match finding {
            Finding::Holds => writeln!(out, "holds          {canary}")?,
            Finding::DoesNotHold => {
                writeln!(out, "DOES NOT HOLD  {canary}\n               change: {}", canary.remedy())?;
            }
            Finding::CannotTell(why) => writeln!(out, "cannot tell    {canary}: {why}")?,
            Finding::NoSandbox(failure) => {
                writeln!(out, "NO SANDBOX     {failure}")?;
                if let Some(hint) = hint::hint(&failure) {
                    writeln!(out, "               change: {hint}")?;
                }
                // The others would say the same.
                return Ok(false);
            }
        }
    }
    Ok(all)
}

enum Finding {
    Holds,
    DoesNotHold,
    /// It does not work outside either, so that it is refused inside says nothing.
    CannotTell(String),
    NoSandbox(Failure),
}

/// Settings for a sandbox, and around it what its canaries try to reach.
struct Cage {
    folder: PathBuf,
    scene: Scene,
    inputs: Inputs,
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
        let document = serde_json::json!({
            "network": {"allowedDomains": [], "deniedDomains": []},
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
        let mut inputs = Inputs::new(loaded.settings, path("work"), path("work"), uid);
        inputs.env = std::env::vars_os().collect();
        Ok(Self { folder: folder.keep(), scene, inputs, _socket: socket, _port: port })
    }

    fn find(&self, canary: Canary) -> Result<Finding, Error> {
        if canary.works_outside()
            && let Err(why) = canary.fly(&self.scene)
        {
            return Ok(Finding::CannotTell(format!("it fails outside as well: {why}")));
        }
        placeholders::sweep();
        let plan = Plan::compute(&self.inputs)?;
        // Not by its path, which the plan may hide.
        let mut argv: Vec<OsString> = ["/proc/self/exe", "check", INSIDE].map(Into::into).into();
        argv.push(canary.name().into());
        argv.extend(self.scene.arguments());
        let trust = |_: &str, _: &mut _| Vec::new();
        Ok(match launch::run(plan, &argv, Uplink::None, &trust, &mut |text| eprintln!("srt check: {text}")) {
            Err(failure) => Finding::NoSandbox(failure),
            Ok(outcome) => match outcome.status {
                REFUSED => Finding::Holds,
                GOT_OUT => Finding::DoesNotHold,
                // A system call that the filter answers with the end of the process.
                status if status > 128 => Finding::Holds,
                status => Finding::CannotTell(format!("the canary ended with status {status}")),
            },
        })
    }
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
