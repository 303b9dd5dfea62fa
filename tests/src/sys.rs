//! The only unsafe code of the harness: children that inherit descriptors.
#![allow(unsafe_code)]

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// Lets the child keep `fds`, under the numbers they have here.
///
/// They stay close-on-exec in this process: a child that another thread starts meanwhile must not hold a copy,
/// or the end of a pipe would never be seen. Dropping `command` closes them here.
pub fn inherit(command: &mut Command, fds: Vec<OwnedFd>) {
    let keep_open = move || {
        for fd in &fds {
            fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only calls fcntl, which is async-signal-safe, on descriptors that
    // it owns; it does not allocate.
    unsafe { command.pre_exec(keep_open) };
}
