//! The only unsafe code of the crate: taking over a descriptor by its number, and what a child does between
//! fork and exec.
#![allow(unsafe_code)]

use std::{
    io,
    os::{
        fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::{
        prctl::set_pdeathsig,
        signal::{SigSet, Signal},
        socket::{SockType, getsockopt, sockopt},
    },
};

/// Takes over a connected stream socket that whoever started this process left open for it.
///
/// # Errors
/// If it is not open, or is something else.
pub fn adopt_socket(number: RawFd) -> io::Result<OwnedFd> {
    if number < 3 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "0, 1 and 2 are the standard streams"));
    }
    // SAFETY: borrowed for a few system calls only, which are defined for any number (EBADF if it is not open).
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    // Whatever this process opened itself, such as its log, is close-on-exec; what it inherited was not.
    if FdFlag::from_bits_retain(fcntl(borrowed, FcntlArg::F_GETFD)?).contains(FdFlag::FD_CLOEXEC) {
        return Err(nix::errno::Errno::EBADF.into());
    }
    if !getsockopt(&borrowed, sockopt::SockType).is_ok_and(|kind| kind == SockType::Stream) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a stream socket"));
    }
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // SAFETY: it is open, as `F_SETFD` succeeded, and nothing in this process owns it: it was inherited, and a
    // second call would find it close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Gives the child the signal mask of before, and lets it end when we do.
pub fn prepare_child(command: &mut Command, mask: SigSet) {
    let prepare = move || {
        mask.thread_set_mask()?;
        // Losing its decider stops the proxy as well; this also stops whatever else was started in its place.
        set_pdeathsig(Signal::SIGTERM)?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed: these are two system calls, and
    // neither they nor the conversion of their errno allocate.
    unsafe { command.pre_exec(prepare) };
}
