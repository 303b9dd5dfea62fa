//! `srt-launch` with single protections taken out of its plan, for the control runs of the escape tests. The programs
//! people run have no such switch: it is the plan that is changed here, as data, before it is applied.
//!
//! `launch-without [--without WALL]... SETTINGS COMMAND...`, where WALL is a field of `Isolation`, a rule of the filter,
//! `mount:PATH` (every mount of the plan there), `pins`, or `read-only-root`.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use srt_launch::launch::{self, Uplink};
use srt_launch::plan::{Inputs, Isolation, MountKind, Plan, SeccompRule};
use srt_launch::{exit, prepare};
use srt_shared::settings::{Source, load};

fn main() -> ExitCode {
    match run() {
        Ok(end) => exit::code(end),
        Err(e) => {
            eprintln!("launch-without: {e}");
            exit::code(exit::OWN_FAILURE)
        }
    }
}

fn run() -> Result<exit::End, Box<dyn Error>> {
    let mut args = env::args_os().skip(1).peekable();
    let mut walls = Vec::new();
    while args.next_if(|arg| arg == "--without").is_some() {
        walls.push(args.next().and_then(|wall| wall.into_string().ok()).ok_or("--without what?")?);
    }
    let settings = PathBuf::from(args.next().ok_or("which settings?")?);
    let command: Vec<_> = args.collect();

    let loaded = load(Source::File(&settings))?;
    let home = env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let uid = nix::unistd::geteuid().as_raw();
    let mut inputs = Inputs::new(loaded.settings, home, env::current_dir()?, uid);
    inputs.env = env::vars_os().collect();
    // Other tests make and remove files meanwhile.
    let result = prepare::until_a_plan_fits(&inputs, |mut plan| {
        for wall in &walls {
            take_out(&mut plan, wall)?;
        }
        let trust = |_: &str, _: &mut _| Vec::new();
        let mut warn = |text: &str| eprintln!("{text}");
        Ok::<_, Box<dyn Error>>(launch::run(plan, &command, Uplink::None, &trust, &mut warn))
    })?;
    Ok(result?.end)
}

fn take_out(plan: &mut Plan, wall: &str) -> Result<(), String> {
    if let Some(path) = wall.strip_prefix("mount:") {
        let path = Path::new(path);
        let before = plan.mounts.len();
        plan.mounts.retain(|mount| mount.target != path);
        plan.placeholders.retain(|placeholder| placeholder.path != path);
        return if plan.mounts.len() < before {
            Ok(())
        } else {
            Err(format!("no mount at {}", path.display()))
        };
    }
    if wall == "pins" {
        plan.mounts.retain(|mount| mount.kind != MountKind::Pin);
        return Ok(());
    }
    if wall == "read-only-root" {
        plan.root.writable = true;
        return Ok(());
    }
    if let Some(rule) = SeccompRule::ALL.into_iter().find(|rule| format!("{rule:?}") == wall) {
        plan.seccomp.rules.remove(&rule);
        return Ok(());
    }
    let switch = isolation(&mut plan.isolation, wall).ok_or_else(|| format!("no wall `{wall}`"))?;
    *switch = false;
    Ok(())
}

fn isolation<'a>(isolation: &'a mut Isolation, name: &str) -> Option<&'a mut bool> {
    Some(match name {
        "pid_namespace" => &mut isolation.pid_namespace,
        "network_namespace" => &mut isolation.network_namespace,
        "ipc_namespace" => &mut isolation.ipc_namespace,
        "uts_namespace" => &mut isolation.uts_namespace,
        "cgroup_namespace" => &mut isolation.cgroup_namespace,
        "nosuid" => &mut isolation.nosuid,
        "nodev" => &mut isolation.nodev,
        "private_dev" => &mut isolation.private_dev,
        "proc_read_only" => &mut isolation.proc_read_only,
        "proc_masks" => &mut isolation.proc_masks,
        "user_namespace_limit" => &mut isolation.user_namespace_limit,
        "session_keyring" => &mut isolation.session_keyring,
        "process_group" => &mut isolation.process_group,
        "close_descriptors" => &mut isolation.close_descriptors,
        "undumpable_init" => &mut isolation.undumpable_init,
        "no_new_privs" => &mut isolation.no_new_privs,
        "drop_capabilities" => &mut isolation.drop_capabilities,
        _ => return None,
    })
}
