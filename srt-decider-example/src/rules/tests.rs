use std::path::Path;

use super::*;
use crate::{check::explain, request::parse_request};

fn parse(text: &str) -> Result<Rules, RulesError> {
    Rules::parse(text, Path::new("dir/rules.toml"))
}

fn rule(keys: &str) -> String {
    format!("[[rule]]\nname = \"a\"\n{keys}\n")
}

#[test]
fn errors_name_file_and_line_and_what_was_meant() {
    for (text, error) in [
        ("x", "dir/rules.toml:1: not TOML: key with no value, expected `=`"),
        ("\n\nmax_boddy = 3", "dir/rules.toml:3: unknown key `max_boddy`; did you mean `max_body`?"),
        ("max_body = 0", "dir/rules.toml:1: `max_body`: expected 1 to 33554432 bytes"),
        ("max_body = 33554433", "dir/rules.toml:1: `max_body`: expected 1 to 33554432 bytes"),
        (
            "rule = 3",
            "dir/rules.toml:1: `rule` is an integer, expected a list of tables: write [[rule]] above each",
        ),
        ("denied_hosts = [\"A.test\"]", "dir/rules.toml:1: `denied_hosts`: \"A.test\": must be lower case"),
        ("[otherwise]\nstatus = 200", "dir/rules.toml:2: `deny`: the status is not from 400 to 599"),
        (
            "[[rule]]\naction = \"deny\"",
            "dir/rules.toml:1: a rule needs a name: the log and --check call it by that",
        ),
        (&rule(""), "dir/rules.toml:1: a rule needs an action: \"allow\", \"deny\" or \"need_body\""),
        (&rule("action = \"alow\""), "dir/rules.toml:3: unknown action `alow`; did you mean `allow`?"),
        (&rule("action = 1"), "dir/rules.toml:3: `action` is an integer, expected a string"),
        (&rule("metod = \"GET\""), "dir/rules.toml:3: unknown key `metod`; did you mean `method`?"),
        (&rule("action = \"allow\""), "dir/rules.toml:1: an allow rule needs a host"),
        (
            &rule("action = \"allow\"\nhost = \"a.test\"\nstatus = 403"),
            "dir/rules.toml:5: `status` has no meaning with action = \"allow\"",
        ),
        (
            &rule("action = \"deny\"\nset = { a = \"b\" }"),
            "dir/rules.toml:4: `set` has no meaning with action = \"deny\"",
        ),
        (
            &rule("action = \"need_body\"\nmax = 10\njson = { a = 1 }"),
            "dir/rules.toml:5: `json` has no meaning with action = \"need_body\"",
        ),
        (
            &rule("action = \"need_body\""),
            "dir/rules.toml:1: need_body needs max, the number of bytes to look at",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), error, "{text}");
    }
}

#[test]
fn values_that_cannot_mean_what_they_say_are_refused() {
    for (keys, error) in [
        ("host = []", "`host`: the list is empty"),
        ("host = \"*\"", "`host`: "),
        ("host = \"*.test\"", "`host`: \"*.test\": a wildcard needs at least two labels"),
        ("host = \"a.test:443\"", "`host`: \"a.test:443\": write the port under its own key: port"),
        ("host = \"https://a.test\"", "`host`: \"https://a.test\": expected a host name"),
        ("port = 0", "`port`: expected a port from 1 to 65535"),
        ("port = 65536", "`port`: expected a port from 1 to 65535"),
        ("port = \"443\"", "`port` is a string, expected an integer"),
        ("method = \"get\"", "`method`: methods are compared as spelled: write \"GET\""),
        ("method = \"G T\"", "`method`: \"G T\" is no method"),
        ("method = [1]", "`method` is an integer, expected a string, or a list of strings"),
        ("path = \"a\"", "`path`: a path pattern starts with `/`"),
        ("path = \"/a?b\"", "`path`: `?` begins the query"),
        ("path = \"/a/../b\"", "`path`: the path has a dot component; such a path never matches"),
        ("query = \"a\"", "`query` is a string, expected a table"),
        ("query = { a = false }", "`query.a`: to keep parameters out write query_only = true"),
        ("headers = { \"a b\" = true }", "`headers.a b`: \"a b\" is not a header name"),
        ("headers = { Host = \"a\" }", "`headers.Host`: the target is under host"),
        ("json = { \"a..b\" = 1 }", "`json.a..b`: write the keys with one dot"),
        ("json = { a = 1.5 }", "`json.a` is a float"),
        ("json = { a = { mx = 1 } }", "unknown key `mx`; did you mean `max`?"),
        ("json = { a = { min = 2, max = 1 } }", "`json.a`: min is above max"),
        ("json = { a = { max = 1, present = true } }", "`json.a`: present goes without"),
        ("json = { a = {} }", "`json.a`: write min, max or present"),
        ("graphql = {}", "`graphql`: operations is missing"),
        ("graphql = { operations = \"read\" }", "`graphql.operations`: \"read\" is not query"),
        ("set = { Host = \"a\" }", "host says how the message is framed"),
        ("set = { Authorization = \"a\" }", "authorization carries a credential"),
        ("set = { a = \"\u{20ac}\" }", "a character that HTTP headers cannot carry"),
        ("set = { a = \"\\u0001\" }", "a control character"),
        ("remove = [\"connection\"]", "connection says how the message is framed"),
        ("credential = \"x\"", "`credential` is a string, expected a table"),
        ("credential = { class = \"a\" }", "`credential`: write { class = \"github\", env ="),
        ("credential = { class = \"a\", env = \"b\", file = \"c\" }", "`credential`: write { class"),
        ("credential = { class = \"a\", envv = \"b\" }", "unknown key `envv`; did you mean `env`?"),
        (
            "host = \"*.a.test\"\ncredential = { class = \"a\", env = \"b\" }",
            "goes to hosts that are named one by one",
        ),
    ] {
        let host = if keys.starts_with("host") { "" } else { "host = \"a.test\"\n" };
        let text = rule(&format!("action = \"allow\"\n{host}{keys}"));
        let found = parse(&text).unwrap_err();
        assert!(found.to_string().contains(error), "{keys}: {found}");
        assert!(found.line() > 3, "{keys}: {found}");
    }
}

