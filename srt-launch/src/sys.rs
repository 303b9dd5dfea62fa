//! System calls that no safe crate wraps, one small function each. The only module of this crate with `unsafe`.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_long, c_uint, c_void};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::unistd::Pid;

use crate::bpf::Instruction;

mod thread;
mod wait;

pub use thread::Thread;
pub use wait::wait;

/// Standard input, output and error.
pub const STANDARD_STREAMS: [BorrowedFd<'static>; 3] = {
    // SAFETY: the standard library opens them before `main` where they are closed, and nothing closes them.
    unsafe { [BorrowedFd::borrow_raw(0), BorrowedFd::borrow_raw(1), BorrowedFd::borrow_raw(2)] }
};

/// Makes names of hosts and users come from the C library's own services: files and DNS. A program that is linked with
/// its archive would otherwise load whatever modules `/etc/nsswitch.conf` names, and with them a second C library,
/// perhaps of another version.
#[cfg(static_libc)]
pub fn use_own_name_services() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const libc::c_char, services: *const libc::c_char) -> c_int;
    }
    ONCE.call_once(|| {
        for (database, services) in [(c"hosts", c"files dns"), (c"passwd", c"files")] {
            // SAFETY: both are NUL-terminated, and copied. Whoever looks something up has called this first, so no other
            // thread does just now. It fails only for a database that it does not know.
            unsafe { __nss_configure_lookup(database.as_ptr(), services.as_ptr()) };
        }
    });
}

/// The C library is a shared one, and loads modules of its own version.
#[cfg(not(static_libc))]
pub fn use_own_name_services() {}

/// A child of [`clone_child`].
#[derive(Debug)]
pub struct Child {
    /// Its number in our pid namespace; ours to wait for, so it is not given to another process meanwhile.
    pub pid: Pid,
    /// Readable once the child and, where it is a pid 1, every process of its namespace have ended.
    pub pidfd: OwnedFd,
}

/// Starts a process in new namespaces that runs `body` and ends with its exit status. Memory is copied as by
/// `fork`: the caller must be single-threaded, or a lock held by another thread stays locked in the child.
///
/// Plain `clone` and not `clone3`: filters of containers, ours included, refuse the latter.
pub fn clone_child(namespaces: CloneFlags, body: impl FnOnce() -> i32) -> nix::Result<Child> {
    let mut pidfd: c_int = -1;
    let flags = (namespaces.bits() | libc::CLONE_PIDFD | libc::SIGCHLD) as c_long;
    // SAFETY: no stack is given, so this forks: the child goes on with a copy of this stack. `pidfd` outlives
    // the call. The last two arguments are used by no flag given here, so their order, which differs between
    // machines, does not matter.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, &raw mut pidfd, 0, 0) } {
        -1 => Err(Errno::last()),
        0 => {
            // No way out of here but the end of the process: a panic must not run the parent's code twice.
            let mut end = EndProcess(crate::exit::OWN_FAILURE);
            end.0 = body();
            drop(end);
            unreachable!("the process has ended")
        }
        pid => {
            // SAFETY: the kernel just made this descriptor for us.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Child { pid: Pid::from_raw(pid as i32), pidfd })
        }
    }
}

/// Starts a process that runs `body`, whose last act is to execute a program; if that fails, it ends with the exit status
/// of `body`. Until then the child lives in this process's memory and this one stands still, as with `vfork`: to copy
/// the memory for a child that throws it away would take longer than all else it does here.
///
/// A child that is stopped before its program runs keeps this process waiting, so there must be no terminal that
/// could stop it.
pub fn start_program<F: FnOnce() -> i32>(body: F) -> nix::Result<Pid> {
    /// What a failure needs to be told in, many times over.
    const STACK: usize = 64 << 10;
    extern "C" fn run<F: FnOnce() -> i32>(body: *mut c_void) -> c_int {
        // No way out of here but the end of the process, as in `clone_child`.
        let mut end = EndProcess(crate::exit::OWN_FAILURE);
        // SAFETY: this is the `body` of the waiting caller below, which does not touch it meanwhile.
        let body = unsafe { &mut *body.cast::<Option<F>>() };
        if let Some(body) = body.take() {
            end.0 = body();
        }
        drop(end);
        unreachable!("the process has ended")
    }
    // Not zeroed: few of its pages will ever be touched.
    let mut stack = Vec::<u8>::with_capacity(STACK);
    let mut body = Some(body);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: stacks grow downwards on all machines we know, from an end that is aligned for them. The stack and `body`
    // outlive the child's use of this memory, for this thread, the only one, goes on only when that is over.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK);
        let aligned = top.sub(top.addr() % 16);
        libc::clone(run::<F>, aligned.cast(), flags, (&raw mut body).cast())
    };
    Errno::result(pid).map(Pid::from_raw)
}

/// Ends the process without what `exit` does on behalf of the program: the parent's buffers are not ours.
struct EndProcess(i32);

