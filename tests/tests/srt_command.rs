//! `srt` as people use it: what it runs, what it says, and what it ends with.
// A panic here is a test that failed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use srt_shared::event::{Event, EventKind, RefusalCode};
use srt_tests::program::{Finished, Program};
use srt_tests::proxy::{Pki, TestUpstream};
use srt_tests::sandbox_run::{Folder, hello_once, settings};

fn folder() -> Folder {
    Folder::new(&settings(json!({})))
}

fn srt<const N: usize>(folder: &Folder, args: [&str; N]) -> Finished {
    folder.srt().args(args).run()
}

/// One host that is allowed and one that is not, of one upstream.
struct Web {
    _upstream: TestUpstream,
    allowed: String,
    refused: String,
}

impl Web {
    fn new() -> Self {
        let upstream = TestUpstream::plain(hello_once);
        let port = upstream.port();
        let [allowed, refused] = ["a", "b"].map(|name| format!("{name}.localhost:{port}"));
        Self { _upstream: upstream, allowed, refused }
    }

    fn settings(&self) -> Value {
        settings(json!({"allowedDomains": [self.allowed]}))
    }

    /// A shell command that fetches both, the refused one twice.
    fn fetch(&self) -> String {
        // The variables say that names of loopback are the sandbox's own.
        let curl = |host| format!("curl -sS --noproxy '' http://{host}/hello");
        format!("{}; {}; {}", curl(&self.allowed), curl(&self.refused), curl(&self.refused))
    }

    fn violation(&self) -> String {
        format!("deny network-outbound {} (host is not on the allow list)\n", self.refused)
    }
}

#[test]
fn one_thing_is_allowed_another_refused_and_reported_once() {
    let web = Web::new();
    let folder = Folder::new(&web.settings());
    let run = srt(&folder, ["-c", &web.fetch()]).succeeded();
    assert!(run.text().starts_with("hellosrt-proxy: "), "{}", run.text());
    assert_eq!(run.stderr, format!("<sandbox_violations>\n{}</sandbox_violations>\n", web.violation()));
    // Nothing to report, no report.
    let fine = format!("curl -sS --noproxy '' http://{}/hello", web.allowed);
    assert_eq!(srt(&folder, ["-c", &fine]).succeeded().stderr, "");
    assert_eq!(srt(&folder, ["--quiet", "-c", &web.fetch()]).succeeded().stderr, "");
}

#[test]
fn violations_are_appended_to_a_file_as_json_lines() {
    let web = Web::new();
    let folder = Folder::new(&web.settings());
    let file = folder.home().join("violations.jsonl");
    fs::write(&file, "").unwrap();
    for runs in 1..3 {
        let run = folder.srt().arg("--quiet").arg("--violations").arg(&file).args(["-c", &web.fetch()]).run();
        assert_eq!(run.succeeded().stderr, "");
        let lines = fs::read_to_string(&file).unwrap();
        let events: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // Each attempt, however often it was told.
        assert_eq!(events.len(), 2 * runs, "{lines}");
        for event in events {
            assert_eq!((event.event, event.code), (EventKind::Refused, Some(RefusalCode::HostNotAllowed)));
            assert_eq!(format!("{}:{}", event.host, event.port), web.refused);
            assert_eq!(event.rule.as_deref(), Some("network.allowedDomains"));
        }
    }
}

/// More than the proxy's socket holds: a command must not hide one refusal behind others.
#[test]
fn no_refusal_gets_lost_among_many() {
    const MANY: usize = 1500;
    let web = Web::new();
    let folder = Folder::new(&web.settings());
    let ask = format!(
        "for i in $(seq {MANY}); do exec 3<>/dev/tcp/127.0.0.1/3128; \
         printf 'GET http://h%s.test/ HTTP/1.1\\r\\nHost: h%s.test\\r\\n\\r\\n' $i $i >&3; read -r _ <&3; done"
    );
    let run = srt(&folder, ["--violations", "log", "bash", "-c", &ask]).succeeded();
    let log = fs::read_to_string(folder.work().join("log")).unwrap();
    assert_eq!(log.lines().count(), MANY);
    assert!(run.stderr.contains(&format!("({} more)", MANY - 200)), "{}", run.stderr);
}

