//! Attempts to get out. Each is refused by the sandbox as it is, and each succeeds in a control run from whose plan the
//! test has taken just the one wall that is said to hold it: so none is refused for another reason than the one named.
//!
//! Where two walls hold one attempt, it is made for each of them with the other taken out `besides`.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::geteuid;
use serde_json::json;
use srt_tests::sandbox::{Sandbox, run};
use srt_tests::sys::{SystemV, SystemVObject, copy_from, inherit};

const ATTEMPT: &str = env!("CARGO_BIN_EXE_attempt");
const WITHOUT: &str = env!("CARGO_BIN_EXE_launch-without");

/// What a killed system call ends a process with: 128 and SIGSYS.
const KILLED_BY_FILTER: i32 = 128 + 31;

/// Whether the attempt succeeds in a sandbox without some walls.
fn succeeds(sandbox: &Sandbox, walls: &[&str], attempt: &[&str]) -> bool {
    succeeds_by(sandbox.command(WITHOUT), sandbox, walls, attempt)
}

fn succeeds_by(mut launcher: Command, sandbox: &Sandbox, walls: &[&str], attempt: &[&str]) -> bool {
    launcher.args(walls.iter().flat_map(|wall| ["--without", wall]));
    launcher.arg(sandbox.settings_file()).arg(ATTEMPT).args(attempt);
    let (status, stdout, stderr) = run(&mut launcher);
    match status {
        Some(0) => true,
        Some(1 | KILLED_BY_FILTER) => false,
        other => panic!("{attempt:?} without {walls:?} was not made: {other:?}\n{stdout}{stderr}"),
    }
}

/// `wall` holds the attempt, and nothing else does once `besides` are gone.
fn held_by(sandbox: &Sandbox, wall: &str, besides: &[&str], attempt: &[&str]) {
    assert!(!succeeds(sandbox, &[], attempt), "{attempt:?} gets out");
    if !besides.is_empty() {
        assert!(!succeeds(sandbox, besides, attempt), "{attempt:?} gets out without {besides:?}");
    }
    let without = [besides, &[wall]].concat();
    // Whoever is not uid 0 loses every capability by executing a program, whatever we drop: a wall of the kernel's own
    // that no plan can take out. Run as root, the test shows that ours is one too.
    if without.contains(&"drop_capabilities") && !geteuid().is_root() {
        return;
    }
    assert!(succeeds(sandbox, &without, attempt), "{attempt:?} is not held by {wall} alone");
}

fn plain() -> Sandbox {
    Sandbox::new(json!({"allowWrite": ["."]}))
}

#[test]
fn sockets() {
    let sandbox = plain();
    // The path of a socket has room for a hundred bytes, which that of TMPDIR may be.
    let outside = tempfile::tempdir_in("/tmp").unwrap();
    let (stream, datagram) = (outside.path().join("stream"), outside.path().join("datagram"));
    let _listener = UnixListener::bind(&stream).unwrap();
    let _receiver = UnixDatagram::bind(&datagram).unwrap();
    let (stream, datagram) = (stream.to_str().unwrap(), datagram.to_str().unwrap());
    for attempt in [
        &["socket", "1", "1", "0"][..],
        &["socket", "1", "2", "0"],
        &["socket", "1", "5", "0"],
        &["socket-high-bits"],
        &["connect-path", stream],
    ] {
        held_by(&sandbox, "UnixSockets", &[], attempt);
    }
    for attempt in [
        &["socketpair", "2"][..],
        &["socketpair", "3"],
        &["pair-to-path", "2", datagram],
        &["pair-to-path", "3", datagram],
    ] {
        held_by(&sandbox, "DatagramPairs", &[], attempt);
    }
    for attempt in [&["socket", "40", "1", "0"][..], &["socket", "40", "5", "0"]] {
        held_by(&sandbox, "OtherFamilies", &[], attempt);
    }
    for protocol in ["15", "16"] {
        held_by(&sandbox, "Netlink", &[], &["socket", "16", "3", protocol]);
    }
    for (family, kind, protocol) in
        [("2", "3", "1"), ("10", "3", "58"), ("17", "3", "768"), ("17", "2", "768"), ("2", "10", "768")]
    {
        held_by(&sandbox, "RawSockets", &["drop_capabilities"], &["socket", family, kind, protocol]);
    }
}