impl Drop for EndProcess {
    fn drop(&mut self) {
        // SAFETY: ends the process; nothing runs after it.
        unsafe { libc::_exit(self.0) }
    }
}

/// `open_tree` of what `at` refers to: a detached copy of its mount, with all mounts below if `recursive`.
pub fn clone_tree(at: impl AsFd, recursive: bool) -> nix::Result<OwnedFd> {
    let recursive = if recursive { libc::AT_RECURSIVE as c_uint } else { 0 };
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_EMPTY_PATH as c_uint | recursive;
    // SAFETY: the path is a NUL-terminated constant; the kernel keeps no pointer.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, at.as_fd().as_raw_fd(), c"".as_ptr(), flags) })
}

/// The same of what is at `path` below `directory`. Only for trees in which nobody can have planted a link, since those
/// on the way would be followed.
pub fn clone_tree_at(directory: impl AsFd, path: &CStr, recursive: bool) -> nix::Result<OwnedFd> {
    let recursive = if recursive { libc::AT_RECURSIVE as c_uint } else { 0 };
    let flags =
        libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_SYMLINK_NOFOLLOW as c_uint | recursive;
    // SAFETY: the path is NUL-terminated; the kernel keeps no pointer.
    descriptor(unsafe {
        libc::syscall(libc::SYS_open_tree, directory.as_fd().as_raw_fd(), path.as_ptr(), flags)
    })
}

/// Attaches the detached mount `from` on top of what `to` refers to, which is looked up no more.
pub fn attach_mount(from: impl AsFd, to: impl AsFd) -> nix::Result<()> {
    let (from, to) = (from.as_fd().as_raw_fd(), to.as_fd().as_raw_fd());
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    let empty = c"".as_ptr();
    // SAFETY: both paths are NUL-terminated constants; the kernel keeps no pointer.
    done(unsafe { libc::syscall(libc::SYS_move_mount, from, empty, to, empty, flags) })
}

/// The same on top of what is at `path` below `directory`, in a tree as for [`clone_tree_at`].
pub fn attach_mount_at(from: impl AsFd, directory: impl AsFd, path: &CStr) -> nix::Result<()> {
    let (from, directory) = (from.as_fd().as_raw_fd(), directory.as_fd().as_raw_fd());
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: both paths are NUL-terminated; the kernel keeps no pointer.
    done(unsafe { libc::syscall(libc::SYS_move_mount, from, c"".as_ptr(), directory, path.as_ptr(), flags) })
}

/// Adds `attributes` (`MOUNT_ATTR_*`) to a mount, or to it and all below it, and cuts what it receives from the
/// mounts it was copied from.
pub fn set_mount_attributes(mount: impl AsFd, attributes: u64, recursive: bool) -> nix::Result<()> {
    let attr =
        libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    mount_setattr(mount, attr, recursive)
}

/// Takes `attributes` from a mount.
pub fn clear_mount_attributes(mount: impl AsFd, attributes: u64) -> nix::Result<()> {
    let attr = libc::mount_attr { attr_set: 0, attr_clr: attributes, propagation: 0, userns_fd: 0 };
    mount_setattr(mount, attr, false)
}

fn mount_setattr(mount: impl AsFd, attr: libc::mount_attr, recursive: bool) -> nix::Result<()> {
    let recursive = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: `attr` has the layout and the size named, the path is a NUL-terminated constant.
    done(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attr,
            size_of_val(&attr),
        )
    })
}

/// A new instance of a file system as a detached mount with `attributes` (`MOUNT_ATTR_*`).
pub fn new_filesystem(kind: &CStr, options: &[(&CStr, &CStr)], attributes: u64) -> nix::Result<OwnedFd> {
    /// `FSOPEN_CLOEXEC`
    const CLOEXEC: c_uint = 1;
    // SAFETY: `kind` is NUL-terminated.
    let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOEXEC) })?;
    let configure = |command: c_uint, key: *const libc::c_char, value: *const libc::c_char| {
        // SAFETY: `key` and `value` are null where the command takes none, else NUL-terminated.
        done(unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, key, value, 0) })
    };
    for (key, value) in options {
        configure(libc::FSCONFIG_SET_STRING as c_uint, key.as_ptr(), value.as_ptr())?;
    }
    configure(libc::FSCONFIG_CMD_CREATE as c_uint, std::ptr::null(), std::ptr::null())?;
    // SAFETY: numbers only.
    descriptor(unsafe {
        libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), libc::FSMOUNT_CLOEXEC, attributes)
    })
}

/// Makes every descriptor from `first` to `last` close when a program is executed. Those that are not open are
/// no error.
pub fn close_range_on_exec(first: c_uint, last: c_uint) -> nix::Result<()> {
    // SAFETY: numbers only; nothing is closed now.
    done(unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) })
}