#[test]
fn the_file_of_violations_is_opened_before_anything_runs() {
    let web = Web::new();
    let folder = Folder::new(&web.settings());
    let run = srt(&folder, ["--violations", "absent/file", "touch", "ran"]);
    assert_eq!(run.status.code(), Some(125));
    assert!(run.stderr.contains("--violations absent/file: No such file"), "{}", run.stderr);
    assert!(!folder.work().join("ran").exists());
    // A link that the command puts in its place leads nothing astray.
    let plant = format!("rm -f log; ln -s ../other log; {}", web.fetch());
    srt(&folder, ["--violations", "log", "-c", &plant]).succeeded();
    assert!(folder.work().join("log").is_symlink());
    assert!(!folder.home().join("other").exists());
}

#[test]
fn ignored_violations_are_left_out_of_the_report() {
    let web = Web::new();
    let (name, _) = web.refused.split_once(':').unwrap();
    for (key, ignored, reported) in
        [("*", name, false), ("curl", name, false), ("wget", name, true), ("curl", "other.localhost", true)]
    {
        let mut settings = web.settings();
        settings["ignoreViolations"] = json!({key: [ignored]});
        let run = srt(&Folder::new(&settings), ["-c", &web.fetch()]).succeeded();
        assert_eq!(run.stderr.contains(&web.violation()), reported, "{key} {ignored}: {}", run.stderr);
        assert_eq!(run.stderr.is_empty(), !reported);
    }
}

#[test]
fn the_exit_status_is_the_commands_or_says_why_there_was_none() {
    let folder = folder();
    fs::write(folder.work().join("plain"), "no program").unwrap();
    for (args, status) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "exit 255"], 255),
        (&["-c", "exit 3"], 3),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["no-such-program"], 127),
        (&["./absent"], 127),
        (&["--", "-odd"], 127),
        (&["./plain"], 126),
        (&["/"], 126),
        (&[], 125),
        (&["--no-such-option", "true"], 125),
        (&["--json", "true"], 125),
        (&["--control-fd", "99", "true"], 125),
        (&["--control-fd", "1", "true"], 125),
        (&["--completions", "tcsh"], 125),
        (&["--settings", "absent.json", "check"], 125),
        (&["--strict", "check"], 125),
        (&["-d", "proxy", "--help"], 125),
        (&["check", "--strict"], 125),
        (&["--settings", "absent.json", "touch", "ran"], 125),
        (&["--settings", "plain", "touch", "ran"], 125),
        (&["--help"], 0),
        (&["--version"], 0),
    ] {
        let run = folder.srt().args(args).run();
        assert_eq!(run.status.code(), Some(status), "{args:?}: {run:?}");
        let own = (125..=127).contains(&status);
        assert_eq!(!run.stderr.is_empty(), own, "{args:?}: {}", run.stderr);
    }
    assert!(!folder.work().join("ran").exists());
}

#[test]
fn one_argument_with_blanks_is_a_shell_command_and_nothing_else_is() {
    let folder = folder();
    let script = folder.work().join("a b");
    fs::write(&script, "#!/bin/sh\necho executed\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for (args, text) in [
        (&["echo a b | tr ab xy"][..], "x y\n"),
        (&["./a b"], "executed\n"),
        (&["echo", "$HOME a | b"], "$HOME a | b\n"),
        (&["echo", "-c", "--quiet"], "-c --quiet\n"),
        (&["--", "echo", "--", "x"], "-- x\n"),
        (&["-c", "echo \"$0 $1\" | tr a b", "a", "--debug"], "b --debug\n"),
        (&["-c", "echo"], "\n"),
    ] {
        assert_eq!(folder.srt().args(args).run().succeeded().text(), text, "{args:?}");
    }
}

