use super::*;

fn parse(method: &str, target: &[u8]) -> Result<(String, String, Option<String>), TargetError> {
    let spelled = Bytes::copy_from_slice(target);
    let shown = match RequestTarget::parse(method, &spelled)? {
        RequestTarget::Origin(resource) => (String::new(), resource),
        RequestTarget::Absolute { scheme, authority, resource } => {
            (format!("{scheme:?} {} {:?}", authority.host, authority.port.map(NonZeroU16::get)), resource)
        }
        RequestTarget::Connect { host, port } => return Ok((format!("{host} {port}"), String::new(), None)),
        RequestTarget::Asterisk => return Ok(("*".into(), String::new(), None)),
    };
    let (who, resource) = shown;
    let query = resource.query().map(String::from);
    assert!(resource.as_str().starts_with(resource.path()));
    Ok((who, resource.as_str().to_owned(), query))
}

/// What goes upstream is what came in, byte for byte.
#[test]
fn origin_form_stays_as_spelled() {
    for (target, path, query) in [
        ("/", "/", None),
        ("/a/../b/./c/..", "/a/../b/./c/..", None),
        ("/%41%2e%2E/%2f%zz", "/%41%2e%2E/%2f%zz", None),
        ("/a//b///c/", "/a//b///c/", None),
        ("/a;v=1/(b)!$&'*+,=:@/~c", "/a;v=1/(b)!$&'*+,=:@/~c", None),
        ("/a|b^c`{d}\"<>[]?x=[1]|\"{}", "/a|b^c`{d}\"<>[]", Some("x=[1]|\"{}")),
        ("/a\\b", "/a\\b", None),
        ("/a/\\b", "/a/\\b", None),
        ("/p?a?b?c=%20&d", "/p", Some("a?b?c=%20&d")),
        ("/p?../../x=1&&&=", "/p", Some("../../x=1&&&=")),
        ("/?//x", "/", Some("//x")),
        ("/p?", "/p", None),
        ("/?", "/", None),
        ("/http://example.com/", "/http://example.com/", None),
        ("/*", "/*", None),
    ] {
        let resource = PathAndQuery::parse(Bytes::from_static(target.as_bytes())).expect(target);
        assert_eq!((resource.as_str(), resource.path(), resource.query()), (target, path, query));
        assert_eq!(
            parse("GET", target.as_bytes()),
            Ok((String::new(), target.into(), query.map(String::from)))
        );
    }
}

#[test]
fn absolute_form() {
    for (target, who, wire, query) in [
        ("http://example.com/", "Http example.com None", "/", None),
        ("http://example.com", "Http example.com None", "/", None),
        ("HTTP://Example.COM.:8080/A?b", "Http example.com Some(8080)", "/A?b", Some("b")),
        ("https://[::1]:443/x/../y", "Https ::1 Some(443)", "/x/../y", None),
        ("http://example.com?x=1/@", "Http example.com None", "/?x=1/@", Some("x=1/@")),
        ("http://example.com?", "Http example.com None", "/?", None),
        ("http://example.com/?", "Http example.com None", "/?", None),
        ("http://example.com/a@b:c//d\\e", "Http example.com None", "/a@b:c//d\\e", None),
        (
            "http://example.com/?u=http://other/",
            "Http example.com None",
            "/?u=http://other/",
            Some("u=http://other/"),
        ),
    ] {
        let want = (who.to_owned(), wire.to_owned(), query.map(String::from));
        assert_eq!(parse("GET", target.as_bytes()), Ok(want), "{target:?}");
    }
}

#[test]
fn connect_and_asterisk() {
    assert_eq!(parse("CONNECT", b"example.com:443"), Ok(("example.com 443".into(), String::new(), None)));
    assert_eq!(parse("CONNECT", b"[::1]:8443"), Ok(("::1 8443".into(), String::new(), None)));
    assert_eq!(parse("OPTIONS", b"*"), Ok(("*".into(), String::new(), None)));
}

