//! The network of the sandbox: a namespace with nothing but a loopback.

use std::fs::File;
use std::thread::{Builder, JoinHandle};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::failure::{During, Failure, Step};
use crate::sys;

/// The network while it is being made, which takes the kernel about as long as all mounts together. So a thread does
/// it, which has a namespace of its own meanwhile; it is gone when the network is entered.
pub struct Network(JoinHandle<Result<File, Failure>>);

impl Network {
    /// Begins to make it.
    pub fn begin() -> Result<Self, Failure> {
        /// A few system calls, and a failure to be told.
        const STACK: usize = 64 << 10;
        let thread = Builder::new().stack_size(STACK).spawn(make).during(Step::Network, "start a thread")?;
        Ok(Self(thread))
    }

    /// Moves the calling thread there, once it is made.
    pub fn enter(self) -> Result<(), Failure> {
        let namespace = self.0.join().unwrap_or_else(|_| Err(Errno::ECHILD).during(Step::Network, "join"))?;
        setns(namespace, CloneFlags::CLONE_NEWNET).during(Step::Network, "setns")
    }
}

fn make() -> Result<File, Failure> {
    unshare(CloneFlags::CLONE_NEWNET).during(Step::Network, "unshare(CLONE_NEWNET)")?;
    loopback_up()?;
    File::open("/proc/thread-self/ns/net").during(Step::Network, "open /proc/thread-self/ns/net")
}

/// Sets `lo` up, so that programs inside can talk to each other.
fn loopback_up() -> Result<(), Failure> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .during(Step::Network, "socket(AF_INET)")?;
    sys::loopback_up(socket).during(Step::Network, "ioctl(SIOCSIFFLAGS, lo)")
}
