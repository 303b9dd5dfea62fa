use proptest::prelude::*;

use super::*;

fn matches(pattern: &str, path: &str, reach: Reach) -> bool {
    PathPattern::parse(pattern).unwrap().matches(path, reach)
}

#[test]
fn narrow_takes_the_usual_spelling_only() {
    for (pattern, yes, no) in [
        ("/", &["/"][..], &["", "//", "/a", "*", "/.", "/%2f"][..]),
        (
            "/a",
            &["/a"],
            &["/a/", "/A", "/a/b", "//a", "/./a", "/b/../a", "/%61", "/a;x", "/a?", "a", "/a%00"],
        ),
        ("/a/", &["/a/"], &["/a", "/a//"]),
        (
            "/*",
            &["/a", "/a.b", "/~a", "/a%20b", "/a%40b", "/caf%c3%a9", "/@a", "/a+b", "/..."],
            &[
                "/",
                "/.",
                "/..",
                "/a/",
                "/a/b",
                "/%2e%2e",
                "/.%2e",
                "/a%2fb",
                "/a%2Fb",
                "/a%5cb",
                "/a\\b",
                "/a;b",
                "/a%3bb",
                "/a%252fb",
                "/a%3fb",
                "/a%23b",
                "/%61",
                "/%7e",
                "/a%",
                "/a%4",
                "/a%zz",
                "/a b",
                "/a\"b",
                "/a<b",
                "/a%0ab",
                "/a%7fb",
                "/%c0%ae%c0%ae",
                "/%c2%85",
                "/caf\u{e9}",
                "/a|b",
                "/a^b",
                "/a`b",
                "/a{b}",
                "/a[b]",
            ],
        ),
        (
            "/a/**",
            &["/a", "/a/", "/a/b", "/a/b/c", "/a/b/"],
            &[
                "/ab",
                "/b/a",
                "/a//b",
                "/a/../b",
                "/a/b/..",
                "/a/.",
                "/a/b/%2e%2e/c",
                "/a/b/..;/c",
                "/a/..;x",
                "/a;/b",
                "/a/b%2f..%2fc",
            ],
        ),
        ("/**/z", &["/z", "/a/z", "/a/b/z"], &["/", "/az", "/a/z/", "/a;b/z"]),
        ("/**", &["/", "/a", "/a/b/"], &["", "*", "//", "/a//", "/.."]),
        ("/a/**/b/**/c", &["/a/b/c", "/a/x/b/y/b/c"], &["/a/c", "/a/b/x", "/a/c/b"]),
        ("/v*-x", &["/v-x", "/v1-x", "/v1-x-x"], &["/v1", "/v;-x", "/v%2f-x", "/v1-X"]),
        (
            "/@*%2f*",
            &["/@types%2fnode", "/@types%2Fnode"],
            &[
                "/@types/node",
                "/@types%2f..",
                "/@types%2f.",
                "/@types%2f",
                "/@types%2f%2e%2e",
                "/@types%2f..%2fx",
                "/@types%5cnode",
                "/@types%252fnode",
                "/@types%2fa%2fb",
                "/@%2f..",
            ],
        ),
        ("/a;v=1/*", &["/a;v=1/b"], &["/a/b", "/a;v=2/b", "/a;v=1;w/b"]),
    ] {
        for path in yes {
            assert!(matches(pattern, path, Reach::Narrow), "{pattern} should match {path}");
            assert!(matches(pattern, path, Reach::Wide), "{pattern} should match {path} widely");
        }
        for path in no {
            assert!(!matches(pattern, path, Reach::Narrow), "{pattern} should not match {path}");
        }
    }
}

#[test]
fn wide_takes_every_spelling_of_the_same() {
    for path in [
        "/admin/x",
        "/ADMIN/x",
        "//admin//x",
        "/./admin/x",
        "/a/../admin/x",
        "/%61dmin/x",
        "/%2561dmin/x",
        "/admin;v=1/x",
        "/admin%2fx",
        "/admin\\x",
        "/admin/x/",
        "/admin%3bv/x",
        "/a%2f..%2fadmin/x",
    ] {
        assert!(matches("/admin/*", path, Reach::Wide), "{path}");
    }
    for path in ["/administrator/x", "/admin", "/b/admin/x"] {
        assert!(!matches("/admin/*", path, Reach::Wide), "{path}");
    }
    assert!(matches("/@types%2fnode", "/@types/node", Reach::Wide));
}

#[test]
fn says_what_is_unusual() {
    for (path, unusual) in [
        ("*", Unusual::NoSlash),
        ("/a//b", Unusual::EmptyComponent),
        ("/;a", Unusual::EmptyComponent),
        ("/a/../b", Unusual::DotComponent),
        ("/a/..;/b", Unusual::DotComponent),
        ("/a/%2e%2e/b", Unusual::DotComponent),
        ("/a\\b", Unusual::Character),
        ("/a%zz", Unusual::Character),
        ("/a%00", Unusual::Character),
        ("/%61", Unusual::NeedlessEscape),
        ("/a%2Fb", Unusual::SplittingEscape),
        ("/a%252e", Unusual::SplittingEscape),
        ("/a;b", Unusual::Parameters),
    ] {
        assert_eq!(check_spelling(path), Err(unusual), "{path}");
    }
    assert_eq!(check_spelling("/a/b%20c/@d/"), Ok(()));
}

#[test]
fn refuses_patterns_that_cannot_mean_what_they_say() {
    for (pattern, error) in [
        ("a", PathPatternError::NoSlash),
        ("", PathPatternError::NoSlash),
        ("/a?b", PathPatternError::Query),
        ("/a**", PathPatternError::StarStar),
        ("/a//b", PathPatternError::Unusual(Unusual::EmptyComponent)),
        ("/a/../b", PathPatternError::Unusual(Unusual::DotComponent)),
        ("/a b", PathPatternError::Unusual(Unusual::Character)),
        ("/a%", PathPatternError::Unusual(Unusual::Character)),
        ("/\u{e9}", PathPatternError::Unusual(Unusual::Character)),
        ("/%61", PathPatternError::NeedlessEscape('a', b'a')),
    ] {
        assert_eq!(PathPattern::parse(pattern), Err(error), "{pattern}");
    }
}

proptest! {
    #[test]
    fn decoding_in_one_pass_is_decoding_again_and_again(path in "[%0-9a-f/]{0,30}") {
        let mut again = path.clone().into_bytes();
        while let next = units::decode_once(&again) && next != again {
            again = next;
        }
        prop_assert_eq!(decode_fully(path.as_bytes()), again);
    }

    /// Whatever an allow rule can match, a deny rule of the same pattern matches.
    #[test]
    fn wide_is_never_less_than_narrow(pattern in "(/(\\*\\*|[a.*]{1,3}|a%2fb)){1,4}/?", path in "(/([a.;%25]{0,3}|a%2fb)){1,5}/?") {
        if let Ok(pattern) = PathPattern::parse(&pattern) {
            prop_assert!(!pattern.matches(&path, Reach::Narrow) || pattern.matches(&path, Reach::Wide));
        }
    }

    /// What `/**` lets through has the same components for a server that decodes, climbs and cuts parameters.
    #[test]
    fn what_a_wildcard_takes_survives_normalising(path in "/[a/.;%25efcE\\\\0]{0,12}") {
        if matches("/**", &path, Reach::Narrow) {
            let decoded = decode_fully(path.as_bytes());
            let kept = wide_segments(&decoded).len();
            prop_assert_eq!(kept, path.split('/').filter(|part| !part.is_empty()).count());
        }
    }
}
