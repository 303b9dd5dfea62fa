//! The runner of `docs/examples`, as a CI system would run it.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;
use srt_tests::binary::binary;
use srt_tests::program::Program;
use srt_tests::proxy::TestUpstream;
use srt_tests::sandbox_run::{Folder, hello_once, settings};

#[test]
fn each_job_reaches_the_settings_hosts_and_its_own() {
    let upstream = TestUpstream::plain(hello_once);
    let host = |name: &str| format!("{name}.localhost:{}", upstream.port());
    let settings = settings(json!({"allowedDomains": [host("all")]}));
    let folder = Folder::new(&settings);
    let get = |name: &str| format!("curl -fsS --noproxy '' http://{}/hello >>log", host(name));
    let job = |name: &str, other: &str| {
        let dir = folder.work().join(name);
        fs::create_dir(&dir).unwrap();
        let script = format!("set -e; {}; {}; if {}; then exit 9; fi", get("all"), get(name), get(other));
        json!({"name": name, "dir": dir, "allow": [host(name)], "command": ["sh", "-c", script]})
    };
    let fails = json!({"name": "fails", "command": ["sh", "-c", "exit 3"]});
    let (a, b) = (job("a", "b"), job("b", "a"));
    // A relative path, which the jobs' working directories must not change.
    symlink(binary("srt-proxy").parent().unwrap(), folder.work().join("bin")).unwrap();
    let run = |jobs| {
        let file = folder.home().join("jobs.json");
        fs::write(&file, serde_json::Value::to_string(&jobs)).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/ci.py");
        let program = Program::new(script).arg(folder.home().join(".srt-settings.json")).arg(file);
        program.env("SRT_BIN", "bin").env("HOME", folder.home()).current_dir(&folder.work()).run()
    };
    let passed = run(json!([a, b])).succeeded();
    assert_eq!(passed.text(), "a: passed\nb: passed\n");
    for (name, other) in [("a", "b"), ("b", "a")] {
        assert_eq!(fs::read_to_string(folder.work().join(name).join("log")).unwrap(), "hellohello");
        assert!(
            passed.stderr.contains(&format!("deny network-outbound {}", host(other))),
            "{}",
            passed.stderr
        );
    }
    let failed = run(json!([a, fails]));
    assert_eq!(
        (failed.status.code(), failed.text().as_str()),
        (Some(1), "a: passed\nfails: failed with 3\n")
    );
}
