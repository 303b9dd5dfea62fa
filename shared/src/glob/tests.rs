use globset::GlobBuilder;
use proptest::prelude::*;

use super::*;

fn matches(pattern: &str, path: &str) -> bool {
    Pattern::parse(pattern).matches(path.as_bytes())
}

/// Behaviour seen in the reference, and what its manual says.
#[test]
fn table() {
    for (pattern, yes, no) in [
        ("*.pem", &["a.pem", ".pem"][..], &["a.txt", "d/a.pem", "a.pem/x"][..]),
        ("d/*", &["d/a", "d/.hid"], &["d", "d/a/b", "e/a"]),
        ("file?.txt", &["file1.txt", "fileé.txt"], &["file.txt", "file/.txt", "file12.txt"]),
        ("[ab].x", &["a.x", "b.x"], &["c.x", ".x"]),
        ("file[0-9].txt", &["file3.txt"], &["filea.txt"]),
        ("[^a].x", &["^.x", "a.x"], &["b.x"]),
        ("[!a].x", &["!.x", "a.x"], &["b.x"]),
        ("[*]", &["*"], &["a"]),
        ("[?]", &["?"], &["a"]),
        ("[a-].x", &["a.x", "-.x"], &["b.x"]),
        ("[-a].x", &["a.x", "-.x"], &["b.x"]),
        ("[user-id]", &["[user-id]"], &["u", "s"]),
        ("backup[2024-01-15]", &["backup[2024-01-15]"], &["backup2"]),
        ("list[].ts", &["list[].ts"], &["list.ts"]),
        ("app/**/[user-id]/*.env", &["app/[user-id]/a.env", "app/x/[user-id]/a.env"], &["app/u/a.env"]),
        ("[b-a*]x", &["[b-a*]x"], &["[b-ax]x"]),
        ("[]*x", &["[]x", "[]ax"], &["ax"]),
        ("[]]x", &["[]]x"], &["]x"]),
        ("a]b[c", &["a]b[c"], &["abc"]),
        ("a[b", &["a[b"], &["ab"]),
        ("d[/]f", &["d/f"], &["df"]),
        ("d[+-9]f", &["d/f", "d5f"], &["daf"]),
        ("{a,b}", &["{a,b}"], &["a", "b"]),
        ("a\\*b", &["a\\b", "a\\xb"], &["a*b", "ab"]),
        ("**/x", &["x", "a/x", "a/b/x"], &["ax", "a/bx", "x/a"]),
        ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb", "a"]),
        ("a/**", &["a/b", "a/b/c"], &["a", "ab"]),
        ("**", &["a", "a/b"], &[]),
        ("**.pem", &["a.pem", "d/a.pem", "d/.pem"], &["a.pemx"]),
        ("a**/x", &["a/x", "ab/x", "a/b/x", "ab/c/x"], &["ax", "b/x"]),
        ("d/**f", &["d/f", "d/e/f", "d/xf"], &["df"]),
        ("***", &["a", "a/b"], &[]),
        ("src/**/*.ts", &["src/a.ts", "src/d/a.ts"], &["src/a.js", "a.ts"]),
        ("**/**/x", &["x", "a/x", "a/b/x"], &["ax", "a/bx", "x/a"]),
        ("**/**/**/x", &["x", "a/x", "a/b/c/x"], &["ax"]),
        ("a/**/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb", "a"]),
        ("**/**/*.key", &["k.key", "a/k.key", "a/b/.key"], &["k.keys"]),
        ("**/**", &["a", "a/b"], &[]),
        ("**/**.key", &["k.key", "a/k.key", "a/b/.key"], &["k.keys"]),
        ("**/a**/**/b", &["a/b", "x/ab/b", "x/a/y/z/b"], &["b", "xa/b", "ab"]),
        ("***/x", &["x", "a/x", "a/b/x"], &["ax"]),
        ("a/***/b", &["a/b", "a/x/b"], &["ab"]),
        ("a***b", &["ab", "axb", "a/b", "a/x/b"], &["a", "b"]),
        ("a**/b", &["a/b", "ax/b", "a/x/b"], &["ab", "b"]),
        ("**a", &["a", "xa", "x/a", "x/ya"], &["ax"]),
        ("**a/b", &["a/b", "xa/b", "x/ya/b"], &["b", "ab"]),
        ("**/*", &["a", "a/b"], &[]),
        ("*/**/x", &["a/x", "a/b/x"], &["x", "ax"]),
        ("**/build/**", &["build/x", "a/build/x/y"], &["build", "a/build"]),
        ("*", &["a", ".a"], &["a/b"]),
        ("a", &["a"], &["b", "aa", "a/a"]),
    ] {
        for path in yes {
            assert!(matches(pattern, path), "{pattern} should match {path}");
        }
        for path in no {
            assert!(!matches(pattern, path), "{pattern} should not match {path}");
        }
    }
}

#[test]
fn names_that_are_not_utf8() {
    for (pattern, want) in
        [("*", true), ("a?", true), ("a??", false), ("**", true), ("a[b]", false), ("a\u{fffd}", false)]
    {
        assert_eq!(Pattern::parse(pattern).matches(b"a\xff"), want, "{pattern}");
    }
}