#[test]
fn network() {
    let sandbox = plain();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let listener = match TcpListener::bind(address) {
            // Whoever has no IPv6 has nothing that could be reached by it.
            Err(e) if address.starts_with("[::1]") && e.kind() == ErrorKind::AddrNotAvailable => continue,
            result => result.unwrap(),
        };
        let address = listener.local_addr().unwrap().to_string();
        held_by(&sandbox, "network_namespace", &[], &["tcp", &address]);
    }
    let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = echo.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut bytes = [0; 16];
        while let Ok((length, from)) = echo.recv_from(&mut bytes) {
            let _ = echo.send_to(&bytes[..length], from);
        }
    });
    held_by(&sandbox, "network_namespace", &[], &["udp", &address]);

    let name = format!("srt-escape-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    held_by(&sandbox, "network_namespace", &["UnixSockets"], &["connect-abstract", &name]);
    held_by(&sandbox, "drop_capabilities", &[], &["loopback-down"]);
    held_by(&sandbox, "drop_capabilities", &[], &["bind-port", "80"]);
}

#[test]
fn namespaces() {
    let sandbox = plain();
    let limit = &["user_namespace_limit"][..];
    for kinds in ["user", "user+mount", "user+pid+net"] {
        held_by(&sandbox, "Namespaces", limit, &["unshare", kinds]);
        held_by(&sandbox, "Namespaces", limit, &["clone", kinds]);
        held_by(&sandbox, "Clone3", limit, &["clone3", kinds]);
        held_by(&sandbox, "user_namespace_limit", &["Namespaces"], &["unshare", kinds]);
        held_by(&sandbox, "user_namespace_limit", &["Namespaces"], &["clone", kinds]);
        held_by(&sandbox, "user_namespace_limit", &["Clone3"], &["clone3", kinds]);
    }
    let capabilities = &["drop_capabilities"][..];
    for kind in ["mount", "pid", "net", "ipc", "uts", "cgroup"] {
        held_by(&sandbox, "Namespaces", capabilities, &["unshare", kind]);
        held_by(&sandbox, "drop_capabilities", &["Namespaces"], &["clone", kind]);
    }
    for file in ["/proc/self/ns/uts", "/proc/self/ns/net", "/proc/self/ns/ipc"] {
        held_by(&sandbox, "Setns", capabilities, &["setns", file]);
    }
    held_by(&sandbox, "drop_capabilities", &[], &["hostname"]);
    held_by(&sandbox, "drop_capabilities", &[], &["chroot", "/usr"]);
    held_by(&sandbox, "no_new_privs", &[], &["may-gain-privileges"]);
}

#[test]
fn mounts() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."], "denyWrite": ["a", "b", "c", "d"]}));
    let path = |name: &str| sandbox.write(&format!("work/{name}"), "x").to_str().unwrap().to_owned();
    let [a, b, c, d, other] = ["a", "b", "c", "d", "other"].map(path);
    let folder = sandbox.path("work/folder");
    fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    for attempt in [
        &["mount-tmpfs", folder][..],
        &["bind-over", "/etc", folder],
        &["remount-writable", &a, &a],
        &["umount-and-write", &b],
        &["move-away-and-write", &c, &other],
        &["mount-setattr", &d],
        &["pivot-root", folder],
        &["open-tree"],
        &["fsopen"],
        &["fspick"],
    ] {
        held_by(&sandbox, "Mounts", &["drop_capabilities"], attempt);
    }
}

#[test]
fn kernel() {
    let sandbox = plain();
    for (wall, attempt) in [
        ("IoUring", "io-uring"),
        ("IoUring", "io-uring-enter"),
        ("IoUring", "io-uring-register"),
        ("Bpf", "bpf"),
        ("PerfEvents", "perf"),
        ("UserFaultFd", "userfaultfd"),
        ("Keyrings", "add-key"),
        ("Keyrings", "request-key"),
        ("Keyrings", "session-keyring"),
    ] {
        held_by(&sandbox, wall, &[], &[attempt]);
    }
    if cfg!(target_arch = "x86_64") {
        held_by(&sandbox, "ForeignAbis", &[], &["i386-socket"]);
        held_by(&sandbox, "ForeignAbis", &["user_namespace_limit"], &["i386-unshare"]);
        held_by(&sandbox, "ForeignAbis", &[], &["x32-socket"]);
    }
}

