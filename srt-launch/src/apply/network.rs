//! The network of the sandbox: a namespace with nothing but a loopback.

use std::fs::File;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::failure::{During, Failure, Step};
use crate::sys::{self, Thread};

/// The network while it is being made, which takes the kernel about as long as all mounts together. So a thread does
/// it, which has a namespace of its own meanwhile; it is gone when the network is entered.
pub struct Network(Thread<Result<File, Failure>>);

impl Network {
    /// Begins to make it.
    pub fn begin() -> Result<Self, Failure> {
        /// A few system calls, and a failure to be told.
        const STACK: usize = 64 << 10;
        Thread::start(STACK, make).during(Step::Network, "start a thread").map(Self)
    }

    /// Moves the calling thread there, once it is made.
    pub fn enter(self) -> Result<(), Failure> {
        let namespace = self.0.join().during(Step::Network, "join a thread")??;
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
