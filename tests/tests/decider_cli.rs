//! The command line of `srt-decider-example`: checking rules, statuses, and serving an inherited descriptor.

// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use srt_tests::binary::binary;
use srt_tests::program::{Finished, Program, Running, start};
use srt_tests::proxy::{Pki, Starter, connect_tunnel};

fn run(args: &[&str]) -> Finished {
    Program::new(binary("srt-decider-example")).args(args).run()
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples").join(name)
}

fn check(name: &str, args: &[&str], body: &str) -> (Option<i32>, String) {
    let finished = Program::new(binary("srt-decider-example"))
        .args(["--rules", example(name).to_str().unwrap(), "--check"])
        .args(args)
        .input(body)
        .run();
    assert_eq!(finished.stderr, "");
    (finished.status.code(), finished.text())
}

/// To accept a new text: `srt-decider-example --help > tests/tests/golden/srt-decider-example-help.txt`.
#[test]
fn help_is_as_reviewed() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/srt-decider-example-help.txt");
    let help = run(&["--help"]).succeeded();
    assert_eq!(help.stderr, "");
    assert_eq!(help.text(), fs::read_to_string(golden).unwrap());
}

#[test]
fn check_tells_what_a_file_holds() {
    let (status, text) = check("read-github-push-one-repo.toml", &[], "");
    assert_eq!(status, Some(0));
    assert!(text.contains("12 rules"), "{text}");
    assert!(text.contains("git: push to octo-org/site (allow)"), "{text}");
    assert!(text.contains("credential: the environment variable GITHUB_TOKEN is not set"), "{text}");
    assert!(text.contains("the proxy asks about: github.com:443"), "{text}");
}

