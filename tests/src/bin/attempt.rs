//! One attempt to get out of a sandbox: `attempt NAME ARGUMENTS...`. Exit status 0 if it succeeded; 1 with the reason if
//! it was refused; 2 for a name it does not know. Where the kernel has more to say than the sandbox (a module it lacks,
//! a privilege outside), an attempt counts as a success as soon as the answer is another one than the filter's `EPERM`.
#![allow(unsafe_code, clippy::unwrap_used)]
#![expect(clippy::undocumented_unsafe_blocks, reason = "attempts are raw system calls on their own process")]

use std::ffi::{CString, c_int, c_long, c_void};
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::mem::{size_of_val, zeroed};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::ptr::null;
use std::time::Duration;

use libc::syscall;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match attempt(&args) {
        Some(Ok(())) => {
            println!("succeeded");
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            println!("refused: {error}");
            ExitCode::FAILURE
        }
        None => ExitCode::from(2),
    }
}

fn attempt(args: &[&str]) -> Option<Result<()>> {
    Some(match *args {
        // Files.
        ["write", path] => {
            OpenOptions::new().append(true).create(true).open(path).and_then(|mut f| f.write_all(b"x"))
        }
        ["open-for-writing", path] => OpenOptions::new().write(true).open(path).map(drop),
        ["read", path] => read_something(path),
        ["list", path] => {
            fs::read_dir(path).and_then(|mut found| found.next().is_some().then_some(()).ok_or_else(nothing))
        }
        ["read-link", path] => fs::read_link(path).map(drop),
        ["unlink", path] => fs::remove_file(path),
        ["rename", from, to] => fs::rename(from, to),
        ["mkdir", path] => fs::create_dir(path),
        ["chmod", path] => fs::set_permissions(path, PermissionsExt::from_mode(0o777)),
        ["truncate", path] => OpenOptions::new().write(true).truncate(true).open(path).map(drop),
        ["symlink-over", path] => {
            let new = format!("{path}.new");
            let _ = fs::remove_file(&new);
            std::os::unix::fs::symlink("/dev/null", &new).and_then(|()| fs::rename(&new, path))
        }
        ["times", path] => {
            let path = c_string(path);
            ok(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), null(), 0) }.into())
        }
        ["xattr", path] => {
            let path = c_string(path);
            ok(unsafe { libc::setxattr(path.as_ptr(), c"user.x".as_ptr(), c"y".as_ptr().cast(), 1, 0) }
                .into())
        }
        ["reopen-for-writing", path] => File::open(path).and_then(|file| {
            let again = format!("/proc/self/fd/{}", file.as_raw_fd());
            OpenOptions::new().append(true).open(again)?.write_all(b"x")
        }),
        ["tmpfile", folder] => {
            OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(folder).map(drop)
        }
        ["read-fd", number] => read_something(&format!("/proc/self/fd/{number}")),
        ["write-below-fd", number, name] => {
            let (fd, name) = (number.parse().unwrap(), c_string(name));
            ok(unsafe { libc::openat(fd, name.as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o600) }.into())
        }
        ["race-rename", protected, folder] => race(protected, folder),

        // Mounts.
        ["mount-tmpfs", at] => mount("none", at, "tmpfs", 0),
        ["bind-over", from, at] => mount(from, at, "", libc::MS_BIND),
        ["remount-writable", at, file] => {
            mount("", at, "", libc::MS_REMOUNT | libc::MS_BIND).and_then(|()| append(file))
        }
        ["umount-and-write", at] => {
            let path = c_string(at);
            ok(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }.into()).and_then(|()| append(at))
        }
        ["move-away-and-write", at, to] => mount(at, to, "", libc::MS_MOVE).and_then(|()| append(at)),
        ["pivot-root", folder] => pivot(folder),
        ["open-tree"] => {
            ok(unsafe { syscall(libc::SYS_open_tree, libc::AT_FDCWD, c"/".as_ptr(), 1 | libc::AT_RECURSIVE) })
        }
        ["fsopen"] => ok(unsafe { syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) }),
        ["fspick"] => ok(unsafe { syscall(libc::SYS_fspick, libc::AT_FDCWD, c"/dev/shm".as_ptr(), 0) }),
        ["mount-setattr", at] => {
            let attr = libc::mount_attr {
                attr_set: 0,
                attr_clr: libc::MOUNT_ATTR_RDONLY,
                propagation: 0,
                userns_fd: 0,
            };
            let path = c_string(at);
            ok(unsafe {
                syscall(
                    libc::SYS_mount_setattr,
                    libc::AT_FDCWD,
                    path.as_ptr(),
                    0,
                    &raw const attr,
                    size_of_val(&attr),
                )
            })
        }
        ["chroot", folder] => {
            let path = c_string(folder);
            ok(unsafe { libc::chroot(path.as_ptr()) }.into())
        }

        // Namespaces.
        ["unshare", flags] => ok(unsafe { libc::unshare(namespaces(flags)) }.into()),
        ["clone", flags] => clone(namespaces(flags)),
        ["clone3", flags] => clone3(namespaces(flags)),
        ["setns", file] => {
            File::open(file).and_then(|file| ok(unsafe { libc::setns(file.as_raw_fd(), 0) }.into()))
        }

        // Sockets.
        ["socket", family, kind, protocol] => socket(family, kind, protocol).map(drop),
        ["socket-high-bits"] => ok(unsafe { syscall(libc::SYS_socket, (7u64 << 32) | 1, 1, 0) }),
        ["socketpair", kind] => pair(kind).map(drop),
        ["pair-to-path", kind, path] => pair(kind).and_then(|fds| send_to_path(fds[0], path)),
        ["connect-path", path] => connect_unix(path, false),
        ["connect-abstract", name] => connect_unix(name, true),
        ["tcp", address] => {
            let address = address.to_socket_addrs().unwrap().next().unwrap();
            TcpStream::connect_timeout(&address, Duration::from_secs(2)).map(drop)
        }
        ["udp", address] => UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.set_read_timeout(Some(Duration::from_secs(1)))?;
            socket.send_to(b"hello", address)?;
            socket.recv(&mut [0; 8]).map(drop)
        }),
        ["bind-port", port] => std::net::TcpListener::bind(format!("127.0.0.1:{port}")).map(drop),
        ["loopback-down"] => socket("2", "2", "0").and_then(|fd| {
            let mut request: libc::ifreq = unsafe { zeroed() };
            request.ifr_name[0] = b'l' as _;
            request.ifr_name[1] = b'o' as _;
            ok(unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS, &raw const request) }.into())
        }),

        // The kernel.
        ["io-uring"] => {
            let params = [0u8; 256];
            ok(unsafe { syscall(libc::SYS_io_uring_setup, 4, params.as_ptr()) })
        }
        ["io-uring-enter"] => not_eperm(unsafe { syscall(libc::SYS_io_uring_enter, -1, 0, 0, 0, 0, 0) }),
        ["io-uring-register"] => not_eperm(unsafe { syscall(libc::SYS_io_uring_register, -1, 0, 0, 0) }),
        ["bpf"] => {
            let attr = [0u8; 128];
            not_eperm(unsafe { syscall(libc::SYS_bpf, 7, attr.as_ptr(), attr.len()) }) // BPF_OBJ_GET
        }
        ["perf"] => perf(),
        ["userfaultfd"] => ok(unsafe { syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | 1) }),
        ["add-key"] => ok(unsafe {
            syscall(
                libc::SYS_add_key,
                c"user".as_ptr(),
                c"srt-x".as_ptr(),
                c"y".as_ptr(),
                1,
                libc::KEY_SPEC_PROCESS_KEYRING,
            )
        }),
        ["request-key"] => not_eperm(unsafe {
            syscall(libc::SYS_request_key, c"user".as_ptr(), c"srt-none".as_ptr(), null::<c_void>(), 0)
        }),
        ["session-keyring"] => ok(unsafe { syscall(libc::SYS_keyctl, 0, libc::KEY_SPEC_SESSION_KEYRING, 1) }),
        ["find-session-key", name] => {
            let name = c_string(name);
            let (search, keyring) = (10, libc::KEY_SPEC_SESSION_KEYRING);
            ok(unsafe { syscall(libc::SYS_keyctl, search, keyring, c"user".as_ptr(), name.as_ptr(), 0) })
        }
        ["with-session-key", name, ref command @ ..] => {
            let name = c_string(name);
            let join =
                unsafe { syscall(libc::SYS_keyctl, libc::KEYCTL_JOIN_SESSION_KEYRING, null::<c_void>()) };
            let keyring = libc::KEY_SPEC_SESSION_KEYRING;
            let add = || unsafe {
                syscall(libc::SYS_add_key, c"user".as_ptr(), name.as_ptr(), c"y".as_ptr(), 1, keyring)
            };
            ok(join)
                .and_then(|()| ok(add()))
                .and_then(|()| Err(std::process::Command::new(command[0]).args(&command[1..]).exec()))
        }
        ["tiocsti"] => ok(unsafe { libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()) }.into()),
        ["tioclinux"] => not_eperm(unsafe { libc::ioctl(0, libc::TIOCLINUX, c"\x02".as_ptr()) }.into()),
        ["i386-socket"] => i386(359, 1, 1),
        ["i386-unshare"] => i386(310, libc::CLONE_NEWUSER as _, 0),
        ["x32-socket"] => {
            // Not killed is enough: most kernels lack x32.
            let _ = unsafe { syscall(0x4000_0000 | libc::SYS_socket, 1, 1, 0) };
            Ok(())
        }
        ["hostname"] => ok(unsafe { libc::sethostname(c"escaped".as_ptr(), 7) }.into()),
        ["may-gain-privileges"] => {
            let set = unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) };
            (set == 0).then_some(()).ok_or_else(nothing)
        }

        // Processes.
        ["kill", pid] => ok(unsafe { libc::kill(pid.parse().unwrap(), libc::SIGTERM) }.into()),
        ["kill-group"] => {
            // The own end is no success: whoever looks from outside says so.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            ok(unsafe { libc::kill(0, libc::SIGTERM) }.into())
        }
        ["pidfd-open", pid] => ok(unsafe { syscall(libc::SYS_pidfd_open, pid.parse::<c_int>().unwrap(), 0) }),
        ["priority", pid] => {
            unsafe { *libc::__errno_location() = 0 };
            unsafe { libc::getpriority(libc::PRIO_PROCESS, pid.parse().unwrap()) };
            let error = Error::last_os_error();
            if error.raw_os_error() == Some(0) { Ok(()) } else { Err(error) }
        }
        ["affinity", pid] => {
            let mut set = [0u64; 16];
            ok(unsafe {
                syscall(libc::SYS_sched_getaffinity, pid.parse::<c_int>().unwrap(), 128, set.as_mut_ptr())
            })
        }
        ["trace", pid] => {
            let pid: c_int = pid.parse().unwrap();
            ok(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, null::<c_void>(), null::<c_void>()) })
        }
        ["read-memory", pid] => read_memory(pid),

        // Memory and queues that keys name.
        ["shm", key] => ok(unsafe { libc::shmget(key.parse().unwrap(), 0, 0) }.into()),
        ["semaphores", key] => ok(unsafe { libc::semget(key.parse().unwrap(), 0, 0) }.into()),
        ["messages", key] => ok(unsafe { libc::msgget(key.parse().unwrap(), 0) }.into()),
        _ => return None,
    })
}

