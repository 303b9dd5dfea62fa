mod faults;

use std::{fs, path::Path};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn minimal() -> Value {
    json!({
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []},
    })
}

/// The minimal document with one value put in.
fn with(path: &str, value: Value) -> Value {
    let mut document = minimal();
    let mut at = &mut document;
    for key in path.split('.') {
        at = &mut at[key];
    }
    *at = value;
    document
}

fn parse(document: &Value) -> Result<Parsed, Problems> {
    Settings::parse(document.to_string().as_bytes())
}

fn problems(document: &Value) -> String {
    parse(document).map(|_| String::new()).unwrap_or_else(|problems| problems.to_string())
}

#[test]
fn the_minimal_document_is_the_default() {
    let parsed = parse(&minimal()).unwrap();
    assert_eq!(parsed, Parsed { settings: Settings::default(), warnings: vec![] });
    assert_eq!(parsed.settings.mandatory_deny_search_depth.get(), 3);
}

#[test]
fn the_whole_file_of_the_reference_is_read() {
    let document = json!({
        "network": {
            "allowedDomains": ["github.com", "*.npmjs.org:443", "[::1]:8080", "127.0.0.1:3000", "localhost"],
            "deniedDomains": ["*:22", "*", "[::1]"], "deniedDomainReasons": {"*:22": "use https"},
            "strictAllowlist": true, "deniedResolvedAddresses": ["10.0.0.0/8", "fc00::/7", "192.168.1.1"],
            "allowUnixSockets": ["/run/x.sock"], "allowAllUnixSockets": true, "allowLocalBinding": true,
            "httpProxyPort": 8888, "socksProxyPort": 1080,
            "mitmProxy": {"socketPath": "/run/mitm.sock", "domains": ["api.example.com"]},
            "parentProxy": {"http": "http://proxy.corp:3128", "https": "https://u:p@proxy.corp", "noProxy": "localhost,.corp"},
            "tlsTerminate": {"caCertPath": "ca.pem", "caKeyPath": "ca.key", "excludeDomains": ["a.example.com"],
                             "extraCaCertPaths": ["x.pem"], "maxTunnels": 65536, "handshakeTimeoutMs": 100},
            "allowPlaintextHeaderSet": true, "stripResponseHeaders": ["set-cookie"], "refuseOpaqueTunnels": true,
            "requireHostMatch": true, "ambiguousRequestTarget": "asSpelled", "allowMachLookup": ["com.apple.x"],
        },
        "filesystem": {"disabled": false, "denyRead": ["~/.ssh", {"path": "/w/*.env", "literal": true}], "allowRead": ["x/*/"],
                       "allowWrite": ["."], "denyWrite": [".env", "d/**"], "allowGitConfig": true},
        "credentials": {"allowPlaintextInject": true, "sigv4": {"streaming": "deny"}},
        "ignoreViolations": {"*": ["/usr/bin"], "git push": ["/usr/bin/nc"]},
        "mandatoryDenySearchDepth": 10, "enableWeakerNestedSandbox": true, "allowNestedUserNamespaces": true,
        "git": {"safeDirectories": ["/src"]},
        "bwrapPath": "/usr/bin/bwrap", "socatPath": "/s", "javaAgentJarPath": "/j.jar",
        "ripgrep": {"command": "rg", "args": ["-x"], "argv0": "rg", "more": 1}, "seccomp": {"applyPath": "x", "argv0": "y"},
        "allowPty": true, "allowAppleEvents": false, "enableWeakerNetworkIsolation": false,
        "windows": {"proxyPortRange": [60080, 60089], "sublayerGuid": "01234567-89ab-cdef-0123-456789abcdef", "srtWin": {"path": "x"}},
    });
    let Parsed { settings, warnings } = parse(&document).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(settings.network.allowed_domains.len(), 5);
    assert_eq!(settings.network.tls_terminate.unwrap().ca.unwrap().key, "ca.key");
    assert_eq!(settings.network.ambiguous_request_target, AmbiguousTarget::AsSpelled);
    assert_eq!(settings.filesystem.deny_read[1], PathEntry { path: "/w/*.env".into(), literal: true });
    assert_eq!(settings.mandatory_deny_search_depth.get(), 10);
    assert_eq!(settings.elsewhere.windows.unwrap().proxy_port_range, Some([60080, 60089]));
}

