//! The network of the sandbox: a namespace with nothing but a loopback.

use std::fs::File;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::failure::{During, Failure, Step};
use crate::sys::{self, Thread};

/// The network while it is being made, which takes the kernel about as long as all mounts together. So a thread does
/// it, which has a namespace of its own meanwhile; it is gone when the network is entered.
pub enum Network {
    /// A thread makes it.
    Coming(Thread<Result<File, Failure>>),
    /// No thread was to be had, so the calling one has made it, and is there.
    Entered,
}

impl Network {
    /// Begins to make it.
    pub fn begin() -> Result<Self, Failure> {
        /// A few system calls, and a failure to be told.
        const STACK: usize = 64 << 10;
        Self::begin_on(STACK)
    }

    /// Memory may be short, or a container's filter refuse `clone3`, with which the C library starts threads.
    fn begin_on(stack: usize) -> Result<Self, Failure> {
        match Thread::start(stack, make) {
            Ok(thread) => Ok(Self::Coming(thread)),
            Err(_) => new().map(|()| Self::Entered),
        }
    }

    /// Moves the calling thread there, once it is made.
    pub fn enter(self) -> Result<(), Failure> {
        let Self::Coming(thread) = self else { return Ok(()) };
        let namespace = thread.join().during(Step::Network, "join a thread")??;
        setns(namespace, CloneFlags::CLONE_NEWNET).during(Step::Network, "setns")
    }
}

/// Moves the calling thread to a new one.
fn new() -> Result<(), Failure> {
    unshare(CloneFlags::CLONE_NEWNET).during(Step::Network, "unshare(CLONE_NEWNET)")?;
    loopback_up()
}

fn make() -> Result<File, Failure> {
    new()?;
    File::open("/proc/thread-self/ns/net").during(Step::Network, "open /proc/thread-self/ns/net")
}

/// Sets `lo` up, so that programs inside can talk to each other.
fn loopback_up() -> Result<(), Failure> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .during(Step::Network, "socket(AF_INET)")?;
    sys::loopback_up(socket).during(Step::Network, "ioctl(SIOCSIFFLAGS, lo)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_thread_or_without_one() {
        if !nix::unistd::geteuid().is_root() {
            // Who needs a user namespace first, which a process of many threads cannot make.
            let test = "apply::network::tests::with_a_thread_or_without_one";
            let mut again = std::process::Command::new("unshare");
            again.args(["--user", "--map-root-user"]).arg(std::env::current_exe().unwrap());
            assert!(again.args(["--exact", test]).status().unwrap().success());
            return;
        }
        let here = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let mut seen = vec![here()];
        for stack in [64 << 10, usize::MAX / 4] {
            let network = Network::begin_on(stack).unwrap();
            assert_eq!(matches!(network, Network::Entered), stack > 64 << 10);
            network.enter().unwrap();
            assert!(!seen.contains(&here()));
            seen.push(here());
            std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        }
    }
}