fn ok(result: c_long) -> Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

fn not_eperm(result: c_long) -> Result<()> {
    match ok(result) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(error),
        _ => Ok(()),
    }
}

fn nothing() -> Error {
    Error::new(ErrorKind::NotFound, "nothing there")
}

fn c_string(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn append(path: &str) -> Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(b"x")
}

fn read_something(path: &str) -> Result<()> {
    let mut byte = [0];
    match File::open(path)?.read(&mut byte)? {
        0 => Err(nothing()),
        _ => Ok(()),
    }
}

/// Swaps a folder of a protected file against another as fast as it can, and writes through the name.
fn race(protected: &str, folder: &str) -> Result<()> {
    let (own, moved) = (format!("{folder}.own"), format!("{folder}.moved"));
    fs::create_dir_all(&own)?;
    let name = std::path::Path::new(protected).file_name().unwrap().to_str().unwrap();
    for _ in 0..200 {
        let _ = fs::rename(folder, &moved);
        let _ = fs::rename(&own, folder);
        if append(protected).is_ok() || append(&format!("{moved}/{name}")).is_ok() {
            return Ok(());
        }
        let _ = fs::rename(folder, &own);
        let _ = fs::rename(&moved, folder);
    }
    Err(nothing())
}

fn mount(source: &str, target: &str, kind: &str, flags: libc::c_ulong) -> Result<()> {
    let (source, target, kind) = (c_string(source), c_string(target), c_string(kind));
    ok(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, null()) }.into())
}