#[test]
fn a_walk_leaves_out_what_cannot_match() {
    let pattern = Pattern::parse("certs/*.pem");
    let top = pattern.start();
    assert_eq!(pattern.step(&top, b"src"), Step { matches: false, below: None });
    let certs = pattern.step(&top, b"certs").below.unwrap();
    assert_eq!(pattern.step(&certs, b"a.pem"), Step { matches: true, below: None });
    assert_eq!(pattern.step(&certs, b"old"), Step { matches: false, below: None });
}

#[test]
fn contents_are_all_that_lies_beneath() {
    let pattern = Pattern::parse("a/b*").contents();
    for (path, want) in [("a/b/x", true), ("a/bc/x/y", true), ("a/b", false), ("a/x/b", false)] {
        assert_eq!(pattern.matches(path.as_bytes()), want, "{path}");
    }
}

#[test]
fn split_gives_the_directory_to_start_from() {
    for (text, start, example) in [
        ("/w/d/*.pem", "/w/d/", "x.pem"),
        ("/**/x", "/", "a/x"),
        ("*.pem", "", "x.pem"),
        ("/w/[user-id]/*", "/w/[user-id]/", "x"),
        ("/w/d[/]f", "/w/", "d/f"),
        ("/w/a**/x", "/w/", "ab/x"),
    ] {
        let (found, rest) = Pattern::split(text).unwrap();
        assert_eq!(found, start, "{text}");
        assert!(rest.matches(example.as_bytes()), "{text}");
    }
    assert_eq!(Pattern::split("/w/list[].ts"), Err("/w/list[].ts".into()));
    assert_eq!(Pattern::split("/w/a"), Err("/w/a".into()));
}

/// Patterns whose meaning globset shares: no negation, no braces, `**` only as a whole component.
fn shared_pattern() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[abc.]".prop_map(String::from),
        1 => Just("*".into()),
        1 => Just("?".into()),
        1 => Just("[ab]".into()),
        1 => Just("[a-c]".into()),
        1 => Just("[.b-c]".into()),
    ];
    let text = prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat().replace("**", "*"));
    let component = prop_oneof![4 => text, 1 => Just("**".to_string())];
    prop::collection::vec(component, 1..5).prop_map(|components| components.join("/"))
}

/// What the documentation says of a pattern without brackets, tried one character at a time: `here` is whether the
/// pattern is at the start of a component.
fn by_the_book(pattern: &[u8], path: &[u8], here: bool) -> bool {
    let stars = pattern.iter().take_while(|&&c| c == b'*').count();
    let behind = &pattern[stars..];
    if stars >= 2 && here && behind.first() == Some(&b'/') {
        let after_slash = |at: usize| at == 0 || path[at - 1] == b'/';
        return (0..=path.len()).any(|at| after_slash(at) && by_the_book(&behind[1..], &path[at..], true));
    }
    if stars >= 1 {
        let within = |at: usize| stars >= 2 || !path[..at].contains(&b'/');
        return (0..=path.len()).any(|at| within(at) && by_the_book(behind, &path[at..], false));
    }
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((wanted, behind)), Some((found, rest))) => {
            let fits = if *wanted == b'?' { *found != b'/' } else { wanted == found };
            fits && by_the_book(behind, rest, *wanted == b'/')
        }
        _ => false,
    }
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec("[abc.]{1,3}", 1..5).prop_map(|components| components.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn agrees_with_globset(pattern in shared_pattern(), path in path()) {
        let oracle = GlobBuilder::new(&pattern).literal_separator(true).build().unwrap().compile_matcher();
        prop_assert_eq!(matches(&pattern, &path), oracle.is_match(&path), "{} {}", pattern, path);
    }

    /// Whatever stands beside whatever.
    #[test]
    fn agrees_with_the_documentation(
        pattern in prop::collection::vec(prop::sample::select(vec!["*", "**", "***", "**/", "/", "a", "b", "?"]), 1..7),
        path in prop::collection::vec("[ab]{1,2}", 1..5)
    ) {
        let (pattern, path) = (pattern.concat(), path.join("/"));
        let expected = by_the_book(pattern.as_bytes(), path.as_bytes(), true);
        prop_assert_eq!(matches(&pattern, &path), expected, "{} {}", pattern, path);
    }

    /// A text without wildcards matches itself and nothing else.
    #[test]
    fn literal_text_matches_itself(text in "[a-z\\]{}!^\\\\]{1,6}(/[a-z]{1,3}){0,2}", other in path()) {
        prop_assert!(matches(&text, &text));
        prop_assert_eq!(matches(&text, &other), text == other);
    }

    /// Whatever the pattern, splitting it changes nothing.
    #[test]
    fn splitting_keeps_the_meaning(pattern in "[ab*?/\\[\\]-]{1,8}", path in path()) {
        let whole = matches(&pattern, &path);
        let split = match Pattern::split(&pattern) {
            Err(literal) => literal == path,
            Ok((start, rest)) => path.strip_prefix(start.as_str()).is_some_and(|p| rest.matches(p.as_bytes())),
        };
        prop_assert_eq!(whole, split);
    }
}
