//! What is refused, value by value.

use serde_json::json;

use super::{problems, with};

/// Each value is refused, at its own place, with what was expected there.
#[test]
fn faults_are_named_with_place_and_expectation() {
    let table = [
        ("network", json!(5), "network: expected an object, found a number"),
        ("network.allowedDomains", json!("a.com"), "network.allowedDomains: expected a list, found a string"),
        ("network.allowedDomains", json!(null), "network.allowedDomains: expected a list, found null"),
        (
            "network.allowedDomains",
            json!(["a.com", 5]),
            "network.allowedDomains[1]: expected a string, found a number",
        ),
        (
            "network.allowedDomains",
            json!(["*"]),
            "network.allowedDomains[0]: a bare * is not allowed here, found \"*\"",
        ),
        ("network.allowedDomains", json!(["*.com"]), "network.allowedDomains[0]: a wildcard needs"),
        (
            "network.allowedDomains",
            json!(["https://a.com"]),
            "network.allowedDomains[0]: expected a host name",
        ),
        ("network.allowedDomains", json!(["a.com/x"]), "network.allowedDomains[0]: expected a host name"),
        (
            "network.allowedDomains",
            json!(["2001:db8::1"]),
            "network.allowedDomains[0]: an IPv6 address must stand in brackets",
        ),
        (
            "network.allowedDomains",
            json!(["intranet"]),
            "network.allowedDomains[0]: a name needs at least two labels",
        ),
        (
            "network.allowedDomains",
            json!(["a.com:0"]),
            "network.allowedDomains[0]: the port must be a number",
        ),
        (
            "network.allowedDomains",
            json!(["a.com:65536"]),
            "network.allowedDomains[0]: the port must be a number",
        ),
        ("network.allowedDomains", json!(["a.*.com"]), "network.allowedDomains[0]: a * may only be"),
        (
            "network.deniedDomains",
            json!(["::1:443"]),
            "network.deniedDomains[0]: an IPv6 address must stand in brackets",
        ),
        (
            "network.deniedResolvedAddresses",
            json!(["10.0.0.0/33"]),
            "network.deniedResolvedAddresses[0]: the prefix length",
        ),
        (
            "network.deniedResolvedAddresses",
            json!(["a.com"]),
            "network.deniedResolvedAddresses[0]: expected an IP address",
        ),
        (
            "network.deniedDomainReasons",
            json!({"a b": 5}),
            "network.deniedDomainReasons[\"a b\"]: expected a string, found a number",
        ),
        (
            "network.strictAllowlist",
            json!("yes"),
            "network.strictAllowlist: expected true or false, found a string",
        ),
        (
            "network.httpProxyPort",
            json!(0),
            "network.httpProxyPort: expected a whole number from 1 to 65535, found 0",
        ),
        (
            "network.socksProxyPort",
            json!(65536),
            "network.socksProxyPort: expected a whole number from 1 to 65535",
        ),
        (
            "network.socksProxyPort",
            json!("1"),
            "network.socksProxyPort: expected a whole number from 1 to 65535, found a string",
        ),
        ("network.mitmProxy", json!({}), "network.mitmProxy.socketPath: missing; the key is required"),
        (
            "network.mitmProxy",
            json!({"socketPath": "x", "domains": []}),
            "network.mitmProxy.domains: expected at least one host",
        ),
        (
            "network.parentProxy",
            json!({"http": "ftp://x"}),
            "network.parentProxy.http: a parent proxy is an http://",
        ),
        (
            "network.parentProxy",
            json!({"noProxy": ["x"]}),
            "network.parentProxy.noProxy: expected a string, found a list",
        ),
        (
            "network.tlsTerminate",
            json!(true),
            "network.tlsTerminate: expected an object, found true or false",
        ),
        (
            "network.tlsTerminate",
            json!({"caCertPath": "/x"}),
            "network.tlsTerminate: caCertPath and caKeyPath must be given together",
        ),
        (
            "network.tlsTerminate",
            json!({"caKeyPath": "/x"}),
            "network.tlsTerminate: caCertPath and caKeyPath must be given together",
        ),
        (
            "network.tlsTerminate",
            json!({"excludeDomains": ["*"]}),
            "network.tlsTerminate.excludeDomains[0]: a bare *",
        ),
        (
            "network.tlsTerminate",
            json!({"extraCaCertPaths": [""]}),
            "network.tlsTerminate.extraCaCertPaths[0]: must not be empty",
        ),
        (
            "network.tlsTerminate",
            json!({"maxTunnels": 0}),
            "network.tlsTerminate.maxTunnels: expected a whole number from 1 to 65536",
        ),
        (
            "network.tlsTerminate",
            json!({"maxTunnels": 1.5}),
            "network.tlsTerminate.maxTunnels: expected a whole number",
        ),
        (
            "network.tlsTerminate",
            json!({"handshakeTimeoutMs": 99}),
            "network.tlsTerminate.handshakeTimeoutMs: expected a whole number from 100",
        ),
        ("network.stripResponseHeaders", json!([""]), "network.stripResponseHeaders[0]: must not be empty"),
        (
            "network.ambiguousRequestTarget",
            json!("x"),
            "network.ambiguousRequestTarget: expected `refuse`, `asSpelled` or",
        ),
        ("filesystem.allowWrite", json!([""]), "filesystem.allowWrite[0]: the path is empty"),
        ("filesystem.denyRead", json!(["a\u{0}b"]), "filesystem.denyRead[0]: the path has a NUL character"),
        (
            "filesystem.denyRead",
            json!([5]),
            "filesystem.denyRead[0]: expected a path, or {\"path\": \"…\", \"literal\": true}, found a number",
        ),
        (
            "filesystem.denyRead",
            json!([{"path": "/x", "literal": false}]),
            "filesystem.denyRead[0].literal: expected true",
        ),
        ("filesystem.denyRead", json!([{"path": "/x"}]), "filesystem.denyRead[0].literal: missing"),
        ("filesystem.denyRead", json!([{"literal": true}]), "filesystem.denyRead[0].path: missing"),
        (
            "filesystem.denyRead",
            json!([{"path": "", "literal": true}]),
            "filesystem.denyRead[0].path: the path is empty",
        ),
        (
            "filesystem.denyRead",
            json!([{"path": "/x", "literal": true, "why": "x"}]),
            "filesystem.denyRead[0].why: unknown key; known are path, literal",
        ),
        (
            "filesystem.denyRead",
            json!(["/data/*/"]),
            "filesystem.denyRead[0]: the pattern \"/data/*/\" ends in a slash",
        ),
        (
            "filesystem.denyWrite",
            json!(["/data/[]/"]),
            "filesystem.denyWrite[0]: the pattern \"/data/[]/\" ends in a slash",
        ),
        ("filesystem.denyRead", json!(["/data/**/"]), "write \"/data/**\""),
        ("filesystem.disabled", json!(1), "filesystem.disabled: expected true or false, found a number"),
        (
            "mandatoryDenySearchDepth",
            json!(0),
            "mandatoryDenySearchDepth: expected a whole number from 1 to 10, found 0",
        ),
        (
            "mandatoryDenySearchDepth",
            json!(11),
            "mandatoryDenySearchDepth: expected a whole number from 1 to 10, found 11",
        ),
        ("mandatoryDenySearchDepth", json!(2.5), "mandatoryDenySearchDepth: expected a whole number"),
        ("mandatoryDenySearchDepth", json!(-1), "mandatoryDenySearchDepth: expected a whole number"),
        (
            "mandatoryDenySearchDepth",
            json!(null),
            "mandatoryDenySearchDepth: expected a whole number from 1 to 10, found null",
        ),
        ("ignoreViolations", json!({"a": "x"}), "ignoreViolations.a: expected a list, found a string"),
        ("ignoreViolations", json!([]), "ignoreViolations: expected an object, found a list"),
        ("git", json!({"safeDirectories": "x"}), "git.safeDirectories: expected a list, found a string"),
        ("bwrapPath", json!("bin/bwrap"), "bwrapPath: expected an absolute path, found \"bin/bwrap\""),
        ("bwrapPath", json!(""), "bwrapPath: must not be empty"),
        ("ripgrep", json!({}), "ripgrep.command: missing"),
        ("seccomp", json!({"applyPath": 5}), "seccomp.applyPath: expected a string"),
        ("windows", json!({"proxyPortRange": [1]}), "windows.proxyPortRange: expected two ports"),
        ("windows", json!({"proxyPortRange": [10, 5]}), "windows.proxyPortRange: expected two ports"),
        ("windows", json!({"sublayerGuid": "x"}), "windows.sublayerGuid: expected a GUID"),
        ("windows", json!({"srtWin": {}}), "windows.srtWin.path: missing"),
        (
            "credentials",
            json!({"injectHosts": []}),
            "credentials.injectHosts: unknown key; known are envVars",
        ),
        (
            "credentials",
            json!({"envVars": [{"name": "A-B", "mode": "deny"}]}),
            "credentials.envVars[0].name: expected the name of an environment",
        ),
        (
            "credentials",
            json!({"envVars": [{"name": "A", "mode": "hide"}]}),
            "credentials.envVars[0].mode: expected `deny` or `mask`",
        ),
        (
            "credentials",
            json!({"envVars": [{"name": "A", "mode": "deny"}]}),
            "credentials.envVars: not enforced yet",
        ),
        (
            "credentials",
            json!({"files": [{"path": "~/.netrc", "mode": "deny"}]}),
            "credentials.files: not enforced yet",
        ),
        (
            "credentials",
            json!({"awsPairs": [{"accessKeyIdVar": "A", "secretAccessKeyVar": "B", "x": 1}]}),
            "credentials.awsPairs[0].x: unknown key",
        ),
        ("credentials", json!({"sigv4": {"stream": 1}}), "credentials.sigv4.stream: unknown key"),
    ];
    for (path, value, wanted) in table {
        let found = problems(&with(path, value.clone()));
        assert!(found.contains(wanted), "{path} = {value}: wanted {wanted:?}, found {found:?}");
    }
}