fn pivot(folder: &str) -> Result<()> {
    mount("none", folder, "tmpfs", 0).or_else(|error| {
        // Without `mount` there may still be something mounted there.
        if error.raw_os_error() == Some(libc::EPERM) { Ok(()) } else { Err(error) }
    })?;
    let folder = c_string(folder);
    ok(unsafe { syscall(libc::SYS_pivot_root, folder.as_ptr(), folder.as_ptr()) })
}

fn namespaces(names: &str) -> c_int {
    names.split('+').fold(0, |flags, name| {
        flags
            | match name {
                "user" => libc::CLONE_NEWUSER,
                "mount" => libc::CLONE_NEWNS,
                "pid" => libc::CLONE_NEWPID,
                "net" => libc::CLONE_NEWNET,
                "ipc" => libc::CLONE_NEWIPC,
                "uts" => libc::CLONE_NEWUTS,
                "cgroup" => libc::CLONE_NEWCGROUP,
                "time" => libc::CLONE_NEWTIME,
                other => panic!("namespace {other}"),
            }
    })
}

fn clone(flags: c_int) -> Result<()> {
    match unsafe { syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) } {
        0 => unsafe { libc::_exit(0) },
        result => ok(result),
    }
}

fn clone3(flags: c_int) -> Result<()> {
    let mut args = [0u64; 11];
    args[0] = flags as u64;
    args[4] = libc::SIGCHLD as u64;
    match unsafe { syscall(libc::SYS_clone3, args.as_ptr(), size_of_val(&args)) } {
        0 => unsafe { libc::_exit(0) },
        result => ok(result),
    }
}

