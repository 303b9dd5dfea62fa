//! What a sandbox costs a command that does nothing: start and end, beside bubblewrap, in one run.
//!
//! `cargo bench -p srt-launch --bench start [-- [--user NAME] [ROUNDS]]`
//!
//! The programs take turns, so that whatever else the machine does falls on all of them alike; what counts is the last
//! column. Each runs in an empty folder, with an empty home, a bare environment and settings by default.

use std::env;
use std::error::Error;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
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

/// The first is what the others are compared with.
const ROWS: [&[&str]; 4] = [
    &["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "true"],
    &[LAUNCH, "--no-network", "--", "true"],
    &[SRT, "true"],
    &["true"],
];

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
    let home = tempfile::tempdir()?;
    for folder in [&folder, &home] {
        chown(folder.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
    }
    let measure = |row: &[&str]| measure(row, &user, folder.path(), home.path());

    let mut rows: Vec<(&[&str], Vec<Duration>)> = ROWS.iter().map(|row| (*row, Vec::new())).collect();
    rows.retain(|(row, _)| match measure(row) {
        Ok(_) => true,
        Err(why) => {
            eprintln!("left out: {}: {why}", row.join(" "));
            false
        }
    });
    for round in 0..rounds + WARM_UP {
        for (row, times) in &mut rows {
            let time = measure(row)?;
            if round >= WARM_UP {
                times.push(time);
            }
        }
    }
    println!("{rounds} rounds as {}: median, ratio to the first", user.name);
    let mut first = None;
    for (row, times) in &mut rows {
        times.sort_unstable();
        let median = times.get(times.len() / 2).ok_or("no rounds")?.as_secs_f64() * 1e3;
        let ratio = median / *first.get_or_insert(median);
        println!("{median:7.2} ms  {ratio:5.2}  {}", row.join(" "));
    }
    Ok(())
}

fn measure(row: &[&str], user: &User, folder: &Path, home: &Path) -> Result<Duration, Box<dyn Error>> {
    let mut command = Command::new(row[0]);
    command.args(&row[1..]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home);
    if user.uid != geteuid() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    sleep(PAUSE);
    let begin = Instant::now();
    let status = command.status()?;
    let time = begin.elapsed();
    if status.success() { Ok(time) } else { Err(format!("{status}").into()) }
}
