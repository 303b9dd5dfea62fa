//! What a sandbox costs a command that does nothing: start and end, beside bubblewrap, in one run.
//!
//! `cargo bench -p srt-launch --bench start [-- [--user NAME] [ROUNDS]]`
//!
//! The programs take turns, so that whatever else the machine does falls on all of them alike; what counts is the last
//! column. Each runs in an empty folder, with an empty home, a bare environment and settings by default.
//!
//! All are copied first, bubblewrap too, as for an installation: what was copied lies in the page cache in large pieces
//! and maps fast, what a linker has written perhaps in single pages. The last row is the program as the linker left it.

use std::env;
use std::error::Error;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::unistd::{User, geteuid};

const ROUNDS: usize = 300;
/// Before each start: the kernel goes on taking down the namespaces of the last one, which would be charged to the next.
const PAUSE: Duration = Duration::from_millis(20);
/// Not counted: files are read from disk, the kernel's caches fill.
const WARM_UP: usize = 5;

const LAUNCH: &str = env!("CARGO_BIN_EXE_srt-launch");
const SRT: &str = env!("CARGO_BIN_EXE_srt");

/// What the others are compared with.
const BWRAP: &[&str] =
    &["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "true"];

struct Row {
    name: String,
    program: PathBuf,
    arguments: Vec<&'static str>,
    times: Vec<Duration>,
}

impl Row {
    fn new(program: PathBuf, arguments: &[&'static str], name: &str) -> Self {
        let name = format!("{name} {}", arguments.join(" "));
        Self { name, program, arguments: arguments.to_vec(), times: Vec::new() }
    }
}

/// Who measures, and where.
struct Place {
    user: User,
    work: PathBuf,
    home: PathBuf,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = env::args().skip(1).collect();
    // `cargo test --all-targets` starts benches too, without this.
    let Some(at) = args.iter().position(|arg| arg == "--bench") else { return Ok(()) };
    args.remove(at);
    let mut rounds = ROUNDS;
    let mut user = User::from_uid(geteuid())?;
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--user" => user = User::from_name(&args.next().ok_or("--user: who?")?)?,
            number => rounds = number.parse().map_err(|_| format!("{number}: not a number of rounds"))?,
        }
    }
    let user = user.ok_or("no such user")?;

    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755))?;
    let place = Place { user, work: folder.path().join("work"), home: folder.path().join("home") };
    for own in [&place.work, &place.home] {
        fs::create_dir(own)?;
        chown(own, Some(place.user.uid.as_raw()), Some(place.user.gid.as_raw()))?;
    }
    let mut rows = rows(folder.path())?;
    rows.retain(|row| match measure(row, &place) {
        Ok(_) => true,
        Err(why) => {
            eprintln!("left out: {}: {why}", row.name);
            false
        }
    });
    for round in 0..rounds + WARM_UP {
        for row in &mut rows {
            let time = measure(row, &place)?;
            if round >= WARM_UP {
                row.times.push(time);
            }
        }
    }
    println!("{rounds} rounds as {}: median, ratio to the first", place.user.name);
    let mut first = None;
    for row in &mut rows {
        row.times.sort_unstable();
        let median = row.times.get(row.times.len() / 2).ok_or("no rounds")?.as_secs_f64() * 1e3;
        let ratio = median / *first.get_or_insert(median);
        println!("{median:7.2} ms  {ratio:5.2}  {}", row.name);
    }
    Ok(())
}

/// The programs, installed in `folder`.
fn rows(folder: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let install = |program: PathBuf| -> Result<PathBuf, Box<dyn Error>> {
        let copy = folder.join(program.file_name().ok_or("a program without a name")?);
        fs::copy(&program, &copy).map_err(|e| format!("{}: {e}", program.display()))?;
        Ok(copy)
    };
    // `srt` finds it beside itself.
    install(Path::new(SRT).with_file_name("srt-proxy"))?;
    Ok(vec![
        Row::new(install(in_path(BWRAP[0])?)?, &BWRAP[1..], BWRAP[0]),
        Row::new(install(LAUNCH.into())?, &["--no-network", "--", "true"], "srt-launch"),
        Row::new(install(SRT.into())?, &["true"], "srt"),
        Row::new(in_path("true")?, &[], "true"),
        Row::new(LAUNCH.into(), &["--no-network", "--", "true"], "(as linked) srt-launch"),
    ])
}

fn in_path(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| format!("{name}: not installed").into())
}

fn measure(row: &Row, place: &Place) -> Result<Duration, Box<dyn Error>> {
    let mut command = Command::new(&row.program);
    command.args(&row.arguments).current_dir(&place.work).stdin(Stdio::null()).stdout(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &place.home);
    if place.user.uid != geteuid() {
        command.uid(place.user.uid.as_raw()).gid(place.user.gid.as_raw());
    }
    sleep(PAUSE);
    let begin = Instant::now();
    let status = command.status()?;
    let time = begin.elapsed();
    if status.success() { Ok(time) } else { Err(format!("{status}").into()) }
}