fn socket(family: &str, kind: &str, protocol: &str) -> Result<c_int> {
    let number = |text: &str| text.parse::<c_int>().unwrap();
    let fd = unsafe { libc::socket(number(family), number(kind), number(protocol)) };
    ok(fd.into()).map(|()| fd)
}

fn pair(kind: &str) -> Result<[c_int; 2]> {
    let mut fds = [0; 2];
    let result = unsafe { libc::socketpair(libc::AF_UNIX, kind.parse().unwrap(), 0, fds.as_mut_ptr()) };
    ok(result.into()).map(|()| fds)
}

fn unix_address(name: &str, hidden: bool) -> (libc::sockaddr_un, libc::socklen_t) {
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    let skip = usize::from(hidden);
    for (to, from) in address.sun_path[skip..].iter_mut().zip(name.bytes()) {
        *to = from as _;
    }
    (address, (2 + skip + name.len()) as _)
}

fn send_to_path(fd: c_int, path: &str) -> Result<()> {
    let (address, length) = unix_address(path, false);
    ok(unsafe { libc::sendto(fd, c"x".as_ptr().cast(), 1, 0, (&raw const address).cast(), length) } as _)
}

fn connect_unix(name: &str, hidden: bool) -> Result<()> {
    let fd = socket("1", "1", "0")?;
    let (address, length) = unix_address(name, hidden);
    ok(unsafe { libc::connect(fd, (&raw const address).cast(), length) }.into())
}

fn perf() -> Result<()> {
    // A software clock of this process, without the kernel's part.
    let mut attr = [0u64; 16];
    attr[0] = 1 | 128 << 32;
    attr[5] = 1 << 5 | 1 << 6;
    ok(unsafe { syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0, -1, -1, 0) })
}

fn read_memory(pid: &str) -> Result<()> {
    let pid: c_int = pid.parse().unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let start = maps.split('-').next().unwrap_or_default();
    let mut byte = [0u8; 8];
    let local = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 8 };
    let remote = libc::iovec {
        iov_base: usize::from_str_radix(start, 16).map_err(|_| nothing())? as *mut c_void,
        iov_len: 8,
    };
    ok(unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) } as _)
}

#[cfg(target_arch = "x86_64")]
fn i386(number: c_long, first: c_long, second: c_long) -> Result<()> {
    let result: c_long;
    unsafe {
        std::arch::asm!(
            "push rbx", "mov rbx, {first}", "int 0x80", "pop rbx",
            first = in(reg) first, inlateout("rax") number => result, in("rcx") second, in("rdx") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if result < 0 { Err(Error::from_raw_os_error(-result as i32)) } else { Ok(()) }
}

#[cfg(not(target_arch = "x86_64"))]
fn i386(_: c_long, _: c_long, _: c_long) -> Result<()> {
    Err(nothing())
}