#[test]
fn what_no_client_of_the_web_sends() {
    let slashes = Some("the path begins with two slashes");
    let fragment = Some("the request target has a fragment");
    for (spelled, oddity, wire) in [
        ("//evil.example/x", slashes, "//evil.example/x"),
        ("//", slashes, "//"),
        ("/\\evil.example/x", slashes, "/\\evil.example/x"),
        ("/a#b", fragment, "/a"),
        ("/#", fragment, "/"),
        ("/a?b#c?d#e", fragment, "/a?b"),
        ("/#//x", fragment, "/"),
        ("/", None, "/"),
        ("/a//b", None, "/a//b"),
        ("/a%23b", None, "/a%23b"),
    ] {
        let resource = PathAndQuery::parse(Bytes::from_static(spelled.as_bytes())).unwrap();
        assert_eq!((resource.oddity(), resource.as_str()), (oddity, wire), "{spelled}");
    }
    for spelled in ["http://example.com#b", "http://example.com/#b", "http://example.com/a?#"] {
        let Ok(RequestTarget::Absolute { resource, .. }) =
            RequestTarget::parse("GET", &Bytes::from_static(spelled.as_bytes()))
        else {
            panic!("{spelled}")
        };
        assert_eq!(resource.oddity(), fragment, "{spelled}");
    }
}

#[test]
fn refused() {
    use AuthorityError::{Host, Port, UserInfo};
    use TargetError::{Authority, Byte, Form, NoPort, Scheme};
    use srt_shared::domain::HostError::{BadCharacter, BadIpv6, BareIpv6, Empty};

    for (target, why) in [
        (&b"a"[..], Form),
        (b"x/y", Form),
        (b"?x=1", Form),
        (b"**", Form),
        (b"example.com:443", Form),
        (b"", Form),
        (b"#", Form),
        (b"\\\\evil.example/", Form),
        (b"/caf\xe9", Byte),
        (b"/a#\xe9", Byte),
        (b"/caf\xc3\xa9", Byte),
        (b"/a b", Byte),
        (b"/a\tb", Byte),
        (b"/a\x7fb", Byte),
        (b"/a\0b", Byte),
        (b"/a?b\r\nX: y", Byte),
        (b"http://example.com/a b", Byte),
        (b"ftp://example.com/", Scheme),
        (b"ws://example.com/", Scheme),
        (b"file:///etc/passwd", Scheme),
        (b"httpx://example.com/", Scheme),
        (b"ht~tp://example.com/", Form),
        (b"://example.com/", Form),
        (b" http://example.com/", Form),
        (b"http:/example.com/", Form),
        (b"http:example.com", Form),
        (b"http:\\\\example.com\\", Form),
        (b"http:\\\\example.com://x", Form),
        (b"http:///example.com/", Authority(Host(Empty))),
        (b"http://", Authority(Host(Empty))),
        (b"http://?x", Authority(Host(Empty))),
        (b"http://:80/", Authority(Host(Empty))),
        (b"http://user:pw@example.com/", Authority(UserInfo)),
        (b"http://example.com@evil.example/", Authority(UserInfo)),
        (b"http://example.com\\@evil.example/", Authority(UserInfo)),
        (b"http://example.com\\x/", Authority(Host(BadCharacter))),
        (b"http://\xfcp.example:80/", Authority(Host(BadCharacter))),
        (b"http://%75p.example:80/", Authority(Host(BadCharacter))),
        (b"http://[fe80::1%25lo]:80/", Authority(Host(BadIpv6))),
        (b"http://[::1:80/", Authority(Host(BadIpv6))),
        (b"http://example.com:/", Authority(Port)),
        (b"http://example.com:8o/", Authority(Port)),
        (b"http://example.com:65536/", Authority(Port)),
        (b"http://example.com:0/", Authority(Port)),
        (b"http://example.com:080/", Authority(Port)),
    ] {
        assert_eq!(parse("GET", target), Err(why), "{}", target.escape_ascii());
    }
    for (target, why) in [
        (&b"example.com"[..], NoPort),
        (b"example.com:0", Authority(Port)),
        (b"example.com:65536", Authority(Port)),
        (b"example.com:https", Authority(Port)),
        (b"user@example.com:443", Authority(UserInfo)),
        (b":443", Authority(Host(Empty))),
        (b"https://example.com:443", Authority(Host(BareIpv6))),
        (b"example.com:443/x", Authority(Port)),
        (b"::1:443", Authority(Host(BareIpv6))),
        (b"*", Authority(Host(BadCharacter))),
        (b"/", Authority(Host(BadCharacter))),
        (b"example.com,x:443", Authority(Host(BadCharacter))),
    ] {
        assert_eq!(parse("CONNECT", target), Err(why), "CONNECT {}", target.escape_ascii());
    }
}
