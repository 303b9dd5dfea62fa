//! Which files a configuration of `ssh` includes (`Include` in ssh_config(5)). Where a pattern is not read to the
//! letter, more files are found than `ssh` would find, never fewer.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use super::host::Host;

/// The patterns of all includes. Whether `Host` or `Match` lets a line count is not asked: `ssh` opens the files all the
/// same. Relative ones start at `base`.
pub(super) fn included(text: &[u8], base: &Path, home: &Path) -> Vec<PathBuf> {
    let lines = text.split(|&b| b == b'\n');
    let names = lines.filter_map(arguments).flatten();
    names
        .map(|name| match name.strip_prefix(b"~/") {
            Some(rest) => home.join(OsStr::from_bytes(rest)),
            None => base.join(OsStr::from_bytes(&name)),
        })
        .collect()
}

/// The arguments of a line that is an `Include`.
fn arguments(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    const KEYWORD: &[u8] = b"include";
    let line = line.trim_ascii();
    let (keyword, rest) = line.split_at_checked(KEYWORD.len())?;
    if !keyword.eq_ignore_ascii_case(KEYWORD) || !rest.first().is_some_and(|&b| is_space(b) || b == b'=') {
        return None;
    }
    let rest = rest.trim_ascii_start();
    Some(words(rest.strip_prefix(b"=").unwrap_or(rest)))
}

fn is_space(b: u8) -> bool {
    b.is_ascii_whitespace()
}

/// Words, some perhaps in quotes, up to a comment. A backslash takes its meaning from a quote, a space or another
/// backslash, and is itself before anything else.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied().peekable();
    while let Some(b) = bytes.next() {
        match b {
            b'\\' if bytes.peek().is_some_and(|next| matches!(next, b'\\' | b'"' | b'\'' | b' ')) => {
                word.get_or_insert_default().extend(bytes.next());
            }
            b'"' | b'\'' if quote.is_none() => {
                quote = Some(b);
                word.get_or_insert_default();
            }
            b if quote == Some(b) => quote = None,
            b'#' if quote.is_none() && word.is_none() => break,
            b if quote.is_none() && is_space(b) => words.extend(word.take()),
            b => word.get_or_insert_default().push(b),
        }
    }
    words.extend(word);
    words
}

/// The paths that a pattern of glob(7) matches.
pub(super) fn matches(pattern: &Path, host: &Host) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for component in pattern.components() {
        let name = match component {
            Component::Normal(name) => name.as_bytes(),
            Component::ParentDir => b"..",
            _ => continue,
        };
        let mut next = Vec::new();
        for folder in found {
            if !name.iter().any(|b| b"*?[".contains(b)) {
                next.push(folder.join(OsString::from_vec(unescaped(name))));
                continue;
            }
            for entry in host.entries(&folder).into_iter().flatten() {
                if is_match(name, entry.file_name().as_bytes()) {
                    next.push(entry.path());
                }
            }
        }
        found = next;
    }
    found
}

fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = name.iter();
    while let Some(&b) = bytes.next() {
        out.push(if b == b'\\' { bytes.next().copied().unwrap_or(b) } else { b });
    }
    out
}

/// A set in brackets is taken for any character.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    // The last star, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut n) = (0, 0);
    while n < name.len() {
        let (fits, width) = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some(b'?') => (true, 1),
            Some(b'[') => match set(&pattern[p..]) {
                Some(width) => (true, width),
                None => (name[n] == b'[', 1),
            },
            Some(b'\\') if p + 1 < pattern.len() => (pattern[p + 1] == name[n], 2),
            Some(&b) => (b == name[n], 1),
            None => (false, 0),
        };
        if fits {
            (p, n) = (p + width, n + 1);
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            (p, n) = (at + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&b| b == b'*')
}

/// How long a set in brackets is. A bracket right at its beginning is a member.
fn set(pattern: &[u8]) -> Option<usize> {
    let first = if matches!(pattern.get(1), Some(b'!' | b'^')) { 2 } else { 1 };
    let end = pattern.iter().skip(first + 1).position(|&b| b == b']')?;
    Some(first + 1 + end + 1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_syntax_of_includes() {
        let text = b"Host *\n  include a/*.conf /b\t# c\nINCLUDE=\"d e\" 'f' g\\ h\nInclude = ~/i\r\n\
            # Include no\nIncluded no\nSendEnv include\nInclude\ninclude \"\"\nInclude j#k l\\*\n";
        let wanted = ["/s/a/*.conf", "/b", "/s/d e", "/s/f", "/s/g h", "/h/i", "/s/", "/s/j#k", "/s/l\\*"];
        assert_eq!(included(text, Path::new("/s"), Path::new("/h")), wanted.map(PathBuf::from));
    }

    #[test]
    fn patterns() {
        for (pattern, yes, no) in [
            ("*.conf", &["a.conf", ".conf"][..], &["a.confx", "conf"][..]),
            ("a*b*c", &["abc", "axbxbc"], &["ab", "acb"]),
            ("a?[0-9]", &["ab1"], &["a1", "ab12"]),
            ("[]x]a[!b]", &["]ac"], &["]a"]),
            ("[a", &["[a"], &["ba"]),
            ("\\*a*", &["*ab"], &["xab"]),
        ] {
            assert!(yes.iter().all(|name| is_match(pattern.as_bytes(), name.as_bytes())), "{pattern}");
            assert!(!no.iter().any(|name| is_match(pattern.as_bytes(), name.as_bytes())), "{pattern}");
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/1.conf", "b/2.conf", "b/x"] {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), "").unwrap();
        }
        let find = |pattern: &str| {
            let mut found = matches(&folder.path().join(pattern), &Host::new(0, []));
            found.sort();
            found
        };
        assert_eq!(find("*/*.conf"), ["a/1.conf", "b/2.conf"].map(|name| folder.path().join(name)));
        assert_eq!(find("b/\\x"), [folder.path().join("b/x")]);
        assert_eq!(find("none/*"), [""; 0].map(PathBuf::from));
    }
}
