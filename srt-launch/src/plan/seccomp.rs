//! Which system calls the command may not make: names of rules; what each means to the kernel is in
//! [`crate::bpf`].

use std::collections::BTreeSet;

/// The rules of the filter that apply to one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeccompProfile {
    /// The rules in force. A test takes one out; settings only choose between [`SeccompProfile::new`]'s answers.
    pub rules: BTreeSet<SeccompRule>,
}

impl SeccompProfile {
    /// Everything that the settings do not open: `network.allowAllUnixSockets`, `allowNestedUserNamespaces`.
    pub fn new(allow_unix_sockets: bool, allow_user_namespaces: bool) -> Self {
        let opened = |rule: &SeccompRule| match rule {
            SeccompRule::UnixSockets | SeccompRule::DatagramPairs => allow_unix_sockets,
            SeccompRule::Namespaces | SeccompRule::Setns | SeccompRule::Mounts | SeccompRule::Clone3 => {
                allow_user_namespaces
            }
            _ => false,
        };
        Self { rules: SeccompRule::ALL.into_iter().filter(|rule| !opened(rule)).collect() }
    }
}

/// One rule of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeccompRule {
    /// `socket(AF_UNIX)`: a socket file of the host is a way out that no mount closes.
    UnixSockets,
    /// Unix socket pairs of a datagram type: such an end can be sent to any path, unlike one of a stream.
    DatagramPairs,
    /// Families that a network namespace does not contain (`AF_VSOCK` above all) or that nobody needs.
    OtherFamilies,
    /// `AF_NETLINK` but for routes.
    Netlink,
    /// Raw and packet sockets.
    RawSockets,
    /// `io_uring_*`: its operations pass by the filter.
    IoUring,
    /// `unshare` and `clone` with a namespace flag: capabilities over a copy of the mounts undo every deny.
    Namespaces,
    /// `setns`.
    Setns,
    /// `mount` and its newer relatives, `pivot_root`.
    Mounts,
    /// `clone3` is answered as by a kernel that lacks it: its flags lie in memory, where no filter can look.
    Clone3,
    /// `bpf`.
    Bpf,
    /// `perf_event_open`.
    PerfEvents,
    /// `userfaultfd`: stops the kernel in the middle of a copy, the tool of many an exploit.
    UserFaultFd,
    /// `keyctl` and its relatives: keyrings know no namespace.
    Keyrings,
    /// Loading another kernel.
    Kexec,
    /// Loading kernel modules.
    Modules,
    /// `open_by_handle_at`: opens a file without walking a path, past every mount.
    FileHandles,
    /// `syslog`: the kernel's log.
    KernelLog,
    /// `TIOCSTI`, `TIOCLINUX`: typing into the terminal that the sandbox shares with the caller's shell.
    TerminalInjection,
    /// System calls of other ABIs (i386, x32) end the process: the numbers above mean other calls there.
    ForeignAbis,
}

impl SeccompRule {
    /// Every rule.
    pub const ALL: [Self; 20] = [
        Self::UnixSockets,
        Self::DatagramPairs,
        Self::OtherFamilies,
        Self::Netlink,
        Self::RawSockets,
        Self::IoUring,
        Self::Namespaces,
        Self::Setns,
        Self::Mounts,
        Self::Clone3,
        Self::Bpf,
        Self::PerfEvents,
        Self::UserFaultFd,
        Self::Keyrings,
        Self::Kexec,
        Self::Modules,
        Self::FileHandles,
        Self::KernelLog,
        Self::TerminalInjection,
        Self::ForeignAbis,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(profile: &SeccompProfile) -> Vec<SeccompRule> {
        SeccompRule::ALL.into_iter().filter(|rule| !profile.rules.contains(rule)).collect()
    }

    #[test]
    fn settings_open_only_what_they_name() {
        use SeccompRule::*;
        assert_eq!(missing(&SeccompProfile::new(false, false)), []);
        assert_eq!(missing(&SeccompProfile::new(true, false)), [UnixSockets, DatagramPairs]);
        assert_eq!(missing(&SeccompProfile::new(false, true)), [Namespaces, Setns, Mounts, Clone3]);
    }

    #[test]
    fn all_lists_each_rule_once() {
        assert_eq!(SeccompRule::ALL.iter().collect::<BTreeSet<_>>().len(), SeccompRule::ALL.len());
    }
}
