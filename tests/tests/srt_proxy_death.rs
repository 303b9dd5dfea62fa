//! The proxy killed at any moment: the network is gone, nothing takes its place, and nothing stays.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use srt_tests::binary::binary;
use srt_tests::program::{Finished, Program};
use srt_tests::proxy::{PATIENCE, TestUpstream};
use srt_tests::sandbox_run::{AttachProxy, Folder, hello_once, settings};

/// Uses the network until it is gone, and tries to do without the proxy all the while.
const USE: &str = r#"
trap '' PIPE
get() { printf 'GET http://%s:%s/hello HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n' "$1" "$2" "$1" "$2" >&3; cat <&3; return 0; }
while get a.localhost "$0" 3<>/dev/tcp/127.0.0.1/3128; do
  get b.localhost "$0" 3<>/dev/tcp/127.0.0.1/3128
  for address in 127.0.0.1 ::1 "$1"; do
    get b.localhost "$0" 3<>"/dev/tcp/$address/$0" && echo DIRECT
  done
done 2>/dev/null
read
echo gone
"#;

struct World {
    folder: Folder,
    upstream: TestUpstream,
    paths: Vec<std::path::PathBuf>,
}

impl World {
    fn new() -> Self {
        let folder = Folder::new(&network());
        let paths = folder.paths();
        Self { folder, upstream: TestUpstream::plain(hello_once), paths }
    }

    fn command(&self) -> [String; 5] {
        let port = self.upstream.port().to_string();
        ["bash".to_owned(), "-c".to_owned(), USE.to_owned(), port, own_address()]
    }

    fn check(&self, what: &str, finished: &Finished) {
        let text = finished.text();
        assert!(!text.contains("DIRECT"), "{what}: {text}");
        let hosts: Vec<_> = self.upstream.seen().take();
        assert!(hosts.iter().all(|head| head.target() == "/hello"), "{what}: {hosts:?}");
        assert!(
            hosts.iter().all(|head| head.field("host").unwrap().starts_with("a.localhost:")),
            "{what}: {hosts:?}"
        );
        match finished.status.code() {
            // It ran, and lost its network.
            Some(0) => {
                assert!(text.ends_with("gone\n"), "{what}: {text}");
                let report =
                    "deny network-outbound * (the proxy ended before the command did)\n</sandbox_violations>";
                assert!(finished.stderr.contains(report), "{what}: {}", finished.stderr);
            }
            // It never ran.
            Some(125) => {
                assert_eq!(text, "", "{what}");
                assert!(
                    finished.stderr.contains("the proxy ended before it answered"),
                    "{what}: {}",
                    finished.stderr
                );
            }
            _ => panic!("{what}: {finished:?}"),
        }
    }

    /// No process of these runs, which all have the home in their environment, and no file.
    fn check_nothing_stays(&self) {
        let home = self.folder.home().as_os_str().as_encoded_bytes();
        let deadline = Instant::now() + PATIENCE;
        while processes().any(|pid| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.windows(home.len()).any(|part| part == home)
        }) {
            assert!(Instant::now() < deadline, "a process stays");
            thread::yield_now();
        }
        assert_eq!(self.folder.paths(), self.paths);
    }
}

fn network() -> Value {
    settings(json!({"allowedDomains": ["a.localhost"]}))
}

/// An address of this host that is not loopback's, where there is one.
fn own_address() -> String {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    // Sends nothing: it only looks the way up.
    let connected = socket.connect("192.0.2.1:9");
    connected
        .and_then(|()| socket.local_addr())
        .map_or_else(|_| "127.0.0.2".to_owned(), |a| a.ip().to_string())
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The proxy that `srt` has started, unless `srt` has ended before that was seen.
fn proxy_of(srt: u32) -> Option<Pid> {
    let children = format!("/proc/{srt}/task/{srt}/children");
    loop {
        let pids = fs::read_to_string(&children).ok()?;
        let ended = fs::read_to_string(format!("/proc/{srt}/stat")).is_ok_and(|stat| stat.contains(") Z "));
        for pid in pids.split_whitespace() {
            if fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "srt-proxy\n") {
                return pid.parse().ok().map(Pid::from_raw);
            }
        }
        if ended {
            return None;
        }
        thread::yield_now();
    }
}

/// Until no thread of a killed process holds a descriptor any more. The command sees its port closed before the
/// launcher can see the session closed, and ends only when its input does, which is after this.
fn wait_for_end(pid: u32) {
    let deadline = Instant::now() + PATIENCE;
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    let ended = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    while threads() > 1 || (threads() == 1 && !ended()) {
        assert!(Instant::now() < deadline, "the proxy stays");
        thread::yield_now();
    }
}

/// Moments from 0 to `most`, spread without a pattern (a linear congruential generator).
fn moments(seed: u32, most: Duration) -> impl Iterator<Item = Duration> {
    let next = |x: &u32| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(seed), next)
        .skip(1)
        .map(move |x| most.mul_f64(f64::from(x) / f64::from(u32::MAX)))
}

