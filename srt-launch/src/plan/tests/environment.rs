use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;

use super::*;

fn env(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn get(planned: &Planned, name: &str) -> Option<String> {
    planned.plan.env.get(OsStr::new(name)).map(|value| value.to_str().unwrap().to_string())
}

fn provided(planned: &Planned, name: &str) -> String {
    let file = planned.plan.provided.iter().find(|provided| provided.name == name).unwrap();
    String::from_utf8(file.contents.clone()).unwrap()
}

/// What git is told in the repository of this git directory, `w/` left out.
fn excludes(planned: &Planned, directory: &str) -> Option<String> {
    let config = provided(planned, "git-config");
    let condition = format!("[includeIf \"gitdir:{}/w/{directory}\"]", planned.top.display());
    let mut lines = config.lines().skip_while(|line| *line != condition);
    let included = provided(planned, lines.nth(1)?.strip_prefix("\tpath = ").unwrap());
    let list = included.strip_prefix("[core]\n\texcludesFile = /dev/srt/").unwrap().trim_end();
    Some(provided(planned, list))
}

#[test]
fn what_is_inherited_and_what_is_not() {
    let mut tree = Tree::new(&[]);
    tree.inputs.env = env(&[
        ("PATH", "/bin"),
        ("GH_TOKEN", "t"),
        ("SRT_DEBUG", "1"),
        ("HTTPS_PROXY", "http://u:p@corp:1"),
        ("all_proxy", "x"),
        ("Npm_Config_Proxy", "http://u:p@corp:1"),
        ("CARGO_HTTP_PROXY", "u:p@corp:1"),
        ("ws_proxy", "http://u:p@corp:1"),
        ("X509_USER_PROXY", "/tmp/x509"),
        ("GOPROXY", "https://proxy.golang.org"),
        ("TMPDIR", "/var/tmp"),
        ("PWD", "/elsewhere"),
        ("JAVA_TOOL_OPTIONS", "-Xmx1g"),
    ]);
    let planned = tree.plan(json!({}));
    for (name, value) in [
        ("PATH", "/bin"),
        ("GH_TOKEN", "t"),
        ("SANDBOX_RUNTIME", "1"),
        ("JAVA_TOOL_OPTIONS", "-Xmx1g"),
        ("X509_USER_PROXY", "/tmp/x509"),
        ("GOPROXY", "https://proxy.golang.org"),
    ] {
        assert_eq!(get(&planned, name).as_deref(), Some(value), "{name}");
    }
    for name in [
        "SRT_DEBUG",
        "HTTPS_PROXY",
        "all_proxy",
        "HTTP_PROXY",
        "Npm_Config_Proxy",
        "CARGO_HTTP_PROXY",
        "ws_proxy",
    ] {
        assert_eq!(get(&planned, name), None, "{name}");
    }
    assert_eq!(get(&planned, "PWD"), Some(tree.path(".").to_str().unwrap().trim_end_matches("/.").into()));
    let temp = get(&planned, "TMPDIR").unwrap();
    assert!(temp.starts_with("/tmp/claude"), "{temp}");
    assert_eq!(get(&planned, "TMPPREFIX"), Some(format!("{temp}/zsh")));
    let shown = |mount: &Mount| mount.target == Path::new(&temp) && mount.kind == MountKind::Writable;
    assert!(planned.plan.mounts.iter().any(shown));
}

#[test]
fn edits_have_the_last_word() {
    let mut tree = Tree::new(&[]);
    tree.inputs.env = env(&[("A", "1"), ("B", "1")]);
    tree.inputs.env_edits = vec![
        ("A".into(), None),
        ("C".into(), Some("x".into())),
        ("C".into(), Some("y".into())),
        ("SANDBOX_RUNTIME".into(), None),
    ];
    let planned = tree.plan(json!({}));
    assert_eq!(
        ["A", "B", "C", "SANDBOX_RUNTIME"].map(|name| get(&planned, name)),
        [None, Some("1".into()), Some("y".into()), None]
    );
}

#[test]
fn clients_are_shown_the_proxy() {
    let mut tree = Tree::new(&[]);
    tree.inputs.network = Network::Proxy;
    tree.inputs.env = env(&[
        ("CLOUDSDK_PROXY_PASSWORD", "p"),
        ("GIT_SSH_COMMAND", "ssh -i k"),
        ("JAVA_TOOL_OPTIONS", "-Xmx1g"),
    ]);
    let planned = tree.plan(json!({}));
    for (name, value) in [
        ("http_proxy", "http://127.0.0.1:3128"),
        ("HTTPS_PROXY", "http://127.0.0.1:3128"),
        ("FTP_PROXY", "socks5h://127.0.0.1:3128"),
        ("RSYNC_PROXY", "127.0.0.1:3128"),
        ("NO_PROXY", "localhost,127.0.0.1,::1"),
        ("CLOUDSDK_PROXY_PORT", "3128"),
        ("NODE_USE_ENV_PROXY", "1"),
        (
            "GIT_SSH_COMMAND",
            "ssh -i k -o ControlMaster=no -o ControlPath=none -o 'ProxyCommand=/dev/srt/connect %h %p'",
        ),
    ] {
        assert_eq!(get(&planned, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(get(&planned, "CLOUDSDK_PROXY_PASSWORD"), None);
    assert!(get(&planned, "JAVA_TOOL_OPTIONS").unwrap().starts_with("-Xmx1g -Dhttp.proxyHost=127.0.0.1 "));
    tree.inputs.env = BTreeMap::new();
    assert!(get(&tree.plan(json!({})), "GIT_SSH_COMMAND").unwrap().starts_with("ssh -o "));
    assert!(get(&tree.plan(json!({})), "JAVA_TOOL_OPTIONS").unwrap().starts_with("-Dhttp.proxyHost"));
}

#[test]
fn programs_are_shown_what_to_trust() {
    let mut tree = Tree::new(&[]);
    tree.inputs.env = env(&[("SSL_CERT_FILE", "/host.pem")]);
    assert_eq!(get(&tree.plan(json!({})), "SSL_CERT_FILE").as_deref(), Some("/host.pem"));
    tree.inputs.trust =
        Some(Trust { bundle: "/dev/srt/ca.pem".into(), java_store: Some("/dev/srt/ca.p12".into()) });
    let planned = tree.plan(json!({}));
    for name in ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO"] {
        assert_eq!(get(&planned, name).as_deref(), Some("/dev/srt/ca.pem"), "{name}");
    }
    assert_eq!(get(&planned, "SSL_CERT_DIR").as_deref(), Some("/dev/srt"));
    assert!(
        get(&planned, "JAVA_TOOL_OPTIONS")
            .unwrap()
            .contains("trustStore=/dev/srt/ca.p12 -Djavax.net.ssl.trustStoreType=PKCS12")
    );
}

#[test]
fn safe_directories() {
    let mut tree = Tree::new(&[]);
    tree.inputs.env =
        env(&[("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "user.name"), ("GIT_CONFIG_VALUE_0", "me")]);
    let planned = tree.plan_all(json!({"git": {"safeDirectories": ["/src", "sub/x", "*", "~/r"]}}));
    assert_eq!(get(&planned, "GIT_CONFIG_COUNT").as_deref(), Some("5"));
    assert_eq!(get(&planned, "GIT_CONFIG_VALUE_0").as_deref(), Some("me"));
    let expected = ["/src".into(), tree.path("sub/x"), "*".into(), tree.path("h/r")];
    for (i, value) in expected.iter().enumerate() {
        assert_eq!(get(&planned, &format!("GIT_CONFIG_KEY_{}", i + 1)).as_deref(), Some("safe.directory"));
        assert_eq!(get(&planned, &format!("GIT_CONFIG_VALUE_{}", i + 1)).as_deref(), value.to_str());
    }
}

#[test]
fn git_is_told_of_placeholders() {
    let mut tree = Tree::new(&["sub/f", ".git/HEAD", "h/.gitconfig", "h/mine"]);
    fs::write(tree.path("h/.gitconfig"), "[core]\n\texcludesfile = ~/mine\n").unwrap();
    fs::write(tree.path("h/mine"), "*.o").unwrap();
    tree.inputs.cwd = tree.path("sub");
    let planned = tree.plan(json!({"allowWrite": ["."], "denyWrite": ["a b*c"]}));
    assert_eq!(get(&planned, "GIT_CONFIG_KEY_0").as_deref(), Some("include.path"));
    assert_eq!(get(&planned, "GIT_CONFIG_VALUE_0").as_deref(), Some("/dev/srt/git-config"));
    // A repository may be made where the command starts.
    for (directory, prefix) in [(".git", "/sub"), ("sub/.git", "")] {
        let lines = excludes(&planned, directory).unwrap();
        assert!(lines.starts_with("*.o\n"), "{lines}");
        for line in ["/.bashrc", "/.vscode", "/.claude/"] {
            assert!(lines.lines().any(|own| *own == format!("{prefix}{line}")), "{line} {lines}");
        }
    }
    let planned = tree.plan(json!({"allowWrite": ["."], "denyWrite": [{"path": "a b*c", "literal": true}]}));
    let lines = excludes(&planned, ".git").unwrap();
    assert!(lines.lines().any(|own| own == "/sub/a\\ b\\*c"), "{lines}");
    // What the command may not read is not told.
    let planned = tree.plan(json!({"allowWrite": ["."], "denyRead": ["~"]}));
    assert!(!excludes(&planned, ".git").unwrap().contains("*.o"));
    // Without placeholders git is left alone.
    assert_eq!(get(&tree.plan(json!({})), "GIT_CONFIG_COUNT"), None);
}

#[test]
fn git_is_told_of_placeholders_by_repository() {
    let tree = Tree::new(&[
        "app/.git/HEAD",
        "app/.git/config",
        "top/.git/modules/m/HEAD",
        "top/.git/modules/m/hooks/",
        "top/m/.git",
        "bare/HEAD",
        "bare/objects/",
        "bare/refs/",
    ]);
    fs::write(tree.path("top/m/.git"), "gitdir: ../.git/modules/m\n").unwrap();
    let planned = tree.plan(json!({"allowWrite": ["."], "denyWrite": ["top/m/x"]}));
    // What lies in git directories is no file of the project.
    for name in ["app/.git/hooks", "bare/hooks", "top/.git/modules/m/commondir"] {
        assert!(planned.placeholders().contains(&name.into()), "{name}");
    }
    let lines = excludes(&planned, ".git").unwrap();
    assert!(lines.contains("/.bashrc\n") && lines.contains("/.claude/\n"), "{lines}");
    assert!(!lines.contains("hooks") && !lines.contains("commondir"), "{lines}");
    assert_eq!(excludes(&planned, "app/.git"), None);
    assert_eq!(excludes(&planned, "top/.git"), None);
    assert_eq!(excludes(&planned, "top/.git/modules/m").as_deref(), Some("/x\n"));

    let mut tree = Tree::new(&["a [*\"\\b/f"]);
    tree.inputs.cwd = tree.path("a [*\"\\b");
    let planned = tree.plan(json!({"allowWrite": ["."]}));
    assert!(excludes(&planned, r#"a \\[\\*\"\\\\b/.git"#).unwrap().contains("/.bashrc\n"));
}

#[test]
fn ssh_configuration_is_copied_for_ordinary_users() {
    let mut tree = Tree::new(&[]);
    let there = Path::new("/etc/ssh/ssh_config").is_file();
    for uid in [0, 65534] {
        tree.inputs.uid = uid;
        let planned = tree.plan(json!({}));
        let copied = planned.plan.provided.iter().any(|provided| provided.name == "ssh/etc/ssh/ssh_config");
        assert_eq!(copied, uid != 0 && there, "{uid}");
        let hidden = tree.plan(json!({"denyRead": ["/etc/ssh"]}));
        assert!(hidden.plan.provided.is_empty());
    }
}

/// What the user's own configuration includes, too. Only what is not the user's has to be copied.
#[test]
fn includes_of_the_users_ssh_configuration_are_followed() {
    let mut tree = Tree::new(&["h/.ssh/one/a.conf", "deep/b.conf", "deep/c", "loose", "other"]);
    let top = tree.top();
    fs::write(
        tree.path("h/.ssh/config"),
        format!("Match all\nInclude one/*.conf none \"{}/w/loose\"\n", top.display()),
    )
    .unwrap();
    let text = format!("include={}/w/deep/b.*\nInclude ~/.ssh/config\n", top.display());
    fs::write(tree.path("h/.ssh/one/a.conf"), text).unwrap();
    fs::set_permissions(tree.path("loose"), fs::Permissions::from_mode(0o666)).unwrap();
    let copies = |planned: Planned| -> Vec<String> {
        let names = planned.plan.provided.iter().filter_map(|provided| provided.name.strip_prefix("ssh"));
        let names = names.filter_map(|name| Some(name.strip_prefix(top.to_str()?)?.to_string()));
        names.collect()
    };
    // The tree is another's.
    tree.inputs.uid = geteuid().as_raw() + 1;
    assert_eq!(copies(tree.plan(json!({}))), ["/h/.ssh/config", "/h/.ssh/one/a.conf", "/w/deep/b.conf"]);
    assert_eq!(copies(tree.plan(json!({"denyRead": ["~/.ssh/one"]}))), ["/h/.ssh/config"]);
    if !geteuid().is_root() {
        tree.inputs.uid = geteuid().as_raw();
        assert_eq!(copies(tree.plan(json!({}))), [""; 0]);
    }
}

#[test]
fn explanations() {
    let mut tree = Tree::new(&["s/pub/x", "s/k", "f", "h/.npm/_logs/"]);
    tree.inputs.env = env(&[("A", "1"), ("SRT_DEBUG", "1")]);
    tree.inputs.env_edits = vec![("SECRET".into(), Some("hunter2".into()))];
    let planned = tree.plan(
        json!({"denyRead": ["s"], "allowRead": ["s/pub"], "allowWrite": [".", "s*"], "denyWrite": ["f"]}),
    );
    let explanation = Explanation::new(&planned.plan, &tree.inputs);
    let text = explanation.to_string().replace(planned.top.to_str().unwrap(), "TOP");
    for part in [
        "network: none but",
        "TOP/w  ",
        "filesystem.allowWrite `.`",
        "filesystem.denyWrite `f`",
        "protected name (absent; cannot be made)",
        "filesystem.denyRead `s` (an empty folder of its own)",
        "SANDBOX_RUNTIME=1",
        "SECRET=(set on the command line)",
        "SRT_DEBUG is taken out",
        "filesystem.allowWrite `s*`: patterns are not supported here; nothing is opened",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    let json = explanation.json();
    assert!(!text.contains("hunter2") && !json.to_string().contains("hunter2"));
    let find = |list: &str, path: PathBuf| {
        json[list].as_array().unwrap().iter().find(|line| line["path"] == path.to_str().unwrap()).cloned()
    };
    assert_eq!(
        find("writable", tree.path("h/.npm/_logs")).unwrap()["why"]["rule"],
        "~/.npm/_logs is writable by default"
    );
    assert_eq!(find("notReadable", tree.path("s")).unwrap()["why"]["entry"], "s");
    assert_eq!(find("notWritable", tree.path("f")).unwrap()["why"]["key"], "filesystem.denyWrite");
    assert_eq!(find("readable", tree.path("s/pub")).unwrap()["why"]["key"], "filesystem.allowRead");
    assert_eq!(json["network"], "none");
    assert_eq!(json["environment"]["unset"], json!(["SRT_DEBUG"]));
}

#[test]
fn names_of_files_write_no_lines_of_an_explanation() {
    let tree = Tree::new(&["a\u{1b}[31m\nwritable\n  /etc/x.key", "b.key"]);
    let planned = tree.plan(json!({"denyRead": ["**/*.key"]}));
    let text = Explanation::new(&planned.plan, &tree.inputs).to_string();
    assert!(text.contains(r"/a\u{1b}[31m\nwritable\n  /etc/x.key"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains("\n  /etc/x.key"), "{text}");
}