#[test]
fn the_examples_of_the_manual_are_valid() {
    let manual = include_str!("../../../docs/settings.md");
    let blocks: Vec<&str> =
        manual.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 3);
    for block in blocks {
        let parsed =
            Settings::parse(block.as_bytes()).unwrap_or_else(|problems| panic!("{problems} in {block}"));
        assert_eq!(parsed.warnings, [], "{block}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let document = json!({
        "network": {"allowedDomains": ["*", "a.com"], "deniedDomians": []},
        "filesystem": {"denyRead": [""], "allowWrite": ["."]},
        "mandatoryDenySearchDepth": 11,
    });
    let found = problems(&document);
    let places: Vec<&str> = found.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "network.allowedDomains[0]",
            "network.deniedDomains",
            "network.deniedDomians",
            "filesystem.denyRead[0]",
            "filesystem.denyWrite",
            "mandatoryDenySearchDepth",
        ]
    );
}

#[test]
fn unknown_keys_warn_and_typos_are_errors() {
    let mut document = with("network.foo", json!(1));
    document["limits"] = json!({"memory": 5});
    let warnings: Vec<String> = parse(&document).unwrap().warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "network.foo: not known to this release and has no effect",
            "limits: not known to this release and has no effect"
        ]
    );
    for (path, meant) in [
        ("filesystem.denyreads", "denyRead"),
        ("filesystem.DENYREAD", "denyRead"),
        ("network.allowdDomains", "allowedDomains"),
        ("network.tlsTerminat", "tlsTerminate"),
        ("Filesystem", "filesystem"),
        ("mandatoryDenySearchdepth", "mandatoryDenySearchDepth"),
        ("credential", "credentials"),
    ] {
        let found = problems(&with(path, json!(1)));
        assert!(
            found.contains(&format!("{path}: unknown key; `{meant}` is probably meant")),
            "{path}: {found}"
        );
    }
}

#[test]
fn a_reason_for_no_entry_warns() {
    let mut document = with("network.deniedDomains", json!(["a.com:22"]));
    document["network"]["deniedDomainReasons"] = json!({"a.com:22": "x", "a.com": "y"});
    let warnings = parse(&document).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].path, "network.deniedDomainReasons[\"a.com\"]");
}