#[test]
fn a_proxy_of_srt_killed_at_any_moment() {
    const THREADS: u32 = 4;
    const RUNS: usize = 50;
    thread::scope(|scope| {
        for seed in 0..THREADS {
            scope.spawn(move || {
                let world = World::new();
                for moment in moments(seed, Duration::from_millis(120)).take(RUNS) {
                    let running = world.folder.srt().args(world.command()).start();
                    let proxy = proxy_of(running.pid()).expect("srt ended before its proxy");
                    // The moment is what is tested.
                    thread::sleep(moment);
                    kill(proxy, Signal::SIGKILL).unwrap();
                    wait_for_end(proxy.as_raw().cast_unsigned());
                    world.check(&format!("{seed} {moment:?}"), &running.wait());
                }
                world.check_nothing_stays();
            });
        }
    });
}

#[test]
fn a_proxy_of_many_sandboxes_killed_at_any_moment() {
    for moment in moments(7, Duration::from_millis(150)).take(6) {
        let world = World::new();
        let proxy = AttachProxy::start(&network());
        let running: Vec<_> = (0..6)
            .map(|_| {
                let launch = world.folder.srt_launch().fd("--proxy-fd", proxy.attach_socket());
                launch.arg("--").args(world.command()).start()
            })
            .collect();
        thread::sleep(moment);
        proxy.proxy.signal(Signal::SIGKILL);
        wait_for_end(proxy.proxy.pid());
        // Whoever asks later learns that there is none: the attach socket is closed with it.
        for running in running {
            world.check(&format!("{moment:?}"), &running.wait());
        }
        world.check_nothing_stays();
    }
}

/// Whichever of its threads is the first that cannot be started.
#[test]
fn a_proxy_without_memory_for_its_threads_ends_and_says_why() {
    let world = World::new();
    let ends: Vec<_> = (8..48)
        .step_by(2)
        .map(|megabytes| {
            let limit = format!("ulimit -v {}; exec \"$@\"", megabytes << 10);
            let limited =
                Program::new("sh").env("HOME", world.folder.home()).current_dir(&world.folder.work());
            // Of some megabytes each, on any machine.
            let limited = limited.env("TOKIO_WORKER_THREADS", "4").args(["-c", &limit, "sh"]);
            let finished = limited.arg(binary("srt")).args(["--", "echo", "ran"]).run();
            match finished.status.code() {
                Some(0) => assert_eq!(finished.text(), "ran\n", "{megabytes}: {}", finished.stderr),
                _ => assert_eq!(finished.text(), "", "{megabytes}: {}", finished.stderr),
            }
            finished
        })
        .collect();
    assert!(ends.iter().any(|end| end.status.success()), "{ends:?}");
    let told: Vec<_> = ends.iter().filter(|end| end.stderr.contains("spawn worker thread")).collect();
    assert!(!told.is_empty(), "{ends:?}");
    for end in told {
        let ours = |line: &str| line.starts_with("srt-proxy: cannot start: ") && line.contains("ulimit -v");
        let (last, first) = end.stderr.trim_end().rsplit_once('\n').map(|(a, b)| (b, a)).unwrap();
        assert_eq!(end.status.code(), Some(125), "{end:?}");
        assert!(first.lines().all(ours) && last.starts_with("srt: cannot lead "), "{end:?}");
    }
    world.check_nothing_stays();
}

#[test]
fn a_proxy_that_is_not_there_yet_is_warned_of_and_used_once_it_is() {
    let folder = Folder::new(&network());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (proxy, socket) = (["--proxy".to_owned(), address.to_string()], folder.home().join("socket"));
    for way in [&proxy, &["--proxy-unix".to_owned(), socket.display().to_string()]] {
        let strict = folder.srt_launch().arg("--strict").args(way).args(["touch", "ran"]).run();
        assert_eq!(strict.status.code(), Some(125), "{strict:?}");
        assert!(strict.stderr.contains(&format!("no proxy listens on {} (", way[1])), "{}", strict.stderr);
        // Nothing is run, so nothing is missing.
        let explained = folder.srt_launch().arg("--explain").args(way).arg("true").run().succeeded();
        assert_eq!(explained.stderr, "");
    }
    assert!(!folder.work().join("ran").exists());

    let ask = "echo >up; read; exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; cat <&3";
    let running = folder.srt_launch().args(&proxy).args(["--", "bash", "-c", ask]).start();
    let begun = Instant::now();
    while !folder.work().join("up").exists() && begun.elapsed() < PATIENCE {
        thread::yield_now();
    }
    let listener = TcpListener::bind(address).unwrap();
    let served = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut asked = [0; 6];
        client.read_exact(&mut asked).unwrap();
        client.write_all(&asked).unwrap();
    });
    let finished = running.wait().succeeded();
    assert_eq!((finished.text().as_str(), finished.stderr.lines().count()), ("hello\n", 1), "{finished:?}");
    assert!(finished.stderr.contains(&format!("warning: no proxy listens on {address} (")), "{finished:?}");
    served.join().unwrap();
}

#[test]
fn a_listener_of_the_hosts_is_out_of_reach_with_and_without_a_proxy() {
    // What the other tests rely on: outside the sandbox the same attempt succeeds.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let attempt = ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$0", &port];
    Program::new("bash").args(&attempt[1..]).run().succeeded();
    let folder = Folder::new(&network());
    folder.srt().args(attempt).run().failed();
    folder.srt_launch().arg("--no-network").args(attempt).run().failed();
}
