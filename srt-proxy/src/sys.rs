//! The only unsafe code of the crate: taking ownership of descriptors the host left open for us, and watching
//! them.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
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

/// The most descriptors that Linux lets one packet carry (`SCM_MAX_FD`).
const FDS: usize = 253;

/// Receives one packet from a `SOCK_SEQPACKET` socket.
///
/// Owns every descriptor that comes, also where the kernel had to leave some away because this process has too many
/// open: nix gives none back then, and they would stay open for ever.
pub fn receive(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Packet> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // Of words, because control messages are aligned to them.
    let mut space = [0_u64; FDS.div_ceil(2) + size_of::<libc::cmsghdr>().div_ceil(8)];
    // SAFETY: a message header of zeros is one with nothing in it.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
    (header.msg_control, header.msg_controllen) = (space.as_mut_ptr().cast(), size_of_val(&space) as _);
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header points to `buffer` and `space`, with their lengths, which outlive the call.
    let read = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let len = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    let mut fds = Vec::new();
    // SAFETY: the kernel has filled the header and its control messages in.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    // SAFETY: null, or a control message within `space`.
    while let Some(control) = unsafe { next.as_ref() } {
        if (control.cmsg_level, control.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: its data are `cmsg_len` less the header bytes of descriptors, which the kernel has just made for
            // this call, so nobody else owns them.
            fds.extend(unsafe {
                let count = (control.cmsg_len as usize - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>();
                let first = libc::CMSG_DATA(next).cast::<RawFd>();
                (0..count).map(move |at| OwnedFd::from_raw_fd(first.add(at).read_unaligned()))
            });
        }
        // SAFETY: both are as the kernel left them.
        next = unsafe { libc::CMSG_NXTHDR(&raw const header, next) };
    }
    Ok(Packet { len, fds, truncated: header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 })
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
