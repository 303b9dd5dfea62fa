//! The only unsafe code of the harness: descriptors that children inherit, System V objects.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::openpty;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::setsid;

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

/// Lets the child begin without what this process happens to have from whoever started the tests: signals
/// that are ignored (`nohup`, a script's `&`) stay so across an exec, and open descriptors would count against a limit of
/// them. What [`inherit`] is asked for afterwards it still gets.
pub fn reset_inherited(command: &mut Command) {
    // SAFETY: between fork and exec the closure only makes system calls, and sets no handler.
    unsafe {
        command.pre_exec(|| {
            for which in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM] {
                signal(which, SigHandler::SigDfl)?;
            }
            // Closed with the exec: the standard library still has one open to tell that it failed.
            let flags = libc::CLOSE_RANGE_CLOEXEC;
            Errno::result(libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, flags))?;
            Ok(())
        })
    };
}

/// Has the kernel refuse the child, and all it starts, a system call: always, or where the argument of this number has this
/// value.
pub fn refuse(command: &mut Command, call: i64, argument: Option<(u32, u32)>, errno: Errno) {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    /// Where the arguments start in `struct seccomp_data`, of 64 bits each.
    const ARGUMENTS: u32 = 16;
    let instruction = |code: u32, jf: usize, k: u32| libc::sock_filter {
        code: u16::try_from(code).expect("a code"),
        jt: 0,
        jf: u8::try_from(jf).expect("a short way"),
        k,
    };
    let values = [(0, u32::try_from(call).expect("a number"))]
        .into_iter()
        .chain(argument.map(|(at, value)| (ARGUMENTS + 8 * at, value)));
    let tests: Vec<_> = values.collect();
    let mut filter = Vec::new();
    for (done, (at, value)) in tests.iter().enumerate() {
        filter.push(instruction(LOAD, 0, *at));
        // Past the tests that are left and the refusal.
        filter.push(instruction(IF_EQUAL, 2 * (tests.len() - done - 1) + 1, *value));
    }
    filter.push(instruction(RETURN, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    filter.push(instruction(RETURN, 0, libc::SECCOMP_RET_ALLOW));
    let install = move || {
        let program = libc::sock_fprog {
            len: u16::try_from(filter.len()).map_err(|_| Errno::E2BIG)?,
            filter: filter.as_ptr().cast_mut(),
        };
        // SAFETY: numbers, and a program of so many instructions, which the kernel copies.
        unsafe {
            Errno::result(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            Errno::result(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program))?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes two system calls; it does not allocate.
    unsafe { command.pre_exec(install) };
}

/// A copy of a descriptor, under the first free number from `number` on.
pub fn copy_from(number: RawFd, fd: impl AsFd) -> OwnedFd {
    let copy = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(number)).expect("a free descriptor");
    // SAFETY: the kernel has just made it for us.
    unsafe { OwnedFd::from_raw_fd(copy) }
}

/// Starts a command on a terminal of its own, which is its controlling one, as a login does. Returns the other end.
pub fn start_on_terminal(command: &mut Command) -> (Child, File) {
    let terminal = openpty(None, None).expect("a terminal");
    for end in [&terminal.master, &terminal.slave] {
        // A child that held the other end of its own terminal would never see it hang up.
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("a flag");
    }
    let stream = || Stdio::from(terminal.slave.try_clone().expect("a descriptor"));
    command.stdin(stream()).stdout(stream()).stderr(stream());
    // SAFETY: between fork and exec the closure only makes two system calls.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Errno::result(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
            Ok(())
        })
    };
    let child = command.spawn().expect("the command starts");
    (child, File::from(terminal.master))
}

/// Sets the size of a terminal's window.
pub fn resize(terminal: &File, rows: u16, columns: u16) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCSWINSZ reads a `winsize`.
    unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
}

/// Kinds of System V objects.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "they are their names")]
pub enum SystemV {
    Memory,
    Semaphores,
    Messages,
}

/// A System V object of this user, removed when it goes.
#[derive(Debug)]
pub struct SystemVObject {
    kind: SystemV,
    id: i32,
    /// What names it in this ipc namespace.
    pub key: i32,
}

impl SystemVObject {
    /// Makes one under a key that is free.
    pub fn new(kind: SystemV) -> Self {
        let first = (std::process::id() & 0xffff) as i32 | 0x5172_0000;
        let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
        for key in first.. {
            // SAFETY: numbers only.
            let id = unsafe {
                match kind {
                    SystemV::Memory => libc::shmget(key, 4096, flags),
                    SystemV::Semaphores => libc::semget(key, 1, flags),
                    SystemV::Messages => libc::msgget(key, flags),
                }
            };
            if id >= 0 {
                return Self { kind, id, key };
            }
        }
        panic!("no free key")
    }
}

impl Drop for SystemVObject {
    fn drop(&mut self) {
        // SAFETY: IPC_RMID takes no argument.
        unsafe {
            match self.kind {
                SystemV::Memory => libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()),
                SystemV::Semaphores => libc::semctl(self.id, 0, libc::IPC_RMID),
                SystemV::Messages => libc::msgctl(self.id, libc::IPC_RMID, std::ptr::null_mut()),
            }
        };
    }
}
