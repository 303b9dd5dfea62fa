//! What `build.rs` promises, where it could keep it.

#![cfg(static_libc)]

use std::process::Command;

#[test]
fn the_programs_load_no_library() {
    for program in [env!("CARGO_BIN_EXE_srt-launch"), env!("CARGO_BIN_EXE_srt")] {
        // The loader, where there is one, would list what it has loaded instead of running the program.
        let output =
            Command::new(program).arg("--version").env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.ends_with(concat!(env!("CARGO_PKG_VERSION"), "\n")), "{program}: {shown}");
    }
}
