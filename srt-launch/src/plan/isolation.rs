//! The walls that every sandbox has whatever the settings say, each a switch of its own.

/// What separates the command from the host besides mounts and the system call filter.
///
/// Everything is on in a plan computed from settings, but for [`Isolation::user_namespace_limit`] under
/// `allowNestedUserNamespaces`. Nothing a user or a command can reach turns one off: the switches are there so
/// that a test can take out exactly one and see its attack succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isolation {
    /// Processes of the host can be neither seen nor addressed.
    pub pid_namespace: bool,
    /// No interface but a loopback of its own; abstract unix sockets are private.
    pub network_namespace: bool,
    /// System V objects and POSIX queues are private.
    pub ipc_namespace: bool,
    /// The host's name cannot be changed.
    pub uts_namespace: bool,
    /// The host's control groups are not named inside.
    pub cgroup_namespace: bool,
    /// Set-user-id programs and file capabilities of the host's tree have no effect.
    pub nosuid: bool,
    /// Device nodes of the host's tree cannot be opened.
    pub nodev: bool,
    /// A minimal `/dev` instead of the host's.
    pub private_dev: bool,
    /// `/proc/sys` and its like are read-only, also for uid 0.
    pub proc_read_only: bool,
    /// `/proc/kcore`, `/proc/sysrq-trigger` and their like are empty.
    pub proc_masks: bool,
    /// The command cannot make user namespaces even where the filter lets the call pass.
    pub user_namespace_limit: bool,
    /// The command's session keyring is a new one.
    pub session_keyring: bool,
    /// The command is alone in its process group, so `kill(0, …)` reaches nothing of the host.
    pub process_group: bool,
    /// Descriptors above 2 do not reach the command, but for [`super::Plan::pass_fds`].
    pub close_descriptors: bool,
    /// Neither pid 1's memory nor its descriptors can be read from inside.
    pub undumpable_init: bool,
    /// Executing a program never adds a privilege.
    pub no_new_privs: bool,
    /// Capabilities go: all of them, or for uid 0 all but four about file permissions.
    pub drop_capabilities: bool,
}

impl Default for Isolation {
    fn default() -> Self {
        Self {
            pid_namespace: true,
            network_namespace: true,
            ipc_namespace: true,
            uts_namespace: true,
            cgroup_namespace: true,
            nosuid: true,
            nodev: true,
            private_dev: true,
            proc_read_only: true,
            proc_masks: true,
            user_namespace_limit: true,
            session_keyring: true,
            process_group: true,
            close_descriptors: true,
            undumpable_init: true,
            no_new_privs: true,
            drop_capabilities: true,
        }
    }
}