#[test]
fn a_fault_of_the_json_is_told_alone() {
    let sound = minimal().to_string();
    for (document, wanted) in [
        (String::new(), "empty"),
        (" \n\t".into(), "empty"),
        ("{ network: }".into(), "not valid JSON"),
        ("[]".into(), "expected an object, found a list"),
        ("5".into(), "expected an object, found a number"),
        ("null".into(), "expected an object, found null"),
        (sound[..sound.len() - 4].into(), "not valid JSON"),
        (format!("\u{feff}{sound}"), "byte order mark"),
        (format!("{sound}x"), "not valid JSON"),
        (
            format!("// c\n{sound}"),
            "not valid JSON: a comment, which JSON does not have; take it out (line 1, column 1)",
        ),
        (
            sound.replacen("[],", "[], // c\n", 1),
            "a comment, which JSON does not have; take it out (line 1, column ",
        ),
        (
            "{\n  \"network\": {\"allowedDomains\": [],\n  }\n}".into(),
            "network: not valid JSON: a trailing comma, which JSON does not have; take it out (line 2, column 35)",
        ),
        (
            sound.replacen('{', r#"{"filesystem": {},"#, 1),
            "filesystem: not valid JSON: the key is there twice",
        ),
        (sound.replace("[]", &format!("{}5{}", "[".repeat(100), "]".repeat(100))), "nested deeper"),
    ] {
        let found = Settings::parse(document.as_bytes()).unwrap_err().to_string();
        assert!(found.contains(wanted), "{document:?}: {found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
    assert!(Settings::parse(b"{\"a\": \"\xff\"}").unwrap_err().to_string().contains("UTF-8"));
    assert!(Settings::parse(&vec![b'['; limits::MAX_BYTES + 1]).unwrap_err().to_string().contains("longer"));
}

#[test]
fn integers_written_as_javascript_may_write_them() {
    let document = minimal().to_string().replacen('{', r#"{"mandatoryDenySearchDepth": 2.0,"#, 1);
    assert_eq!(Settings::parse(document.as_bytes()).unwrap().settings.mandatory_deny_search_depth.get(), 2);
}

#[test]
fn a_password_is_in_no_message() {
    let document = with(
        "network.parentProxy",
        json!({"http": "ftp://user:hunter2@proxy", "https": "http://u:hunter2@a b"}),
    );
    assert!(!problems(&document).contains("hunter2"));
    let document = with("network.parentProxy", json!({"http": "http://user:hunter2@proxy.corp"}));
    assert!(!format!("{:?}", parse(&document).unwrap()).contains("hunter2"));
}

#[test]
fn loading() {
    let home = tempfile::tempdir().unwrap();
    let default = home.path().join(DEFAULT_NAME);
    let loaded = load(Source::Home(home.path())).unwrap();
    assert_eq!((loaded.settings, loaded.file), (Settings::default(), None));
    assert_eq!(Settings::parse(&loaded.document).unwrap().settings, Settings::default());

    let missing = home.path().join("none.json");
    assert!(
        load(Source::File(&missing))
            .unwrap_err()
            .to_string()
            .contains("none.json\" cannot be read: No such file")
    );
    assert!(load(Source::File(home.path())).unwrap_err().to_string().contains("directory"));

    fs::write(&default, with("filesystem.allowWrite", json!(["."])).to_string()).unwrap();
    let loaded = load(Source::Home(home.path())).unwrap();
    assert_eq!(loaded.settings.filesystem.allow_write.len(), 1);
    assert_eq!(loaded.file.as_deref(), Some(default.as_path()));

    fs::write(&default, "{}").unwrap();
    let text = load(Source::Home(home.path())).unwrap_err().to_string();
    let place = default.display();
    assert_eq!(
        text,
        format!(
            "{place}: network: missing; the key is required\n{place}: filesystem: missing; the key is required\n\
             nothing is run: the rules of an invalid settings file are not known"
        )
    );

    fs::remove_file(&default).unwrap();
    std::os::unix::fs::symlink("nowhere", &default).unwrap();
    assert!(matches!(load(Source::Home(home.path())), Err(LoadError::Read { .. })));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z*./:]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![
            Just("network".to_string()),
            Just("filesystem".into()),
            Just("allowedDomains".into()),
            Just("denyRead".into()),
            Just("credentials".into()),
            Just("path".into()),
            "[a-zA-Z]{1,6}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever is read, it is settings or at least one problem, and never a panic.
    #[test]
    fn any_document_is_settings_or_problems(document in any_json()) {
        if let Err(problems) = parse(&document) {
            prop_assert!(problems.iter().next().is_some());
        }
    }

    #[test]
    fn any_bytes_are_settings_or_problems(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert!(Settings::parse(&bytes).is_err());
    }
}

#[test]
fn a_tilde_is_the_home_only_where_it_stands_alone() {
    let home = Some(Path::new("/h"));
    for (path, found) in
        [("~", Some("/h")), ("~/a", Some("/h/a")), ("~//a", Some("/h/a")), ("~a", None), ("a/~", None)]
    {
        assert_eq!(in_home(path, home).as_deref(), found.map(Path::new), "{path}");
    }
    assert_eq!(in_home("~/a", None), None);
}
