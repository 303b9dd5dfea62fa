use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use srt_shared::event::Event;

use super::conn::PATIENCE;
use super::{Pki, TestDecider};
use crate::binary::binary;
use crate::program::start;
use crate::sys;

/// A proxy about to be started.
#[derive(Debug)]
pub struct Starter {
    command: Command,
    fds: Vec<OwnedFd>,
    listener: Option<TcpListener>,
    events: Option<OwnedFd>,
    deaf: bool,
}

/// A running proxy. When the test panics, what it wrote to stderr is shown.
#[derive(Debug)]
pub struct TestProxy {
    child: Child,
    address: SocketAddr,
    // Locked, so that the clients of one test may be threads.
    stderr: Mutex<Receiver<String>>,
    events: Option<Mutex<Receiver<String>>>,
}

/// What became of it.
#[derive(Debug)]
pub struct Exited {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Starter {
    /// A proxy without any option. Of this process's environment it gets nothing.
    pub fn bare() -> Self {
        let mut command = Command::new(binary("srt-proxy"));
        command.env_clear();
        sys::reset_inherited(&mut command);
        Self { command, fds: Vec::new(), listener: None, events: None, deaf: false }
    }

    /// A proxy that listens on an inherited socket, asks `decider`, and mints with the CA of `pki`.
    pub fn new(pki: &Pki, decider: &TestDecider) -> Self {
        Self::bare().listen().fd("--decider-fd", decider.proxy_end()).ca(pki)
    }

    /// A proxy that `srt-decider-example` starts, which decides by a rules file. The process is then the
    /// decider's; what the other functions add are arguments and descriptors of the proxy.
    pub fn under_decider(rules: &Path, log: Option<&Path>) -> Self {
        let mut command = Command::new(binary("srt-decider-example"));
        sys::reset_inherited(&mut command);
        command.env_clear().arg("--rules").arg(rules);
        if let Some(log) = log {
            command.arg("--log").arg(log);
        }
        command.arg("--").arg(binary("srt-proxy"));
        Self { command, fds: Vec::new(), listener: None, events: None, deaf: false }
    }

    /// Sets a variable in its environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Gives it a listening socket, which takes connections from now on.
    pub fn listen(mut self) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = listener.try_clone().unwrap().into();
        self.listener = Some(listener);
        self.fd("--listen-fd", theirs)
    }

    /// Gives it the CA of clients to mint with, and that of the upstreams to trust.
    pub fn ca(self, pki: &Pki) -> Self {
        self.ca_text(&pki.proxy_ca_text()).arg("--upstream-ca").arg(pki.upstream_ca_file())
    }

    /// Gives it this as its CA.
    pub fn ca_text(self, pem: &[u8]) -> Self {
        let (read, mut write) = std::io::pipe().unwrap();
        // Less than what a pipe holds, so it can be written before anybody reads.
        write.write_all(pem).unwrap();
        self.fd("--ca-fd", read.into())
    }

    /// Lets it find upstreams of this process by `names`.
    pub fn resolve(self, names: &[&str]) -> Self {
        let starter = self.arg("--allow-resolved").arg("127.0.0.1");
        names.iter().fold(starter, |starter, name| starter.arg("--resolve").arg(format!("{name}=127.0.0.1")))
    }

    /// Has its events gathered.
    pub fn events(mut self) -> Self {
        let (read, write) = std::io::pipe().unwrap();
        self.events = Some(read.into());
        self.fd("--events-fd", write.into())
    }

    /// Gives it settings.
    pub fn settings(self, settings: &Value) -> Self {
        let (read, mut write) = std::io::pipe().unwrap();
        // Less than what a pipe holds.
        write.write_all(settings.to_string().as_bytes()).unwrap();
        self.fd("--settings-fd", read.into())
    }

    /// Closes the other end of its stderr.
    pub fn unheard(mut self) -> Self {
        self.deaf = true;
        self
    }

    /// An option that names a descriptor.
    pub fn fd(mut self, flag: &str, fd: OwnedFd) -> Self {
        let number = fd.as_raw_fd().to_string();
        self.fds.push(fd);
        self.arg(flag).arg(number)
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.command.arg(arg.into());
        self
    }

    /// More arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Starts it. Whether it can serve shows when it is used: connections wait in the listener until then.
    pub fn start(mut self) -> TestProxy {
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let address = match &self.listener {
            Some(listener) => listener.local_addr().unwrap(),
            None => SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        sys::inherit(&mut self.command, self.fds);
        let mut child = start(&mut self.command);
        // Ours must close, or the ends of pipes and sockets would never be seen.
        drop(self.command);
        let stderr = child.stderr.take().unwrap();
        let stderr = if self.deaf { read_lines(std::io::empty()) } else { read_lines(stderr) };
        TestProxy {
            child,
            address,
            stderr: Mutex::new(stderr),
            events: self.events.map(|fd| Mutex::new(read_lines(fs::File::from(fd)))),
        }
    }
}

impl TestProxy {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next line it writes to stderr.
    pub fn next_line(&self) -> String {
        self.stderr.lock().unwrap().recv_timeout(PATIENCE).expect("a line on stderr")
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How many descriptors it has open.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// Its resident memory now, in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// The most it ever had resident, in KiB.
    pub fn peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let value =
            status.lines().find_map(|line| line.strip_prefix(key)).expect("a key of /proc/PID/status");
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Its next event, as the line it wrote and as what a reader makes of that.
    pub fn next_event(&self) -> (String, Event) {
        let events = self.events.as_ref().expect("started with events");
        let line = events.lock().unwrap().recv_timeout(PATIENCE).expect("an event");
        let event = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        (line, event)
    }

    /// All further events, once it has ended.
    pub fn remaining_events(&self) -> Vec<String> {
        self.events.as_ref().expect("started with events").lock().unwrap().iter().collect()
    }

    /// Asks it to end by a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).unwrap();
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not come.
    pub fn wait(&mut self) -> Exited {
        let mut stderr = String::new();
        loop {
            match self.stderr.lock().unwrap().recv_timeout(PATIENCE) {
                Ok(line) => stderr.extend([&line, "\n"]),
                // It holds the only other end.
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the proxy has not ended"),
            }
        }
        let status = self.child.wait().unwrap();
        Exited { status, stderr }
    }

    /// Whether it is still running.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for TestProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking()
            && let Ok(stderr) = self.stderr.lock()
        {
            for line in stderr.iter() {
                eprintln!("srt-proxy wrote: {line}");
            }
        }
    }
}

fn read_lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
