//! The demonstration of `docs/examples/decider.sh`: it must show what it says, and leave nothing behind.

use std::path::Path;

use srt_tests::program::Program;

/// Whether a variable says how to build. What cargo itself sets for tests says what this package is.
fn is_for_cargo(name: &str) -> bool {
    let set_by_cargo = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_EXE_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    match name {
        "HOME" | "CC" | "RUSTC" | "RUSTFLAGS" | "RUSTC_WRAPPER" | "RUSTC_WORKSPACE_WRAPPER" => true,
        _ if name.starts_with("RUSTUP_") => true,
        _ => name.starts_with("CARGO_") && !set_by_cargo.iter().any(|prefix| name.starts_with(prefix)),
    }
}

#[test]
fn the_demonstration_shows_what_it_says() {
    let temporary = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/decider.sh");
    let mut program = Program::new(script).env("TMPDIR", temporary.path());
    // It builds, so cargo must find what it found when it built this test: told otherwise (`RUSTFLAGS`,
    // `CARGO_INCREMENTAL`), it would build everything anew, in place of what other tests run.
    for (name, value) in std::env::vars_os() {
        if name.to_str().is_some_and(is_for_cargo) {
            program = program.env(name.to_str().unwrap(), value);
        }
    }
    let shown = program.run().succeeded();
    assert_eq!(shown.stderr, "");
    let text = shown.text();
    let mut rest = text.as_str();
    for expected in [
        "credential = { class = \"reports\"",
        "# Allowed.",
        "$ curl https://api.example.test:",
        "the site was asked: GET, with the credential: Bearer token-of-the-host\n(status 200)",
        "# Denied",
        "reports are read only; ask the team for a change (decider)\n(status 403)",
        "# Allowed by the rules, but",
        "resolved to a link-local address (address_not_allowed)",
        "\n(status 403)",
        "\"event\":\"allowed\"",
        "\"code\":\"decider\"",
        "\"code\":\"address_not_allowed\"",
        "\"verdict\":\"allow\",\"rule\":\"read the reports\"",
        "\"verdict\":\"deny\",\"rule\":\"no changes\"",
        "\"verdict\":\"allow\",\"rule\":\"a partner",
    ] {
        let at =
            rest.find(expected).unwrap_or_else(|| panic!("{expected:?} is missing, or too early:\n{text}"));
        rest = &rest[at + expected.len()..];
    }
    assert_eq!(text.matches("token-of-the-host").count(), 1, "{text}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}