#[test]
fn check_explains_which_rule_decides() {
    let push = "POST https://github.com/octo-org/other/git-receive-pack";
    let (status, text) = check("read-github-push-one-repo.toml", &["--request", push], "");
    assert_eq!(status, Some(1));
    assert!(text.contains("git: push to octo-org/site: no: the path is another"), "{text}");
    assert!(
        text.contains("git: push elsewhere: DENY 403 this sandbox pushes to octo-org/site only"),
        "{text}"
    );

    let graphql = [
        "--request",
        "POST https://api.github.com/graphql",
        "--header",
        "Content-Type: application/json",
        "--body",
        "-",
    ];
    let file = "read-github-push-one-repo.toml";
    let (status, text) = check(file, &graphql, r#"{"query": "{ viewer { login } }"}"#);
    assert_eq!(status, Some(0));
    assert!(text.contains("GraphQL: queries: ALLOW, with the credential of class github"), "{text}");
    let (status, text) = check(file, &graphql, r#"{"query": "mutation { x }"}"#);
    assert_eq!(status, Some(1));
    assert!(text.contains("GraphQL: queries: no: GraphQL: the document has a mutation"), "{text}");
}

#[test]
fn what_is_wrong_is_one_line_and_its_status() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good.toml", "");
    let typo = file("typo.toml", "\n[[rule]]\nname = \"a\"\nhots = \"a.test\"\n");
    let secret = file(
        "secret.toml",
        "[[rule]]\nname = \"a\"\nhost = \"a.test\"\naction = \"allow\"\ncredential = { class = \"a\", env = \"NOT_SET\" }",
    );
    let missing = dir.path().join("missing.toml").to_str().unwrap().to_owned();
    for (args, status, error) in [
        (&["--rules", &typo, "--check"][..], 2, "typo.toml:4: unknown key `hots`; did you mean `host`?"),
        (&["--rules", &typo, "--", "srt-proxy"], 2, "typo.toml:4: unknown key `hots`; did you mean `host`?"),
        (&["--rules", &missing, "--check"], 2, "missing.toml: cannot be read: No such file"),
        (
            &["--rules", &secret, "--", "srt-proxy"],
            2,
            "secret.toml:5: credential: the environment variable NOT_SET",
        ),
        (&["--rules", &good], 2, "nothing to decide for"),
        (&["--rules", &good, "--check", "--request", "a.test"], 2, "--request: write a method and a URL"),
        (&["--rules", &good, "--", "no-such-program"], 127, "cannot start no-such-program: No such file"),
        (&["--rules", &good, "--", "/"], 126, "cannot start /: "),
        (&["--rules", &good, "--fd", "99"], 2, "--fd 99: Bad file descriptor"),
        (&["--rules", &good, "--fd", "1"], 2, "--fd 1: 0, 1 and 2 are the standard streams"),
        (
            &["--rules", &good, "--log", "/no/such/folder/log", "--", "srt-proxy"],
            2,
            "--log /no/such/folder/log: No such",
        ),
    ] {
        let finished = run(args);
        assert_eq!(finished.status.code(), Some(status), "{args:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(error), "{args:?}: {}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{args:?}: {}", finished.stderr);
        assert!(finished.stderr.starts_with("srt-decider-example: "), "{}", finished.stderr);
    }
}

/// Starts a decider with the deny-all file on one end of a pair, and gives back the other.
fn serve_fd() -> (Running, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let program =
        Program::new(binary("srt-decider-example")).arg("--rules").arg(example("deny-all-with-log.toml"));
    (program.fd("--fd", theirs.into()).start(), ours)
}

#[test]
fn a_proxy_started_by_somebody_else_is_served_until_it_leaves() {
    let pki = Pki::new();
    let (decider, socket) = serve_fd();
    let mut proxy = Starter::bare().listen().ca(&pki).fd("--decider-fd", socket.into()).start();
    let (answer, text) = connect_tunnel(&proxy, &pki, "github.com", 443).get("/", "github.com").unwrap();
    assert_eq!(answer.status(), 403);
    assert!(String::from_utf8_lossy(&text).contains("nothing is allowed yet"));
    proxy.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(proxy.wait().status.code(), Some(0));
    assert_eq!(decider.wait().status.code(), Some(0));
}

/// The decider of `docs/writing-a-decider.md`.
#[test]
fn the_smallest_decider_decides() {
    let pki = Pki::new();
    let mut command = Command::new(binary("examples/minimal"));
    let mut decider = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let (input, output) = (decider.stdin.take().unwrap(), decider.stdout.take().unwrap());
    let mut proxy = Starter::bare()
        .listen()
        .ca(&pki)
        .fd("--decider-in", output.into())
        .fd("--decider-out", input.into())
        // Allowed requests go on to here, and no further.
        .args(["--resolve", "api.example.com=169.254.169.254"])
        .start();
    let host = "api.example.com";
    for (target, reason) in [
        ("/v1/models", "resolved to a link-local address"),
        ("/v1/models?a", "only GET /v1/models"),
        ("/v1/./models", "only GET /v1/models"),
    ] {
        let (answer, text) = connect_tunnel(&proxy, &pki, host, 443).get(target, host).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(answer.status() == 403 && text.contains(reason), "{target}: {text}");
    }
    proxy.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(proxy.wait().status.code(), Some(0));
    assert_eq!(decider.wait().unwrap().code(), Some(0));
}

#[test]
fn a_proxy_that_breaks_the_protocol_is_left() {
    for (payload, error) in [
        (&br#"{"t":"body","id":1,"data":""}"#[..], "the proxy asked before its hello"),
        (br#"{"t":"hello","proto":2}"#, "the proxy broke the protocol"),
        (b"{}", "the proxy broke the protocol"),
    ] {
        let (decider, mut socket) = serve_fd();
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes().to_vec();
        frame.extend_from_slice(payload);
        socket.write_all(&frame).unwrap();
        let output = decider.wait();
        let stderr = output.stderr;
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(error), "{stderr}");
    }
}

#[test]
fn a_descriptor_of_another_kind_is_refused() {
    let file = File::open("/dev/null").unwrap();
    let program =
        Program::new(binary("srt-decider-example")).arg("--rules").arg(example("deny-all-with-log.toml"));
    let finished = program.fd("--fd", file.into()).run();
    assert_eq!(finished.status.code(), Some(2));
    assert!(finished.stderr.contains("not a stream socket"), "{}", finished.stderr);
}
