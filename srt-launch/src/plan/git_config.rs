//! Reads one value out of git's configuration, without running git: which file has the user's own excludes.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// As git itself (`MAX_INCLUDE_DEPTH`).
const MAX_INCLUDES: usize = 10;
/// More than any configuration of a person.
const MAX_CONFIG: u64 = 1 << 20;

/// Where `core.excludesFile` leads: the last of system, user, repository and environment that says so, else git's
/// default (git-config(1)). Conditional includes are not followed.
pub(super) fn excludes_file(
    env: &BTreeMap<OsString, OsString>,
    home: &Path,
    repositories: &[PathBuf],
) -> Option<PathBuf> {
    let var = |name: &str| env.get(OsStr::new(name)).filter(|value| !value.is_empty());
    let xdg = var("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from).join("git");
    let mut files = Vec::new();
    if var("GIT_CONFIG_NOSYSTEM").is_none() {
        files.push(var("GIT_CONFIG_SYSTEM").map_or_else(|| "/etc/gitconfig".into(), PathBuf::from));
    }
    match var("GIT_CONFIG_GLOBAL") {
        Some(file) => files.push(file.into()),
        None => files.extend([xdg.join("config"), home.join(".gitconfig")]),
    }
    files.extend_from_slice(repositories);
    let mut reader = Reader { home, found: None };
    for file in &files {
        reader.file(file, 0);
    }
    let handed: usize = var("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok()).unwrap_or(0);
    for i in 0..handed.min(env.len()) {
        let key = var(&format!("GIT_CONFIG_KEY_{i}"));
        if key.is_some_and(|key| key.eq_ignore_ascii_case("core.excludesfile")) {
            reader.found = var(&format!("GIT_CONFIG_VALUE_{i}")).map(|value| reader.expand(value.as_bytes()));
        }
    }
    reader.found.or_else(|| Some(xdg.join("ignore")))
}

struct Reader<'a> {
    home: &'a Path,
    found: Option<PathBuf>,
}

impl Reader<'_> {
    fn file(&mut self, file: &Path, depth: usize) {
        let usable =
            fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_CONFIG);
        let Some(text) = usable.then(|| fs::read(file).ok()).flatten() else { return };
        let mut section = Vec::new();
        for line in logical_lines(&text) {
            let line = line.trim_ascii();
            if let Some(header) = line.strip_prefix(b"[") {
                section = header.split(|&b| b == b']').next().unwrap_or_default().to_ascii_lowercase();
                continue;
            }
            let Some(equals) = line.iter().position(|&b| b == b'=') else { continue };
            let key = line[..equals].trim_ascii().to_ascii_lowercase();
            let value = value(&line[equals + 1..]);
            match (section.as_slice(), key.as_slice()) {
                (b"core", b"excludesfile") => self.found = Some(self.expand(&value)),
                (b"include", b"path") if depth < MAX_INCLUDES => {
                    let included = self.expand(&value);
                    self.file(&file.parent().unwrap_or(file).join(included), depth + 1);
                }
                _ => {}
            }
        }
    }

    fn expand(&self, value: &[u8]) -> PathBuf {
        match value.strip_prefix(b"~/") {
            Some(rest) => self.home.join(OsStr::from_bytes(rest)),
            None => OsStr::from_bytes(value).into(),
        }
    }
}

/// Lines, a backslash at the end joining the next one.
fn logical_lines(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut joined = false;
    for line in text.split(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (line, goes_on) = match line.strip_suffix(b"\\") {
            Some(line) => (line, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| joined) {
            Some(last) => last.extend_from_slice(line),
            None => lines.push(line.to_vec()),
        }
        joined = goes_on;
    }
    lines
}

/// A value without its comment, quotes and escapes.
fn value(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut quoted = false;
    let mut bytes = text.trim_ascii().iter();
    let mut plain_end = 0;
    while let Some(&b) = bytes.next() {
        match b {
            b'"' => quoted = !quoted,
            b'\\' => out.extend(bytes.next().map(|b| match b {
                b'n' => b'\n',
                b't' => b'\t',
                other => *other,
            })),
            b'#' | b';' if !quoted => break,
            b => out.push(b),
        }
        if quoted || !b.is_ascii_whitespace() {
            plain_end = out.len();
        }
    }
    out.truncate(plain_end);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excludes(files: &[(&str, &str)], env: &[(&str, &str)]) -> String {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut env: BTreeMap<OsString, OsString> = env.iter().map(|(k, v)| (k.into(), v.into())).collect();
        env.insert("GIT_CONFIG_NOSYSTEM".into(), "1".into());
        let found = excludes_file(&env, home.path(), &[home.path().join("repo/.git/config")]).unwrap();
        found.strip_prefix(home.path()).unwrap_or(&found).to_str().unwrap().into()
    }

    #[test]
    fn the_last_word_counts() {
        let user = (".gitconfig", "[core]\n\texcludesFile = ~/mine\n");
        assert_eq!(excludes(&[], &[]), ".config/git/ignore");
        assert_eq!(excludes(&[], &[("XDG_CONFIG_HOME", "/x")]), "/x/git/ignore");
        assert_eq!(excludes(&[(".config/git/config", "[core]\nexcludesfile=/a\n")], &[]), "/a");
        assert_eq!(excludes(&[user, (".config/git/config", "[core]\nexcludesfile=/a\n")], &[]), "mine");
        assert_eq!(excludes(&[user, ("repo/.git/config", "[core]\nexcludesfile=/r\n")], &[]), "/r");
        assert_eq!(excludes(&[user], &[("GIT_CONFIG_GLOBAL", "/dev/null")]), ".config/git/ignore");
        let handed = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.excludesFile"),
            ("GIT_CONFIG_VALUE_0", "/e"),
        ];
        assert_eq!(excludes(&[user], &handed), "/e");
    }

    #[test]
    fn the_syntax_of_git() {
        for (text, wanted) in [
            ("[CORE]\n  ExcludesFile=/a # why\n", "/a"),
            ("[core]\nexcludesfile = \"/a # b\" ; c\n", "/a # b"),
            ("[core]\nexcludesfile = /a\\\nb\n", "/ab"),
            ("[core]\nexcludesfile = /a\\\\b\n", "/a\\b"),
            ("[other]\nexcludesfile = /a\n", ".config/git/ignore"),
            ("[core \"x\"]\nexcludesfile = /a\n", ".config/git/ignore"),
            ("[include]\npath = more\n", "/more"),
            ("[include]\npath = .gitconfig\n", ".config/git/ignore"),
        ] {
            assert_eq!(
                excludes(&[(".gitconfig", text), ("more", "[core]\nexcludesfile=/more")], &[]),
                wanted,
                "{text}"
            );
        }
    }
}