#[test]
fn keys_of_the_callers_session() {
    let sandbox = plain();
    let found = |walls: &[&str]| {
        let mut launcher = sandbox.command(ATTEMPT);
        launcher.args(["with-session-key", "srt-escape", WITHOUT]);
        succeeds_by(launcher, &sandbox, walls, &["find-session-key", "srt-escape"])
    };
    assert!(!found(&[]));
    assert!(!found(&["Keyrings"]), "the keyring is the caller's");
    assert!(found(&["Keyrings", "session_keyring"]));
}

/// A process of the host.
struct Victim(Child);

impl Victim {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").stdin(Stdio::null()).process_group(0).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn processes_of_the_host() {
    let sandbox = plain();
    for attempt in ["kill", "pidfd-open", "priority", "affinity"] {
        let victim = Victim::new();
        held_by(&sandbox, "pid_namespace", &[], &[attempt, &victim.pid()]);
    }
    let victim = Victim::new();
    held_by(&sandbox, "pid_namespace", &[], &["read", &format!("/proc/{}/cmdline", victim.pid())]);

    let mut victim = Victim::new();
    let kill_group = |victim: &Victim, walls: &[&str]| {
        let mut launcher = sandbox.command(WITHOUT);
        launcher.process_group(victim.0.id() as i32);
        launcher.args(walls.iter().flat_map(|wall| ["--without", wall]));
        launcher.arg(sandbox.settings_file()).args([ATTEMPT, "kill-group"]).output().unwrap();
    };
    kill_group(&victim, &[]);
    assert!(victim.lives(), "kill(0) gets out");
    kill_group(&victim, &["process_group"]);
    victim.0.wait().unwrap();
}

#[test]
fn the_first_process() {
    let sandbox = plain();
    for attempt in [
        &["trace", "1"][..],
        &["read-memory", "1"],
        &["read", "/proc/1/environ"],
        &["read-link", "/proc/1/fd/0"],
        &["read-link", "/proc/1/cwd"],
        &["open-for-writing", "/proc/1/mem"],
        &["read", "/proc/1/maps"],
    ] {
        held_by(&sandbox, "undumpable_init", &[], attempt);
    }
}

#[test]
fn objects_that_keys_name() {
    let sandbox = plain();
    for (kind, attempt) in
        [(SystemV::Memory, "shm"), (SystemV::Semaphores, "semaphores"), (SystemV::Messages, "messages")]
    {
        let object = SystemVObject::new(kind);
        held_by(&sandbox, "ipc_namespace", &[], &[attempt, &object.key.to_string()]);
    }
}

#[test]
fn descriptors() {
    let sandbox = Sandbox::new(json!({"denyRead": ["secret"]}));
    let secret = File::open(sandbox.write("work/secret", "x")).unwrap();
    let outside = File::open(sandbox.path("outside")).unwrap();
    let try_with = |fd: OwnedFd, walls: &[&str], attempt: &[&str]| {
        let mut launcher = sandbox.command(WITHOUT);
        inherit(&mut launcher, vec![fd]);
        succeeds_by(launcher, &sandbox, walls, attempt)
    };
    for number in [7, 211] {
        for (file, attempt, more) in [(&secret, "read-fd", None), (&outside, "write-below-fd", Some("new"))] {
            for (walls, want) in [(&[][..], false), (&["close_descriptors"], true)] {
                let fd = copy_from(number, file);
                let number = fd.as_raw_fd().to_string();
                let attempt: Vec<&str> = [attempt, &number].into_iter().chain(more).collect();
                assert_eq!(try_with(fd, walls, &attempt), want, "{attempt:?} without {walls:?}");
            }
        }
    }
}

#[test]
fn files_outside() {
    let sandbox = plain();
    let path = |name: &str| sandbox.write(&format!("outside/{name}"), "x").to_str().unwrap().to_owned();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let [a, b, c, d, e, f, g, h, i, j] = names.map(path);
    let outside = sandbox.path("outside").to_str().unwrap().to_owned();
    let (new, renamed) = (format!("{outside}/new"), format!("{outside}/renamed"));
    for attempt in [
        &["write", &a][..],
        &["write", &format!("/proc/self/root{b}")],
        &["write", "../outside/c"],
        &["write", "/proc/self/cwd/../outside/d"],
        &["truncate", &c],
        &["unlink", &d],
        &["rename", &e, &renamed],
        &["mkdir", &new],
        &["chmod", &f],
        &["times", &g],
        &["xattr", &h],
        &["symlink-over", &i],
        &["reopen-for-writing", &j],
        &["tmpfile", &outside],
    ] {
        held_by(&sandbox, "read-only-root", &[], attempt);
    }
}

