//! Links the two programs with the C library from its archive. To load and bind `libc.so` takes a tenth of the time a
//! sandbox takes, paid by the launcher and again, page by page, by the sandbox's first process; and the helper that
//! connects from inside must run whatever the settings hide.
//!
//! The target feature `crt-static` is not to be had for one package: it would fall on procedural macros too, which must
//! be loadable. So the programs' linker gets here what that feature would give it. Without the archives they are linked
//! as usual.

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What `-lc` and `-lgcc_s` mean to a static program. In a group, because each needs symbols of the others.
const ARCHIVES: [&str; 3] = ["libc.a", "libgcc_eh.a", "libgcc.a"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    println!("cargo::rustc-check-cfg=cfg(static_libc)");
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let glibc = env::var("CARGO_CFG_TARGET_OS")? == "linux" && env::var("CARGO_CFG_TARGET_ENV")? == "gnu";
    if !glibc {
        return Ok(());
    }
    if features.split(',').any(|feature| feature == "crt-static") {
        println!("cargo::rustc-cfg=static_libc");
        return Ok(());
    }
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    if let Some(missing) = ARCHIVES.iter().find(|archive| !finds(&linker, archive)) {
        println!(
            "cargo::warning={missing} is missing: the programs will load libc.so, and start more slowly"
        );
        return Ok(());
    }
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    let script = format!("GROUP ( {} )\n", ARCHIVES.map(|archive| format!("-l:{archive}")).join(" "));
    // The compiler's own command names these two libraries, as shared ones.
    for library in ["libc.so", "libgcc_s.so"] {
        fs::write(folder.join(library), &script)?;
    }
    // Weak symbols that nothing defines are 0 from the start: nobody will look for them at run time.
    for arg in ["-static-pie", "-Wl,-z,nodynamic-undefined-weak", &format!("-L{}", folder.display())] {
        println!("cargo::rustc-link-arg-bins={arg}");
    }
    if env::var("PROFILE")? == "release" && !has_chosen_linker() && links_with(&linker, GNU_LD) {
        println!("cargo::rustc-link-arg-bins={GNU_LD}");
    }
    println!("cargo::rustc-cfg=static_libc");
    Ok(())
}

/// LLD, Rust's own choice, writes a program through a mapping, page by page, and so it stays in the page cache: each run
/// pays for mapping single pages, a tenth of the time a sandbox takes. GNU's linker writes it in large pieces.
const GNU_LD: &str = "-fuse-ld=bfd";

/// Whether whoever builds has said what links.
fn has_chosen_linker() -> bool {
    let flags = env::var_os("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    env::var_os("RUSTC_LINKER").is_some()
        || ["fuse-ld", "linker"].iter().any(|word| flags.to_string_lossy().contains(word))
}

/// Whether the compiler driver has the linker that this argument asks for.
fn links_with(linker: &OsStr, argument: &str) -> bool {
    let output = Command::new(linker).args([argument, "-Wl,--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Whether the compiler driver that links knows where this file is.
fn finds(linker: &OsStr, file: &str) -> bool {
    let output = Command::new(linker).arg(format!("-print-file-name={file}")).output();
    output.is_ok_and(|output| {
        // What it does not know it prints as it was.
        str::from_utf8(&output.stdout).is_ok_and(|path| Path::new(path.trim()).is_absolute())
    })
}
