//! A kernel that cannot do just now what it is asked for, without memory for instance: nothing runs with less than was asked
//! for, and nothing stays.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::process::Command;

use nix::errno::Errno;
use serde_json::json;
use srt_tests::sandbox::{Sandbox, run};
use srt_tests::sys::refuse;

fn left(sandbox: &Sandbox) -> Vec<OsString> {
    sandbox.path("work").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Runs a script where a system call is refused.
fn run_refused(
    mut command: Command,
    call: i64,
    argument: Option<(u32, u32)>,
    errno: Errno,
) -> (Option<i32>, String, String) {
    refuse(&mut command, call, argument, errno);
    run(&mut command)
}

#[test]
fn what_cannot_be_removed_now_the_next_run_removes() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]}));
    // As where a disk has become read-only meanwhile.
    let (status, _, stderr) = run_refused(sandbox.script("true"), libc::SYS_unlinkat, None, Errno::EROFS);
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(run(&mut sandbox.script("true")).0, Some(0));
    assert_eq!(left(&sandbox), [""; 0]);
}

#[test]
fn what_was_made_and_cannot_be_looked_at_is_taken_back() {
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]}));
    let nofollow = Some((3, libc::AT_SYMLINK_NOFOLLOW as u32));
    let (status, stdout, stderr) =
        run_refused(sandbox.script("echo ran"), libc::SYS_newfstatat, nofollow, Errno::ENOMEM);
    assert_eq!((status, stdout.as_str()), (Some(125), ""), "{stderr}");
    assert!(stderr.starts_with("srt-launch: cannot make the "), "{stderr}");
    assert_eq!(left(&sandbox), [""; 0]);
}

#[test]
fn a_folder_that_cannot_be_listed_now_is_not_an_empty_one() {
    let allowed = ["/usr", "/bin", "/lib", "/lib64"];
    let sandbox = Sandbox::new(json!({"denyRead": ["/"], "allowRead": allowed}));
    let secret = sandbox.write("outside/secret", "secret\n");
    let script = format!("exec 2>/dev/null; cat {}; echo ran", secret.display());
    assert_eq!(run(&mut sandbox.script(&script)).1, "ran\n");
    // Without memory, and on a disk that fails.
    for errno in [Errno::ENOMEM, Errno::EIO] {
        let (status, stdout, stderr) =
            run_refused(sandbox.script(&script), libc::SYS_getdents64, None, errno);
        assert_eq!((status, stdout.as_str()), (Some(125), ""), "{errno}: {stderr}");
        assert!(stderr.contains("nothing is run"), "{errno}: {stderr}");
    }
}

#[test]
fn an_order_that_is_lost_ends_the_run() {
    // Else there is another write of one byte.
    let sandbox = Sandbox::new(json!({"allowWrite": ["."]})).with("allowNestedUserNamespaces", json!(true));
    let inner = sandbox.script("echo ran");
    let mut command = sandbox.command("timeout");
    command.args(["-s", "KILL", "60"]).arg(inner.get_program()).args(inner.get_args());
    let (status, stdout, stderr) = run_refused(command, libc::SYS_write, Some((2, 1)), Errno::ENOMEM);
    assert_eq!((status, stdout.as_str()), (Some(125), ""), "{stderr}");
    assert!(stderr.starts_with("srt-launch: cannot prepare the launch: write: "), "{stderr}");
    assert_eq!(left(&sandbox), [""; 0]);
}
