//! The only unsafe code of the crate: taking ownership of descriptors the host left open for us, and watching
//! them.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::io;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use tokio::io::unix::AsyncFd;

static ADOPTED: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

/// Takes over descriptor `number`, which the host opened before it started us, and makes it close-on-exec.
///
/// Each number can be taken once: a second owner would close it under the first.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    let mut adopted = ADOPTED.lock().unwrap_or_else(|e| e.into_inner());
    if adopted.contains(&number) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is used for two things"));
    }
    // SAFETY: borrowed for two `fcntl` calls only, which are defined for any number (EBADF when it is not open).
    let borrowed = unsafe { BorrowedFd::borrow_raw(number.max(0)) };
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    fcntl(borrowed, FcntlArg::F_GETFD)?;
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    adopted.insert(number);
    // SAFETY: the descriptor is open (F_GETFD succeeded), came from the host by number on the command line, so
    // nothing in this process opened or owns it, and `ADOPTED` keeps this from happening twice.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Registers a descriptor with the event loop. Fails for what cannot be waited on, such as a regular file.
pub fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor for its whole life, and the `AsyncFd` owns it.
    unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)
}

/// One packet, and the descriptors that came with it.
#[derive(Debug)]
pub struct Packet {
    /// Bytes of it.
    pub len: usize,
    /// Its descriptors, close-on-exec.
    pub fds: Vec<OwnedFd>,
    /// Whether the kernel cut off bytes or descriptors.
    pub truncated: bool,
}

/// Descriptors one packet can carry here: a session and its four kinds of listeners, and some to be refused.
const FDS: usize = 16;

/// Receives one packet from a `SOCK_SEQPACKET` socket.
pub fn receive(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Packet> {
    let mut space = nix::cmsg_space!([RawFd; FDS]);
    let mut slices = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut space), flags)?;
    let mut fds = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = control {
            // SAFETY: the kernel has just made these descriptors for this call, so nobody else owns them.
            fds.extend(received.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    let truncated = message.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC);
    Ok(Packet { len: message.bytes, fds, truncated })
}

/// Tells glibc's allocator to keep buffers of the size of a request's body. By default it gives 128 KiB back to the
/// kernel at once, and a busy proxy spends more time in page faults than in copying.
pub fn tune_allocator() {
    const KEEP: libc::c_int = 4 << 20;
    #[cfg(target_env = "gnu")]
    // SAFETY: `mallopt` takes numbers and may be called at any time; a refused value leaves the default.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEEP);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEEP);
    }
}
