//! Where the programs under test and the tools of the tests are.

use std::env;
use std::path::PathBuf;

/// A program of this workspace. Cargo puts it one folder above the test's own executable, but does not build it
/// for the test.
///
/// # Panics
/// When it is not there.
pub fn binary(name: &str) -> PathBuf {
    let path = profile_dir().join(name);
    assert!(path.is_file(), "{} is missing; build it first: cargo build --workspace --bins", path.display());
    path
}

/// A program that `.ci/install-test-tools` puts under the target directory.
///
/// # Panics
/// When it is not there.
pub fn tool(relative: &str) -> PathBuf {
    let mut path = profile_dir();
    path.pop();
    path.extend(["tools", relative]);
    assert!(path.is_file(), "{} is missing; install it first: .ci/install-test-tools", path.display());
    path
}

fn profile_dir() -> PathBuf {
    let mut path = env::current_exe().expect("the path of the test's executable");
    // target/PROFILE/deps/TEST
    path.pop();
    path.pop();
    path
}
