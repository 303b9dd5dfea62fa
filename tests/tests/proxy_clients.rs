//! Real clients through terminated tunnels, with a decider that is asked about each request.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use srt_shared::decider::{Body, Decision, Req};
use srt_tests::binary::tool;
use srt_tests::program::{Finished, Program};
use srt_tests::proxy::{
    APP, Conn, Message, Pki, Starter, TestDecider, TestProxy, TestUpstream, pattern, programs_env, sha256,
    site,
};

/// A name that leads to the same upstream and is not on the list.
const OTHER: &str = "other.test";

struct World {
    pki: Pki,
    upstream: TestUpstream,
    decider: TestDecider,
    proxy: TestProxy,
}

impl World {
    fn new() -> Self {
        let pki = Pki::new();
        let upstream = TestUpstream::tls(&pki, APP, site(not_found));
        let decider = TestDecider::new(&[APP], &[], judge);
        let proxy = Starter::new(&pki, &decider).resolve(&[APP, OTHER]).start();
        Self { pki, upstream, decider, proxy }
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("https://{host}:{}{path}", self.upstream.port())
    }

    fn run(&self, program: Program) -> Finished {
        programs_env(program, &self.proxy, &self.pki).run()
    }

    /// Runs one of the scripts in `clients/`, which all do the same four things, and judges what it prints.
    fn run_script(&self, interpreter: PathBuf, script: &str) {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script);
        let program = Program::new(interpreter).arg(script).arg(self.url(APP, "")).arg(self.url(OTHER, ""));
        let output = self.run(program).succeeded();
        let text = output.text();
        let line = |what: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(what)).map(str::trim);
            line.unwrap_or_else(|| panic!("no line {what}: {text}{}", output.stderr))
        };
        let squeezed = |what| line(what).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed("get"), "200 hello");
        assert_eq!(squeezed("post"), "200 POST some data");
        assert!(line("denied").starts_with("451 decider srt-proxy: app.test:"), "{text}");
        assert!(line("denied").contains("not today"), "{text}");
        assert!(line("list").starts_with("failed "), "{text}");
        // What the client makes of a refused CONNECT differs; none may hide that it was the proxy's 403.
        assert!(line("list").contains("403"), "{text}");
        self.check_asked(&[("GET", "/hello"), ("POST", "/echo"), ("GET", "/denied")]);
    }

    /// The decider was asked about exactly these, and the upstream has seen those of them that were allowed.
    fn check_asked(&self, expected: &[(&str, &str)]) {
        let asked = self.decider.take_asked();
        let asked: Vec<_> = asked.iter().map(|req| (req.method.as_str(), req.path.as_str())).collect();
        assert_eq!(asked, expected);
        let seen = self.upstream.seen().take();
        let seen: Vec<_> = seen.iter().map(|head| (head.method(), head.target())).collect();
        let allowed: Vec<_> = expected.iter().copied().filter(|(_, path)| !is_denied(path)).collect();
        assert_eq!(seen, allowed);
    }
}

fn is_denied(path: &str) -> bool {
    path == "/denied" || path == "/locked.git/git-receive-pack"
}

fn judge(req: &Req, _: Option<&Body>) -> Option<Decision> {
    Some(if is_denied(&req.path) { TestDecider::deny(451, "not today") } else { TestDecider::allow() })
}

fn not_found(conn: &mut Conn, head: &Message) -> io::Result<()> {
    io::copy(&mut conn.body(head, false), &mut io::sink())?;
    conn.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
}

fn python() -> PathBuf {
    tool("venv/bin/python")
}

fn node() -> PathBuf {
    tool("node/node_modules/node/bin/node")
}

#[test]
fn python_urllib() {
    World::new().run_script(python(), "with_urllib.py");
}

#[test]
fn python_requests() {
    World::new().run_script(python(), "with_requests.py");
}

#[test]
fn python_httpx() {
    World::new().run_script(python(), "with_httpx.py");
}

#[test]
fn node_fetch() {
    World::new().run_script(node(), "with_fetch.mjs");
}

#[test]
fn node_https() {
    World::new().run_script(node(), "with_https.mjs");
}

fn curl() -> Program {
    Program::new("curl").args(["--disable", "--silent", "--show-error", "--max-time", "100"])
}

#[test]
fn curl_get_post_and_refusals() {
    let world = World::new();
    let get = world.run(curl().arg(world.url(APP, "/hello"))).succeeded();
    assert_eq!(get.text(), "hello");
    let post = world.run(curl().args(["--data", "some data"]).arg(world.url(APP, "/echo"))).succeeded();
    assert_eq!(post.text(), "POST some data");
    let denied = world
        .run(curl().args(["--include", "--suppress-connect-headers"]).arg(world.url(APP, "/denied")))
        .succeeded();
    assert!(denied.text().starts_with("HTTP/1.1 451 "), "{}", denied.text());
    assert!(denied.text().contains("X-Deny-Reason: decider\r\n"), "{}", denied.text());
    let list = world.run(curl().arg("--verbose").arg(world.url(OTHER, "/hello"))).failed();
    assert!(list.stderr.contains("HTTP/1.1 403 host is not on the allow list"), "{}", list.stderr);
    assert!(list.stderr.contains("X-Deny-Reason: host_not_allowed"), "{}", list.stderr);
    world.check_asked(&[("GET", "/hello"), ("POST", "/echo"), ("GET", "/denied")]);
}

