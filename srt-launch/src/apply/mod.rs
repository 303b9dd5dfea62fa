//! Makes the sandbox that a plan describes. [`build`] is the sequence; each step has a file of its own.

mod caps;
mod closed;
mod command;
mod dev;
mod failure;
mod fds;
mod mounts;
mod namespaces;
mod network;
mod proc;
mod session;
mod streams;
mod temp_dir;

use std::path::Path;

use nix::sys::prctl;

pub use command::{Command, candidates};
use dev::Dev;
pub use failure::{During, Failure, Step, SystemError};
pub use fds::close_all_but;
use mounts::Tree;
pub use mounts::{make_file, open_below};
pub use namespaces::{Caller, flags};
use network::Network;
pub use session::Session;
pub use streams::{positions, refuse_directories, set_position};
pub use temp_dir::make_temp_dir;

use crate::bpf::{self, Machine};
use crate::plan::Plan;
use crate::sys;

/// Builds the sandbox around the calling process, which is the first one in the new namespaces. `connect` runs once
/// the network is there and the host's tree is still there; it may add to what the plan provides. `settle` runs before the
/// plan's mounts are made, and may take out some whose mount point is not to be had. Returns a warning.
///
/// The order matters. The network is begun first, which takes longest, and needed last. Identity, because everything else
/// needs it. `/dev` and `/proc` before the plan's mounts, which may lie in them, and for whose mount points it may be
/// necessary to wait. Then the network, while mounts can still be made: some are for what the proxy answers. Then, with
/// the host's tree out of reach, everything that only takes away, and the filter last: it need not allow any of the above.
pub fn build(
    plan: &mut Plan,
    caller: Caller,
    connect: impl FnOnce(&mut Plan) -> Result<(), Failure>,
    settle: impl FnOnce(&mut Plan) -> Result<(), Failure>,
) -> Result<Option<String>, Failure> {
    let network = plan.isolation.network_namespace.then(Network::begin).transpose()?;
    caller.map()?;

    let mut tree = Tree::copy_host(&plan.root, &plan.isolation)?;
    let dev = Dev::attach(&tree, plan)?;
    let warning = proc::mount(&tree, &dev, plan.proc, &plan.isolation)?;
    settle(plan)?;
    for mount in &plan.mounts {
        tree.mount(mount, &dev.empty_file)?;
    }
    tree.close_pinned(&dev.empty_file)?;
    dev.provide(&tree, &plan.provided)?;
    streams::reopen_read_only(&tree)?;
    let machine = Machine::HOST.ok_or(nix::errno::Errno::ENOSYS);
    let machine = machine.during(Step::Filter, "the system call filter of this machine")?;
    let filter = bpf::compile(&plan.seccomp, machine);

    network.map(Network::enter).transpose()?;
    let known = plan.provided.len();
    connect(plan)?;
    dev.provide(&tree, &plan.provided[known..])?;
    tree.enter(&plan.cwd, plan.cwd.ancestors().skip(1).chain([Path::new("/")]))?;

    let isolation = &plan.isolation;
    if isolation.session_keyring {
        keyring()?;
    }
    if isolation.no_new_privs {
        prctl::set_no_new_privs().during(Step::Capabilities, "prctl(PR_SET_NO_NEW_PRIVS)")?;
    }
    if isolation.undumpable_init {
        prctl::set_dumpable(false).during(Step::Init, "prctl(PR_SET_DUMPABLE)")?;
    }
    sys::install_filter(&filter).during(Step::Filter, "seccomp")?;
    if isolation.drop_capabilities {
        caps::drop(caller, !isolation.user_namespace_limit)?;
    }
    Ok(warning)
}

/// A kernel without keyrings has nothing to share.
fn keyring() -> Result<(), Failure> {
    match sys::new_session_keyring() {
        Err(nix::errno::Errno::ENOSYS) => Ok(()),
        // A container's filter refuses keyctl altogether, which is as good.
        Err(nix::errno::Errno::EPERM) => Ok(()),
        result => result.during(Step::Keyring, "keyctl(KEYCTL_JOIN_SESSION_KEYRING)"),
    }
}
