//! Two sandboxes on one proxy: what one may reach is closed to the other, whatever it tries.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use serde_json::json;
use srt_tests::proxy::TestUpstream;
use srt_tests::sandbox_run::{
    AttachProxy, Folder, Probe, hello_once, http_get, settings, socks_get, tunnel_get,
};

/// What an upstream answers with when it was reached.
const REACHED: &str = "\r\n\r\nhello";

fn upstream() -> TestUpstream {
    TestUpstream::plain(hello_once)
}

/// Every way to ask for a host and port.
fn requests(host: &str, port: u16) -> [(&'static str, Vec<u8>); 3] {
    let authority = format!("{host}:{port}");
    [
        ("http", http_get(&authority).into_bytes()),
        ("connect", tunnel_get(&authority).into_bytes()),
        ("socks", socks_get(host.trim_matches(['[', ']']), port)),
    ]
}

struct Sandbox {
    probe: Probe,
    host: &'static str,
    upstream: TestUpstream,
}

impl Sandbox {
    fn new(folder: &Folder, proxy: &AttachProxy, name: &str, host: &'static str) -> Self {
        let upstream = upstream();
        let allow = format!("{host}:{}", upstream.port());
        Self { probe: Probe::attached(folder, proxy, name, &[&allow]), host, upstream }
    }

    fn reaches_its_own(&mut self) {
        for (how, request) in requests(self.host, self.upstream.port()) {
            let answer = self.probe.ask(request).expect("the proxy");
            assert!(answer.ends_with(REACHED), "{how} to {}: {answer}", self.host);
        }
        assert_eq!(self.upstream.seen().take().len(), 3);
    }

    /// Tries everything to get at the other's host. `seen` must stay empty.
    fn tries(&mut self, host: &str, port: u16) {
        // Another spelling, the port under an own name, the address itself.
        for name in
            [host, "127.0.0.1", "[::1]", "localhost", self.host, &host.to_uppercase(), &format!("{host}.")]
        {
            for (how, request) in requests(name, port) {
                let answer = self.probe.ask(request).unwrap_or_default();
                assert!(!answer.contains("hello"), "{how} to {name}:{port}: {answer}");
            }
        }
        let own = format!("{}:{}", self.host, self.upstream.port());
        let other = format!("{host}:{port}");
        // A second request on a connection whose first was allowed, and a Host that is the other's.
        let first = format!("GET http://{own}/hello HTTP/1.1\r\nHost: {own}\r\n\r\n");
        for second in [http_get(&other), tunnel_get(&other)] {
            let answer = self.probe.ask(format!("{first}{second}")).unwrap();
            assert_eq!(answer.matches("hello").count(), 1, "{answer}");
            assert!(answer.contains("403"), "{answer}");
        }
        let disguised =
            format!("GET http://{own}/hello HTTP/1.1\r\nHost: {other}\r\nConnection: close\r\n\r\n");
        self.probe.ask(disguised);
    }

    /// Past the proxy: the other's upstream, and any other port of a loopback that is this sandbox's own.
    fn tries_without_the_proxy(&mut self, port: u16) {
        for address in ["127.0.0.1", "::1", "127.0.0.2", "0.0.0.0"] {
            for port in [port, port ^ 1, 3127, 3129, 1080, 8080, 53] {
                assert_eq!(
                    self.probe.attempt(address, port, "GET / HTTP/1.0\r\n\r\n"),
                    None,
                    "{address}:{port}"
                );
            }
        }
    }
}

#[test]
fn neither_of_two_reaches_the_others_host() {
    let settings = settings(json!({}));
    let proxy = AttachProxy::start(&settings);
    let folders = [Folder::new(&settings), Folder::new(&settings)];
    // The same name twice: a name is for events, and gives nothing.
    let mut a = Sandbox::new(&folders[0], &proxy, "same", "a.localhost");
    let mut b = Sandbox::new(&folders[1], &proxy, "same", "b.localhost");
    let (a_port, b_port) = (a.upstream.port(), b.upstream.port());
    a.reaches_its_own();
    b.reaches_its_own();
    a.tries("b.localhost", b_port);
    b.tries("a.localhost", a_port);
    a.tries_without_the_proxy(b_port);
    for sandbox in [&a, &b] {
        let own = format!("{}:{}", sandbox.host, sandbox.upstream.port());
        let seen = sandbox.upstream.seen().take();
        // The first of two, twice, and the disguised one.
        assert_eq!(seen.len(), 3, "{seen:?}");
        assert!(seen.iter().all(|head| head.field("host") == Some(&own)), "{seen:?}");
    }
    a.reaches_its_own();

    let b_upstream = b.upstream;
    b.probe.end();
    a.tries("b.localhost", b_port);
    assert_eq!(b_upstream.seen().take().len(), 0);
    a.upstream.seen().take();
    a.reaches_its_own();
}

#[test]
fn variables_of_another_sandbox_give_nothing() {
    let settings = settings(json!({}));
    let proxy = AttachProxy::start(&settings);
    let (folder, upstream) = (Folder::new(&settings), upstream());
    let allowed = format!("b.localhost:{}", upstream.port());
    let url = format!("http://{allowed}/hello");
    let launch = |name, allow: Option<&str>| {
        let program = folder.srt_launch().fd("--proxy-fd", proxy.attach_socket()).args(["--name", name]);
        allow.into_iter().fold(program, |program, host| program.args(["--allow", host]))
    };
    let dump = "export -p; curl --noproxy '' -fsS \"$0\"";
    let owner = launch("b", Some(&allowed)).args(["--", "bash", "-c", dump, &url]).run().succeeded();
    let (variables, answer) =
        owner.text().rsplit_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(answer, "hello");
    assert!(variables.contains("HTTP_PROXY"), "{variables}");
    let thief = format!("{variables}\ncurl --noproxy '' -sS \"$0\"");
    let thief = launch("a", None).args(["--", "bash", "-c", &thief, &url]).run();
    assert!(thief.text().contains("not on the allow list"), "{thief:?}");
    let refused = format!("deny network-outbound {allowed} (host is not on the allow list) [a]\n");
    assert!(thief.stderr.contains(&refused), "{}", thief.stderr);
    assert_eq!(upstream.seen().take().len(), 1);
}

#[test]
fn a_sessions_list_widens_only_so_far() {
    let upstream = upstream();
    let port = upstream.port();
    let (denied, below) = (format!("denied.localhost:{port}"), format!("x.below.localhost:{port}"));
    let reasons = json!({"denied.localhost": "use another"});
    let lists =
        json!({"deniedDomains": ["denied.localhost", "*.below.localhost"], "deniedDomainReasons": reasons});
    let proxy = AttachProxy::start(&settings(lists));
    let session = proxy.session("past-denials", &["fine.localhost", &denied, &below]);
    assert_eq!(session.get(&format!("fine.localhost:{port}")), (200, "hello".to_owned()));
    for (host, reason) in [(&denied, "use another"), (&below, "on the deny list")] {
        let (status, text) = session.get(host);
        assert_eq!(status, 403, "{text}");
        assert!(text.contains(reason), "{text}");
        assert!(session.next_event().rule.unwrap().starts_with("network.deniedDomains"));
    }

    let allowed = format!("in-settings.localhost:{port}");
    let strict = json!({"allowedDomains": [&allowed], "strictAllowlist": true});
    let proxy = AttachProxy::start(&settings(strict));
    let session = proxy.session("strict", &["fine.localhost"]);
    assert_eq!(session.get(&allowed).0, 200);
    assert_eq!(session.get(&format!("fine.localhost:{port}")).0, 403);
}

#[test]
fn a_literal_in_a_sessions_list_exempts_no_address() {
    let upstream = upstream();
    let port = upstream.port();
    let literal = format!("127.0.0.1:{port}");
    let network = |allowed: &[&str]| {
        settings(json!({"allowedDomains": allowed, "deniedResolvedAddresses": ["127.0.0.0/8", "::1/128"]}))
    };
    let named = format!("a.localhost:{port}");
    let proxy = AttachProxy::start(&network(&[]));
    let session = proxy.session("literal", &[&literal, "a.localhost"]);
    for host in [&literal, &named] {
        let (status, text) = session.get(host);
        assert_eq!(status, 403, "{host}: {text}");
        assert_eq!(
            session.next_event().code.map(|code| code.as_str()),
            Some("address_not_allowed"),
            "{text}"
        );
    }
    // In the settings it does.
    let proxy = AttachProxy::start(&network(&[&literal]));
    assert_eq!(proxy.session("settings", &[]).get(&literal).0, 200);
}