/// 100 MB each way; curl announces the upload with `Expect: 100-continue`.
#[test]
fn curl_large_upload_and_download() {
    const LENGTH: u64 = 100_000_000;
    let world = World::new();
    let dir = tempfile::tempdir().unwrap();
    let (up, down) = (dir.path().join("up"), dir.path().join("down"));
    io::copy(&mut pattern(LENGTH), &mut File::create(&up).unwrap()).unwrap();
    let expected = sha256(File::open(&up).unwrap()).unwrap();
    assert_eq!(expected.1, LENGTH);

    let sent = curl().arg("--upload-file").arg(&up).arg(world.url(APP, "/hash"));
    let sent = world.run(sent).succeeded().text();
    assert_eq!(sent, format!("{} {LENGTH}", expected.0));

    // The same without a length.
    let chunked = curl().args(["--header", "Transfer-Encoding: chunked", "--upload-file"]);
    let chunked = world.run(chunked.arg(&up).arg(world.url(APP, "/hash"))).succeeded().text();
    assert_eq!(chunked, format!("{} {LENGTH}", expected.0));

    let got = curl().arg("--output").arg(&down).arg(world.url(APP, &format!("/pattern/{LENGTH}")));
    world.run(got).succeeded();
    assert_eq!(sha256(File::open(&down).unwrap()).unwrap(), expected);

    // A refused upload ends with the refusal, not with a reset on the way.
    let denied = curl().arg("--upload-file").arg(&up).arg(world.url(APP, "/denied"));
    let denied = world.run(denied).succeeded().text();
    assert!(denied.contains("not today"), "{denied}");
}

#[test]
fn openssl_s_client() {
    let world = World::new();
    let connect = |host: &str, path: &str| {
        let target = format!("{host}:{}", world.upstream.port());
        Program::new("openssl")
            .args([
                "s_client",
                "-quiet",
                "-verify_return_error",
                "-verify_hostname",
                host,
                "-servername",
                host,
            ])
            .arg("-CAfile")
            .arg(world.pki.proxy_ca_file())
            .args(["-connect", &target, "-proxy", &world.proxy.address().to_string()])
            .input(format!("GET {path} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n"))
            .run()
    };
    let get = connect(APP, "/hello").succeeded().text();
    assert!(get.starts_with("HTTP/1.1 200 ") && get.ends_with("\r\n\r\nhello"), "{get}");
    let denied = connect(APP, "/denied").succeeded().text();
    assert!(denied.starts_with("HTTP/1.1 451 ") && denied.contains("not today"), "{denied}");
    let list = connect(OTHER, "/hello").failed();
    assert!(list.stderr.contains("403"), "{}", list.stderr);
    world.check_asked(&[("GET", "/hello"), ("GET", "/denied")]);
}

mod git;

#[test]
fn git_clone_and_push() {
    let pki = Pki::new();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("served");
    for name in ["open.git", "locked.git"] {
        git::make_bare(&root.join(name));
    }
    let upstream = TestUpstream::tls(&pki, APP, site(git::backend(root.clone())));
    let decider = TestDecider::new(&[APP], &[], judge);
    let proxy = Starter::new(&pki, &decider).resolve(&[APP, OTHER]).start();
    let world = World { pki, upstream, decider, proxy };
    let git = |folder: &str, args: &[&str]| {
        world.run(git::program().current_dir(&dir.path().join(folder)).args(args))
    };

    git("", &["clone", "--quiet", &world.url(APP, "/open.git"), "work"]).succeeded();
    // More than one pack buffer (http.postBuffer), so that the push is sent in chunks.
    let mut content = File::create(dir.path().join("work/content")).unwrap();
    io::copy(&mut pattern(3 << 20), &mut content).unwrap();
    git("work", &["add", "content"]).succeeded();
    git("work", &["commit", "--quiet", "--message", "content"]).succeeded();
    git("work", &["push", "--quiet", "origin", "HEAD:main"]).succeeded();

    git("", &["clone", "--quiet", "--branch", "main", &world.url(APP, "/open.git"), "again"]).succeeded();
    let (ours, theirs) = ("work/content", "again/content");
    assert_eq!(fs::read(dir.path().join(ours)).unwrap(), fs::read(dir.path().join(theirs)).unwrap());
    let asked = world.decider.take_asked();
    let pushed = |req: &&Req| req.method == "POST" && req.path == "/open.git/git-receive-pack";
    assert!(asked.iter().any(|req| pushed(&req)), "{asked:?}");

    let denied = git("work", &["push", &world.url(APP, "/locked.git"), "HEAD:main"]).failed();
    assert!(denied.stderr.contains("451"), "{}", denied.stderr);
    assert!(git::refs(&root.join("locked.git")).is_empty());
    let list = git("", &["clone", &world.url(OTHER, "/open.git"), "never"]).failed();
    assert!(list.stderr.contains("403"), "{}", list.stderr);
}