#[test]
fn programs_with_the_names_of_subcommands_are_run_if_that_is_what_was_asked_for() {
    let folder = folder();
    for name in ["check", "proxy"] {
        let script = folder.work().join(name);
        fs::write(&script, "#!/bin/sh\necho executed $*\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let run = |args: &[&str]| {
            let path = format!("{}:/usr/bin:/bin", folder.work().display());
            folder.srt().env("PATH", path).args(args).run()
        };
        for args in [
            &["--", name, "--help"][..],
            &["--strict", "--", name, "--help"],
            &[&format!("./{name}"), "--help"],
            &["--strict", &format!("./{name}"), "--help"],
            &["env", name, "--help"],
        ] {
            assert_eq!(run(args).succeeded().text(), "executed --help\n", "{args:?}");
        }
        // Either may be meant: neither is done, and how to say which is told in one line.
        let refused = run(&["--strict", name]).failed();
        assert_eq!((refused.text().as_str(), refused.stderr.lines().count()), ("", 1));
        for way in [format!("`srt {name}"), format!("`-- {name}`")] {
            assert!(refused.stderr.contains(&way), "{}", refused.stderr);
        }
        let subcommand = run(&[name, "--help"]).succeeded().text();
        assert!(subcommand.contains("Usage: srt") && !subcommand.contains("executed"), "{subcommand}");
    }
}

#[test]
fn an_explanation_runs_nothing_and_names_each_reason() {
    let mut settings = settings(json!({"allowedDomains": ["a.localhost"]}));
    settings["filesystem"]["denyWrite"] = json!(["secret.txt"]);
    let folder = Folder::new(&settings);
    fs::write(folder.work().join("secret.txt"), "").unwrap();
    let paths = folder.paths();
    let run = srt(&folder, ["--explain", "touch", "ran"]).succeeded();
    for part in ["secret.txt", "denyWrite", "allowWrite", "3128"] {
        assert!(run.text().contains(part), "{part} is not in:\n{}", run.text());
    }
    let run = srt(&folder, ["--explain", "--json"]).succeeded();
    let json: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(json.is_object(), "{json}");
    assert_eq!(folder.paths(), paths);
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish"] {
        let script = srt(&folder, ["--completions", shell]).succeeded().text();
        for option in ["violations", "control-fd", "explain", "quiet"] {
            assert!(script.contains(option), "{shell} without {option}");
        }
        assert!(script.contains("check") && script.contains("proxy"), "{shell}");
    }
}

#[test]
fn bash_completes_ours_up_to_the_command_and_then_the_commands() {
    let folder = folder();
    let scripts = [folder.srt(), folder.srt_launch()]
        .map(|program| program.args(["--completions", "bash"]).run().succeeded().text());
    // As bash calls it for the last of these words, but for `compopt`, which is refused elsewhere. The reply is
    // sorted, on one line; `command at N` is what the command's own completion would be asked for.
    let asks = r#"
        compopt() { echo "compopt $*"; }
        _command_offset() { echo "command at $1"; }
        ask() {
            local function=_${1//-/_}
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            "$function" "$1" "${!#}" "${COMP_WORDS[$# - 2]}"
            printf '%s\n' "${COMPREPLY[@]}" | sort -u | tr '\n' ' '
            echo
        }
    "#;
    for (words, reply) in [
        ("srt --vi", "--violations"),
        ("srt chec", "check"),
        ("srt prox", "proxy"),
        ("srt -d chec", ""),
        ("srt -- chec", ""),
        ("srt printf", "printf"),
        ("srt -s file printf", "printf"),
        ("srt --settings = file -dq printf", "printf"),
        ("srt --completions ''", "bash fish zsh"),
        ("srt --completions = z", "zsh"),
        ("srt --control-fd ''", "compopt +o default +o bashdefault"),
        // Files, which bash adds where there is nothing else.
        ("srt --violations ''", ""),
        ("srt npm --vi", "command at 1"),
        ("srt -qd -s file npm --vi", "command at 4"),
        ("srt -- --odd --vi", "command at 2"),
        ("srt-launch chec", ""),
        ("srt-launch --chdir ''", "compopt -o dirnames"),
        ("srt-launch --proxy 127.0.0.1 : 80 --setenv A = b printf", "printf"),
        ("srt-launch --proxy 127.0.0.1 : 80 npm --vi", "command at 5"),
    ] {
        let script = format!("{}\n{}\n{asks}\nask {words}", scripts[0], scripts[1]);
        let said = Program::new("bash").arg("-s").input(script).run().succeeded();
        assert_eq!(said.stderr, "", "{words}");
        let said = said.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(said, reply, "{words}");
    }
    // All that is ours, where nothing was typed, and no command among it.
    let script = format!("{}\n{asks}\nask srt ''", scripts[0]);
    let all = Program::new("bash").arg("-s").input(script).run().succeeded().text();
    assert!(all.contains(" check ") && all.contains(" proxy ") && all.contains(" --strict "), "{all}");
    assert!(!all.contains("printf"), "{all}");
}

#[test]
fn what_is_weaker_than_it_looks_is_warned_of_and_an_error_when_strict() {
    let mut settings = settings(json!({}));
    settings["network"]["soon"] = json!(true);
    let folder = Folder::new(&settings);
    let run = srt(&folder, ["true"]).succeeded();
    let place = folder.home().join(".srt-settings.json: network.soon: ");
    assert_eq!(run.stderr.matches(place.to_str().unwrap()).count(), 1, "{}", run.stderr);
    assert_eq!(run.stderr.matches("network.soon").count(), 1, "{}", run.stderr);
    let run = srt(&folder, ["--strict", "touch", "ran"]);
    assert_eq!(run.status.code(), Some(125));
    assert!(!folder.work().join("ran").exists());
}

#[test]
fn further_settings_that_no_proxy_of_ours_reads_are_warned_of() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = Folder::new(&settings(json!({"httpProxyPort": port})));
    let (read, _write) = std::io::pipe().unwrap();
    let run = folder.srt().fd("--control-fd", read.into()).arg("true").run().succeeded();
    assert!(run.stderr.contains("--control-fd has no effect"), "{}", run.stderr);
    assert_eq!(srt(&folder, ["true"]).succeeded().stderr, "");
    drop(listener);
    let run = srt(&folder, ["true"]).succeeded();
    assert!(run.stderr.contains(&format!("no proxy listens on 127.0.0.1:{port} (")), "{}", run.stderr);
}

