//! Paths that servers read differently, under every kind of policy.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::io;

use serde_json::json;
use srt_tests::proxy::{APP, Conn, Message, Starter, TestDecider, TestProxy, TestUpstream, connect, site};

/// An upstream that answers with the target it was asked for.
fn mirror() -> TestUpstream {
    TestUpstream::plain(site(|conn: &mut Conn, head: &Message| {
        let target = head.target();
        conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}", target.len()))
            .map_err(io::Error::other)
    }))
}

/// What the upstream was asked for, or the refusal's `X-Proxy-Error`.
fn ask(proxy: &TestProxy, port: u16, path: &str) -> String {
    let host = format!("{APP}:{port}");
    let (answer, body) = connect(proxy).get(&format!("http://{host}{path}"), &host).unwrap();
    match answer.status() {
        200 => String::from_utf8(body).unwrap(),
        status => format!("{status} {}", answer.field("x-proxy-error").unwrap()),
    }
}

fn with_settings(mode: Option<&str>) -> Starter {
    let mut network = json!({"allowedDomains": [APP], "deniedDomains": []});
    if let Some(mode) = mode {
        network["ambiguousRequestTarget"] = mode.into();
    }
    let settings =
        json!({"network": network, "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}});
    Starter::bare().listen().resolve(&[APP]).settings(&settings)
}

const AMBIGUOUS: &str = "400 ambiguous-request-target";

#[test]
fn a_run_of_leading_slashes_is_what_the_policy_makes_of_it() {
    let upstream = mirror();
    let decider = || TestDecider::allowing(&[APP]);
    let (refuse, as_spelled, normalize, alone) = (decider(), decider(), decider(), decider());
    let judged = |decider: &TestDecider, mode| with_settings(mode).fd("--decider-fd", decider.proxy_end());
    for (what, starter, answers) in [
        // Nobody judges it.
        ("settings alone", with_settings(None), ["//a", "/\\a", "///", "/a/..//b"]),
        ("refused", judged(&refuse, None), [AMBIGUOUS; 4]),
        ("as spelled", judged(&as_spelled, Some("asSpelled")), ["//a", "/\\a", "///", "/a/..//b"]),
        ("normalised", judged(&normalize, Some("normalize")), ["/a", "/a", "/", "/b"]),
        (
            "a decider alone",
            Starter::bare().listen().resolve(&[APP]).fd("--decider-fd", alone.proxy_end()),
            [
                "400 blocked-by-sandbox-runtime",
                "400 blocked-by-sandbox-runtime",
                "400 blocked-by-sandbox-runtime",
                "/a/..//b",
            ],
        ),
    ] {
        let proxy = starter.start();
        for (path, answer) in ["//a", "/\\a", "///", "/a/..//b"].into_iter().zip(answers) {
            assert_eq!(ask(&proxy, upstream.port(), path), answer, "{what}: {path}");
        }
    }
    let told = |decider: &TestDecider| {
        decider.take_asked().into_iter().map(|req| req.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(told(&refuse), Vec::<String>::new());
    assert_eq!(told(&as_spelled), ["//a", "/\\a", "///", "/a/..//b"]);
    assert_eq!(told(&normalize), ["/a", "/a", "/", "/b"]);
    assert_eq!(told(&alone), ["/a/..//b"]);
}

#[test]
fn a_fragment_is_cut_off_or_refused() {
    let upstream = mirror();
    let (beside, alone) = (TestDecider::allowing(&[APP]), TestDecider::allowing(&[APP]));
    for (what, starter, answer) in [
        ("settings alone", with_settings(None), "/a?b"),
        ("settings and a decider", with_settings(None).fd("--decider-fd", beside.proxy_end()), "/a?b"),
        (
            "a decider alone",
            Starter::bare().listen().resolve(&[APP]).fd("--decider-fd", alone.proxy_end()),
            "400 blocked-by-sandbox-runtime",
        ),
    ] {
        assert_eq!(ask(&starter.start(), upstream.port(), "/a?b#c/../d"), answer, "{what}");
    }
    assert_eq!(beside.take_asked().len(), 1);
    assert_eq!(alone.take_asked().len(), 0);
}
