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

impl Packet {
    /// Whether nothing came with it.
    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.fds.is_empty() && !self.truncated
    }
}

/// Descriptors one packet can carry here: a session and its four kinds of listeners, and some to be refused.
const FDS: usize = 16;

/// Room for a control message with so many, in words, which are aligned as its header has to be.
// SAFETY: arithmetic on its argument.
const CONTROL_WORDS: usize = unsafe { libc::CMSG_SPACE((FDS * size_of::<RawFd>()) as u32) } as usize / 8;

/// Receives one packet from a `SOCK_SEQPACKET` socket. Of one that was cut off, every descriptor that did arrive is in
/// the result: nix gives none of them out then, and they would stay open for ever.
pub fn receive(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Packet> {
    let mut space = [0_u64; CONTROL_WORDS];
    let mut slice = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a `msghdr` is plain data, for which all zeros mean that nothing is asked for.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut slice;
    header.msg_iovlen = 1;
    header.msg_control = space.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&space) as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header points to one slice and to control space, with their true sizes, and all three outlive
    // the call.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    let truncated = header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
    // SAFETY: the kernel has just filled in the header.
    Ok(Packet { len, fds: unsafe { take_fds(&header) }, truncated })
}

/// Takes over the descriptors that came with a message.
///
/// # Safety
/// The header must be as `recvmsg` left it, its control space still there, and this be the only call for it.
unsafe fn take_fds(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut fds = Vec::new();
    // SAFETY: the kernel wrote well-formed control messages, which these walk over. The number of descriptors is
    // that of the whole ones in the data of the message, which the kernel has made for this call, so that nobody
    // else owns them; they may lie unaligned.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(control) = message.as_ref() {
            if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS {
                let bytes = control.cmsg_len - libc::CMSG_LEN(0) as usize;
                let first = libc::CMSG_DATA(message).cast::<RawFd>();
                for at in 0..bytes / size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(first.add(at).read_unaligned()));
                }
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    fds
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

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use nix::sys::socket::{
        AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair,
    };

    use super::*;

    fn packet(text: &[u8], descriptors: usize, buffer: &mut [u8]) -> Packet {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::empty()).unwrap();
        let pipe = io::pipe().unwrap().0;
        let fds = vec![pipe.as_raw_fd(); descriptors];
        let rights = [ControlMessage::ScmRights(&fds)];
        let rights = if descriptors == 0 { &[] } else { &rights[..] };
        let text = [IoSlice::new(text)];
        sendmsg::<()>(theirs.as_raw_fd(), &text, rights, MsgFlags::empty(), None).unwrap();
        receive(&ours, buffer).unwrap()
    }

    #[test]
    fn a_packet_comes_with_its_descriptors() {
        for descriptors in [0, 1, 2, FDS] {
            let mut buffer = [0; 8];
            let Packet { len, fds, truncated } = packet(b"packet", descriptors, &mut buffer);
            assert_eq!((&buffer[..len], fds.len(), truncated), (&b"packet"[..], descriptors, false));
        }
    }

    #[test]
    fn what_is_too_large_is_told_and_leaves_no_descriptor_without_an_owner() {
        let mut buffer = [0; 8];
        let Packet { fds, truncated, .. } = packet(b"packet", FDS + 1, &mut buffer);
        assert!(truncated && fds.len() == FDS, "{}", fds.len());
        let Packet { fds, truncated, .. } = packet(b"a long packet", 1, &mut buffer);
        assert!(truncated && fds.len() == 1);
    }
}
