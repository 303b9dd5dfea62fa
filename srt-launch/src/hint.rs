//! What to change where the surroundings refuse a step.

use std::fs;

use nix::errno::Errno;
use nix::unistd::geteuid;

use srt_shared::settings::LoadError;

use crate::apply::{Failure, Step};

/// Where descriptors have run out.
pub const OPEN_FILES: &str = "raise the limit of open files (ulimit -n)";

/// One line for whoever can change it; `None` where we know nothing.
pub fn hint(failure: &Failure) -> Option<&'static str> {
    let errno = Errno::from_raw(failure.errno);
    // The marker that every command of ours finds.
    let nested = std::env::var_os("SANDBOX_RUNTIME").is_some();
    match (failure.step, errno) {
        (Step::Namespaces, _) if nested => Some(
            "this runs in a sandbox already, which lets nobody make another one: `allowNestedUserNamespaces` in the \
             settings of the outer one would",
        ),
        (Step::Proc, Errno::EPERM) if nested => {
            Some("this runs in a sandbox already, whose /proc is masked: set `enableWeakerNestedSandbox`")
        }
        (Step::Namespaces, Errno::ENOSPC) => {
            Some("raise user.max_user_namespaces (sysctl -w user.max_user_namespaces=10000)")
        }
        (Step::Network, Errno::ENOSPC) => {
            Some("raise user.max_net_namespaces (sysctl -w user.max_net_namespaces=10000)")
        }
        (Step::Namespaces | Step::Network | Step::Proxy | Step::Placeholders | Step::Init, Errno::EAGAIN) => {
            Some(
                "no more processes or threads can be started: raise the limit of this user's (ulimit -u), of the \
             container's or service's (pids.max, TasksMax), or of memory (ulimit -v)",
            )
        }
        (Step::Placeholders, Errno::EROFS | Errno::ENOSPC | Errno::EDQUOT | Errno::EACCES)
            if failure.call.contains("manifest") =>
        {
            Some(
                "runs note there which files they have made: make it writable, or give it space (mount -o remount,size=)",
            )
        }
        (Step::UserMap, Errno::ENOENT) => Some("/proc is needed: mount -t proc proc /proc"),
        (_, Errno::EMFILE) => Some(OPEN_FILES),
        (Step::Namespaces, Errno::EPERM) if is("/proc/sys/kernel/unprivileged_userns_clone", "0") => {
            Some("unprivileged user namespaces are off: sysctl -w kernel.unprivileged_userns_clone=1")
        }
        (Step::Namespaces, Errno::EPERM | Errno::EACCES) => Some(
            "a container's system call filter refuses new namespaces: run it with a profile that allows them \
             (docker run --security-opt seccomp=unconfined)",
        ),
        (Step::UserMap, Errno::EPERM) if geteuid().is_root() => Some(
            "root needs CAP_SETFCAP in its bounding set to map uid 0: grant it, or run as an ordinary user",
        ),
        (Step::UserMap | Step::Network | Step::HostTree | Step::Mount, Errno::EPERM | Errno::EACCES)
            if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") =>
        {
            Some(
                "AppArmor takes the privileges of new user namespaces away (Ubuntu 24.04 and later): sysctl -w \
                 kernel.apparmor_restrict_unprivileged_userns=0, or a profile that allows `userns` for this program",
            )
        }
        (Step::Proc, Errno::EPERM) => Some(
            "parts of the outer /proc are masked, so the kernel refuses a fresh one: run the container with \
             --security-opt systempaths=unconfined, or set `enableWeakerNestedSandbox`",
        ),
        (_, Errno::ENOSYS) => Some("this kernel is too old: Linux 5.12 or later is needed"),
        _ => None,
    }
}

/// The same as a line of its own, where the settings are the first that cannot be opened.
pub fn without_settings(error: &LoadError) -> String {
    match error {
        LoadError::Read { error, .. } if error.raw_os_error() == Some(libc::EMFILE) => {
            format!("\nhint: {OPEN_FILES}")
        }
        _ => String::new(),
    }
}

fn is(file: &str, value: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.trim() == value)
}
