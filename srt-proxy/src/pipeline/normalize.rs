//! Paths that upstreams read differently: `/public/../admin` is `/admin` to one that resolves it and lies under
//! `/public/` to one that does not, so a decider that judged one reading can be got around through the other.

use srt_shared::settings::AmbiguousTarget;

use super::refuse::Refusal;
use crate::http::PathAndQuery;

/// What is forwarded instead of an ambiguous path; `None` to forward it as spelled.
pub fn judge(resource: &PathAndQuery, mode: AmbiguousTarget) -> Result<Option<PathAndQuery>, Refusal> {
    if mode == AmbiguousTarget::AsSpelled {
        return Ok(None);
    }
    let spelled = resource.path();
    let normal = normalize(spelled);
    if normal == spelled {
        return Ok(None);
    }
    if mode == AmbiguousTarget::Refuse {
        return Err(Refusal::AmbiguousTarget);
    }
    let rest = &resource.as_str()[spelled.len()..];
    let whole = bytes::Bytes::from(format!("{normal}{rest}"));
    PathAndQuery::parse(whole).map(Some).map_err(|e| Refusal::bad_request(e.to_string()))
}

/// Dot segments and `%2e` resolved, `\\` read as `/`, a run of leading slashes collapsed to one. Empty segments further
/// on, `%2F` and `;` parameters stay: they name what they name.
fn normalize(path: &str) -> String {
    let slashed = path.replace('\\', "/");
    let mut segments: Vec<&str> = Vec::new();
    let mut rest = slashed.split('/').peekable();
    while let Some(segment) = rest.next() {
        let last = rest.peek().is_none();
        match segment.to_ascii_lowercase().replace("%2e", ".").as_str() {
            "." if last => segments.push(""),
            "." => {}
            ".." => {
                segments.pop();
                if last {
                    segments.push("");
                }
            }
            // One of a run of leading slashes, also where a dot segment has made it that.
            "" if segments.is_empty() => {}
            _ => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ambiguous_and_what_is_not() {
        for (path, normal) in [
            ("/a/../b", "/b"),
            ("/a/./b", "/a/b"),
            ("/a/%2e%2E/b", "/b"),
            ("/a/.%2e", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/../../x", "/x"),
            ("/a\\b", "/a/b"),
            ("/a\\..\\b", "/b"),
            ("//a//b", "/a//b"),
            ("///", "/"),
            ("/\\a", "/a"),
            ("/a/..//b", "/b"),
        ] {
            assert_eq!(normalize(path), normal, "{path}");
        }
        for same in ["/", "/a//b", "/a%2Fb", "/a;v=1/..b", "/a/...", "/.git", "/a/b/", "/{x}\"'"] {
            assert_eq!(normalize(same), same, "{same}");
        }
    }

    #[test]
    fn each_mode_does_what_it_says_and_the_query_stays() {
        let spelled = PathAndQuery::parse("/a/../b?x=/../y".into()).unwrap();
        let plain = PathAndQuery::parse("/a?x=/../y".into()).unwrap();
        assert_eq!(judge(&spelled, AmbiguousTarget::Refuse), Err(Refusal::AmbiguousTarget));
        assert_eq!(judge(&spelled, AmbiguousTarget::AsSpelled), Ok(None));
        let normal = judge(&spelled, AmbiguousTarget::Normalize).unwrap().unwrap();
        assert_eq!(normal.as_str(), "/b?x=/../y");
        for mode in [AmbiguousTarget::Refuse, AmbiguousTarget::AsSpelled, AmbiguousTarget::Normalize] {
            assert_eq!(judge(&plain, mode), Ok(None));
        }
    }
}