/// Closes every descriptor of this process but `kept`, the standard streams too. For a process that has forked and
/// will not use what it inherited.
pub fn close_all_but_here(kept: &[RawFd]) {
    let mut kept: Vec<c_uint> = kept.iter().filter_map(|fd| c_uint::try_from(*fd).ok()).collect();
    kept.sort_unstable();
    let mut first = 0;
    for fd in kept {
        if fd > first {
            close_range(first, fd - 1);
        }
        first = fd + 1;
    }
    close_range(first, c_uint::MAX);
}

fn close_range(first: c_uint, last: c_uint) {
    // SAFETY: the caller's owned descriptors in the range are never used again: this process runs on without them
    // and ends with `_exit`, which runs no destructor. A call that fails leaves them open, which only costs.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0 as c_uint) };
}

/// Receives one packet, and the descriptor that may come with it.
pub fn receive_descriptor(
    socket: impl AsFd,
    buffer: &mut [IoSliceMut<'_>],
) -> nix::Result<(usize, Option<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; 4]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_fd().as_raw_fd(), buffer, Some(&mut space), flags)?;
    let mut received = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = control {
            // SAFETY: the kernel has just made these descriptors for this call.
            received.extend(fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    Ok((message.bytes, received.pop()))
}

/// Capabilities are bits of a 64-bit set.
const CAPABILITIES: c_int = 64;

/// Leaves of all five capability sets of this thread what is in `keep` (bit n: capability n): permitted,
/// effective and bounding become `keep`, inheritable and ambient empty.
pub fn keep_capabilities(keep: u64) -> nix::Result<()> {
    for capability in 0..CAPABILITIES {
        if keep & (1 << capability) == 0 {
            // SAFETY: numbers only.
            match done(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }.into()) {
                // Past the last one this kernel knows.
                Err(Errno::EINVAL) => break,
                result => result?,
            }
        }
    }
    // SAFETY: numbers only.
    done(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) }.into())?;

    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    #[repr(C)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`: two words of each set.
    const VERSION: u32 = 0x2008_0522;
    let header = Header { version: VERSION, pid: 0 };
    let data = [keep as u32, (keep >> 32) as u32].map(|word| Data {
        effective: word,
        permitted: word,
        inheritable: 0,
    });
    // SAFETY: header and data have the layout of version 3.
    done(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) })
}

/// Installs a system call filter for this thread and all it starts. For good.
pub fn install_filter(program: &[Instruction]) -> nix::Result<()> {
    #[repr(C)]
    struct Program {
        len: u16,
        filter: *const Instruction,
    }
    let len = u16::try_from(program.len()).map_err(|_| Errno::E2BIG)?;
    let program = Program { len, filter: program.as_ptr() };
    // SAFETY: `program` describes `len` instructions in the kernel's layout, which it copies.
    done(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0 as c_uint, &raw const program)
    })
}

/// Replaces the session keyring of this thread by a new, empty one.
pub fn new_session_keyring() -> nix::Result<()> {
    // SAFETY: no name is given; numbers only.
    done(unsafe {
        libc::syscall(libc::SYS_keyctl, libc::KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>())
    })
}

/// Sets the loopback interface of this network namespace up. The kernel then gives it its addresses.
pub fn loopback_up(socket: impl AsFd) -> nix::Result<()> {
    // SAFETY: all zeroes is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an `ifreq` with name and flags.
    done(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) }.into())
}

/// Whether the process was started with this signal ignored, or ignores it now.
pub fn is_ignored(signal: Signal) -> bool {
    // SAFETY: all zeroes is a valid `sigaction`; the call writes the present one there and changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal as c_int, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Sets the default action of a signal.
pub fn restore_default(signal: Signal) -> nix::Result<()> {
    // SAFETY: SIG_DFL runs no code of ours.
    Errno::result(unsafe { libc::signal(signal as c_int, libc::SIG_DFL) as isize }).map(drop)
}

/// Ignores a signal.
pub fn ignore(signal: Signal) -> nix::Result<()> {
    // SAFETY: SIG_IGN runs no code of ours.
    Errno::result(unsafe { libc::signal(signal as c_int, libc::SIG_IGN) as isize }).map(drop)
}

/// Takes over a descriptor that the caller opened before it started us, and makes it close-on-exec.
pub fn adopt(fd: RawFd) -> nix::Result<OwnedFd> {
    if fd <= 2 {
        return Err(Errno::EBADF);
    }
    // SAFETY: numbers only.
    done(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }.into())?;
    // SAFETY: it is open, and came by number on the command line, so nothing in this process owns it; each option
    // that names a descriptor is adopted once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether a descriptor of this number is open.
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: numbers only.
    unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
}

/// Makes a descriptor stay open when a program is executed.
pub fn keep_on_exec(fd: RawFd) -> nix::Result<()> {
    // SAFETY: numbers only.
    done(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }.into())
}

fn done(result: c_long) -> nix::Result<()> {
    Errno::result(result).map(drop)
}

fn descriptor(result: c_long) -> nix::Result<OwnedFd> {
    let fd = Errno::result(result)?;
    // SAFETY: a system call that makes descriptors just made this one.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}
