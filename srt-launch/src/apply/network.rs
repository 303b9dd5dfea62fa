//! The network of the sandbox: a loopback of its own.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::failure::{During, Failure, Step};
use crate::sys;

/// Sets `lo` up, so that programs inside can talk to each other.
pub fn loopback_up() -> Result<(), Failure> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .during(Step::Network, "socket(AF_INET)")?;
    sys::loopback_up(socket).during(Step::Network, "ioctl(SIOCSIFFLAGS, lo)")
}