#[test]
fn the_authority_may_lie_in_the_home_and_its_key_is_read_by_the_proxy_alone() {
    let ca = json!({"caCertPath": "~/ca.pem", "caKeyPath": "~/ca.pem"});
    let folder = Folder::new(&settings(json!({"tlsTerminate": ca})));
    fs::write(folder.home().join("ca.pem"), Pki::new().proxy_ca_text()).unwrap();
    let run =
        srt(&folder, ["-c", "cat ~/ca.pem; grep -c CERTIFICATE $SSL_CERT_FILE > /dev/null"]).succeeded();
    assert_eq!(run.text(), "");
}

#[test]
fn ssh_inside_is_led_to_the_proxy_and_told_why_not() {
    let reasons = json!({"*:22": "use https"});
    let network =
        json!({"allowedDomains": ["a.localhost"], "deniedDomains": ["*:22"], "deniedDomainReasons": reasons});
    let folder = Folder::new(&settings(network));
    let run = srt(&folder, ["-c", "eval \"$GIT_SSH_COMMAND -o BatchMode=yes git@a.localhost true\""]);
    assert_eq!(run.status.code(), Some(255), "{run:?}");
    assert!(run.stderr.contains("sandbox proxy: a.localhost:22: 403 use https"), "{}", run.stderr);
    assert!(run.stderr.contains("deny network-outbound a.localhost:22 (use https)"), "{}", run.stderr);
    // What it is given is never taken for a command.
    for words in ["", "true", "a.localhost 22 more"] {
        let run = srt(&folder, ["-c", &format!("/dev/srt/connect {words}")]);
        assert_eq!(run.status.code(), Some(125), "{words}: {run:?}");
        assert_eq!(run.stderr, "sandbox proxy: usage: /dev/srt/connect HOST PORT\n");
    }
}

#[test]
fn a_file_put_in_a_placeholders_place_is_the_users_own() {
    let folder = folder();
    let (up, own) = (folder.work().join("up"), folder.work().join(".bashrc"));
    let long = folder.srt_launch().args(["--no-network", "sh", "-c", "echo >up; cat"]).start();
    while !up.exists() {
        std::thread::yield_now();
    }
    assert_eq!(fs::read(&own).unwrap(), b"");
    fs::remove_file(&own).unwrap();
    fs::write(&own, "mine\n").unwrap();
    let run =
        folder.srt_launch().args(["--no-network", "sh", "-c", "cat .bashrc; echo >>.bashrc"]).run().failed();
    assert_eq!(run.text(), "mine\n");
    assert!(run.stderr.contains("Read-only"), "{}", run.stderr);
    long.wait().succeeded();
    assert_eq!(fs::read(&own).unwrap(), b"mine\n");
}