#[test]
fn denied_files() {
    let sandbox = Sandbox::new(json!({
        "allowWrite": ["."], "denyWrite": ["a", "b", "c", "d", "e", "deep/er/f"], "denyRead": ["secret", "hidden"]
    }));
    let path = |name: &str| sandbox.write(&format!("work/{name}"), "x").to_str().unwrap().to_owned();
    let names = ["a", "b", "c", "d", "e", "deep/er/f", "secret", "hidden/file", ".bashrc", "sub/.mcp.json"];
    let [a, b, c, d, e, f, secret, hidden, bashrc, mcp] = names.map(path);
    let work = sandbox.path("work").to_str().unwrap().to_owned();
    let at = |path: &str| format!("mount:{path}");
    for (protected, attempt) in [
        (&a, &["write", &a][..]),
        (&a, &["truncate", &a]),
        (&a, &["chmod", &a]),
        (&a, &["reopen-for-writing", &a]),
        (&b, &["unlink", &b]),
        (&c, &["rename", &c, &format!("{work}/c2")]),
        (&d, &["symlink-over", &d]),
        (&e, &["rename", &format!("{work}/c2"), &e]),
        (&bashrc, &["write", &bashrc]),
        (&bashrc, &["unlink", &bashrc]),
        (&mcp, &["write", &mcp]),
        (&secret, &["read", &secret]),
        (&secret, &["read", &format!("/proc/self/root{secret}")]),
    ] {
        held_by(&sandbox, &at(protected), &[], attempt);
    }
    let folder = format!("{work}/hidden");
    for attempt in [&["list", &folder][..], &["read", &hidden]] {
        held_by(&sandbox, &at(&folder), &[], attempt);
    }
    for absent in [".profile", ".gitconfig", ".idea"] {
        let path = format!("{work}/{absent}");
        held_by(&sandbox, &at(&path), &[], &["write", &path]);
    }
    // Out of the way of its deny, which holds a path.
    held_by(&sandbox, "pins", &[], &["rename", &format!("{work}/deep"), &format!("{work}/moved")]);
    fs::rename(format!("{work}/moved"), format!("{work}/deep")).unwrap();
    held_by(&sandbox, "pins", &[], &["race-rename", &f, &format!("{work}/deep/er")]);
}

#[test]
fn devices_and_the_machine() {
    let sandbox = plain();
    let name = format!("srt-escape-{}", std::process::id());
    let shared = format!("/dev/shm/{name}");
    fs::write(&shared, "x").unwrap();
    held_by(&sandbox, "private_dev", &[], &["read", &shared]);
    fs::remove_file(&shared).unwrap();
    held_by(&sandbox, "proc_masks", &["Keyrings"], &["read", "/proc/keys"]);
    held_by(&sandbox, "proc_masks", &[], &["read", "/proc/key-users"]);
    if !geteuid().is_root() {
        return;
    }
    // What the kernel lets uid 0 do without any capability.
    for file in
        ["kernel/core_pattern", "kernel/hotplug", "vm/drop_caches", "kernel/modprobe", "kernel/hostname"]
    {
        let path = format!("/proc/sys/{file}");
        if fs::exists(&path).unwrap() {
            held_by(&sandbox, "proc_read_only", &[], &["open-for-writing", &path]);
        }
    }
    held_by(&sandbox, "proc_read_only", &[], &["open-for-writing", "/proc/irq/default_smp_affinity"]);
    held_by(&sandbox, "proc_masks", &[], &["read", "/proc/timer_list"]);
    if fs::exists("/proc/sysrq-trigger").unwrap() {
        held_by(&sandbox, "proc_masks", &[], &["open-for-writing", "/proc/sysrq-trigger"]);
    }
    let node = sandbox.path("work/zero");
    mknod(&node, SFlag::S_IFCHR, Mode::from_bits_truncate(0o600), makedev(1, 5)).unwrap();
    held_by(&sandbox, "nodev", &[], &["read", node.to_str().unwrap()]);
}