#[test]
fn two_rules_have_two_names() {
    let text = format!("{0}{0}", rule("action = \"deny\""));
    let error = parse(&text).unwrap_err().to_string();
    assert_eq!(error, "dir/rules.toml:4: `name`: the rule of line 1 is called so too");
}

#[test]
fn the_hello_has_every_host_with_its_ports() {
    let rules = parse(
        r#"
        denied_hosts = ["bad.a.test"]
        [[rule]]
        name = "1"
        host = ["a.test", "*.a.test", "::1"]
        port = [443, 8443]
        action = "allow"
        [[rule]]
        name = "2"
        host = "a.test"
        action = "allow"
        [[rule]]
        name = "3"
        host = "b.test"
        action = "deny"
        "#,
    )
    .unwrap();
    let entries: Vec<_> = rules.hello().allowed().iter().map(|entry| entry.as_str()).collect();
    assert_eq!(
        entries,
        ["a.test:443", "a.test:8443", "*.a.test:443", "*.a.test:8443", "[::1]:443", "[::1]:8443", "b.test"]
    );
    assert_eq!(rules.hello().denied()[0].as_str(), "bad.a.test");
}

#[test]
fn the_first_rule_that_applies_decides() {
    let rules = parse(
        r#"
        [otherwise]
        status = 451
        reason = "not here"
        [[rule]]
        name = "secret"
        path = "/secret/**"
        action = "deny"
        status = 404
        [[rule]]
        name = "read"
        host = "a.test"
        method = "GET"
        action = "allow"
        [[rule]]
        name = "never reached"
        path = "/x"
        action = "deny"
        "#,
    )
    .unwrap();
    for (request, last) in [
        ("GET https://a.test/x", "read: ALLOW"),
        ("GET https://a.test/secret/x", "secret: DENY 404 denied by a rule"),
        ("GET https://a.test/SECRET/x", "secret: DENY 404 denied by a rule"),
        ("GET https://a.test/secret;v/x", "secret: DENY 404 denied by a rule"),
        ("GET https://a.test/x/../secret", "secret: DENY 404 denied by a rule"),
        ("POST https://a.test/y", "otherwise: DENY 451 not here"),
        ("GET https://a.test/x/../y", "otherwise: DENY 451 not here (the path has a dot component)"),
        (
            "GET https://a.test:8443/x",
            "otherwise: DENY 403 no rule names this host, or it is among denied_hosts",
        ),
        ("GET https://b.test/x", "otherwise: DENY 403 no rule names this host, or it is among denied_hosts"),
    ] {
        let report = explain(&rules, &parse_request(request, &[]).unwrap(), None);
        assert!(report.text.trim_end().ends_with(last), "{request}: {}", report.text);
    }
}

#[test]
fn a_body_is_asked_for_once_and_only_where_it_matters() {
    let rules = parse(
        r#"
        max_body = 100
        [[rule]]
        name = "uploads"
        method = "PUT"
        action = "need_body"
        max = 5
        [[rule]]
        name = "put"
        host = "a.test"
        method = "PUT"
        json = { a = 1 }
        action = "allow"
        [[rule]]
        name = "post"
        host = "a.test"
        method = "POST"
        json = { a = 1 }
        action = "allow"
        [[rule]]
        name = "get"
        host = "a.test"
        method = "GET"
        action = "allow"
        "#,
    )
    .unwrap();
    let explain = |request: &str, body: &str| {
        let headers = ["Content-Type: application/json".to_owned()];
        explain(&rules, &parse_request(request, &headers).unwrap(), Some(body.as_bytes())).text
    };
    assert!(!explain("GET https://a.test/", "").contains("looks at"));
    assert!(explain("POST https://a.test/", r#"{"a":1}"#).contains("post: looks at up to 100 bytes"));
    assert!(explain("POST https://a.test/", r#"{"a":1}"#).contains("post: ALLOW"));
    let cut = explain("PUT https://a.test/", r#"{"a":1}"#);
    assert!(cut.contains("uploads: looks at up to 5 bytes"), "{cut}");
    assert!(cut.contains("put: no: the body is longer than the 5 bytes"), "{cut}");
}
