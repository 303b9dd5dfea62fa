//! Reads git's configuration, without running git: which file has the user's own excludes, and which other files a
//! repository obeys.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs::OpenOptions,
    io::Read,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
};

use super::host::Host;

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
    host: &Host,
) -> Option<PathBuf> {
    let var = |name: &str| variable(env, name);
    let mut files = Vec::new();
    if var("GIT_CONFIG_NOSYSTEM").is_none() {
        files.push(var("GIT_CONFIG_SYSTEM").map_or_else(|| "/etc/gitconfig".into(), PathBuf::from));
    }
    match var("GIT_CONFIG_GLOBAL") {
        Some(file) => files.push(file.into()),
        None => files.extend([user_folder(env, home).join("config"), home.join(".gitconfig")]),
    }
    files.extend_from_slice(repositories);
    let mut reader = Reader { home, host, found: None };
    for file in &files {
        reader.file(file, 0);
    }
    let handed: usize = var("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok()).unwrap_or(0);
    for i in 0..handed.min(env.len()) {
        let key = var(&format!("GIT_CONFIG_KEY_{i}"));
        if key.is_some_and(|key| key.eq_ignore_ascii_case("core.excludesfile")) {
            reader.found = var(&format!("GIT_CONFIG_VALUE_{i}")).map(|value| expand(value.as_bytes(), home));
        }
    }
    reader.found.or_else(|| Some(user_folder(env, home).join("ignore")))
}

fn variable<'a>(env: &'a BTreeMap<OsString, OsString>, name: &str) -> Option<&'a OsString> {
    env.get(OsStr::new(name)).filter(|value| !value.is_empty())
}

/// Where git looks for more of the user's files than `~/.gitconfig`.
fn user_folder(env: &BTreeMap<OsString, OsString>, home: &Path) -> PathBuf {
    let base = variable(env, "XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
    base.join("git")
}

/// What the configuration of a repository makes git obey besides itself.
#[derive(Debug, Default)]
pub(super) struct Obeyed {
    /// Files it includes, conditionally or not, and what these include.
    pub(super) includes: Vec<PathBuf>,
    /// Folders of hooks (`core.hooksPath`); a relative one starts at the top of the work tree.
    pub(super) hooks: Vec<PathBuf>,
    /// Whether each work tree has a `config.worktree` of its own (`extensions.worktreeConfig`).
    pub(super) per_worktree: bool,
    /// Where its work tree is (`core.worktree`); a relative path starts at the git directory.
    pub(super) work_trees: Vec<PathBuf>,
}

/// What makes git obey in every repository: the user's own files, among the included ones here, and what they name.
pub(super) fn obeyed_everywhere(env: &BTreeMap<OsString, OsString>, home: &Path, host: &Host) -> Obeyed {
    let named = variable(env, "GIT_CONFIG_GLOBAL").map(PathBuf::from);
    // The default ones too: the shell that starts git tomorrow need not have today's variables.
    let mut files = vec![home.join(".gitconfig"), home.join(".config/git/config")];
    for file in [user_folder(env, home).join("config")].into_iter().chain(named) {
        if file.is_absolute() && !files.contains(&file) {
            files.push(file);
        }
    }
    let mut all = Obeyed::default();
    for file in files {
        let Obeyed { includes, hooks, .. } = obeyed(&file, home, host);
        all.hooks.extend(hooks);
        all.includes.extend(includes);
        // Where even the folder above git's is missing, all that programs keep there would have to be refused.
        let stat = |path: &Path| host.heed(path, path.metadata());
        let folder = file.parent().and_then(Path::parent);
        let possible = || folder.is_some_and(|folder| stat(folder).is_ok_and(|found| found.is_dir()));
        if stat(&file).map_or_else(|_| possible(), |found| found.is_file()) {
            all.includes.push(file);
        }
    }
    all
}

/// What a configuration file makes git obey. Whether a condition holds is not asked: it may tomorrow.
pub(super) fn obeyed(config: &Path, home: &Path, host: &Host) -> Obeyed {
    let mut found = Obeyed::default();
    let mut pending = vec![(config.to_path_buf(), 0)];
    while let Some((file, depth)) = pending.pop() {
        for Setting { section, key, value } in settings(&file, host) {
            let include = section == b"include" || section.starts_with(b"includeif");
            match (section.as_slice(), key.as_slice()) {
                (b"core", b"hookspath") => found.hooks.push(expand(&value, home)),
                (b"extensions", b"worktreeconfig") => found.per_worktree = true,
                (b"core", b"worktree") => found.work_trees.push(expand(&value, home)),
                (_, b"path") if include && depth < MAX_INCLUDES => {
                    let included = file.parent().unwrap_or(&file).join(expand(&value, home));
                    if !found.includes.contains(&included) {
                        found.includes.push(included.clone());
                        pending.push((included, depth + 1));
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// Where a `.gitmodules` says that submodules are, relative to its own folder.
pub(super) fn submodules(file: &Path, host: &Host) -> BTreeSet<PathBuf> {
    let paths = settings(file, host).into_iter().filter(|setting| setting.section.starts_with(b"submodule"));
    paths
        .filter(|setting| setting.key == b"path")
        .map(|setting| OsString::from_vec(setting.value).into())
        .collect()
}

struct Reader<'a> {
    home: &'a Path,
    host: &'a Host,
    found: Option<PathBuf>,
}

impl Reader<'_> {
    fn file(&mut self, file: &Path, depth: usize) {
        for Setting { section, key, value } in settings(file, self.host) {
            match (section.as_slice(), key.as_slice()) {
                (b"core", b"excludesfile") => self.found = Some(expand(&value, self.home)),
                (b"include", b"path") if depth < MAX_INCLUDES => {
                    let included = expand(&value, self.home);
                    self.file(&file.parent().unwrap_or(file).join(included), depth + 1);
                }
                _ => {}
            }
        }
    }
}

/// One line of a configuration file that sets something; names in lower case.
struct Setting {
    section: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
}

fn settings(file: &Path, host: &Host) -> Vec<Setting> {
    let Some(text) = read_small(file, MAX_CONFIG, host) else { return Vec::new() };
    let mut section = Vec::new();
    let mut found = Vec::new();
    for line in logical_lines(&text) {
        let mut line = line.trim_ascii();
        if let Some(header) = line.strip_prefix(b"[") {
            let end = header.iter().position(|&b| b == b']').unwrap_or(header.len());
            section = header[..end].to_ascii_lowercase();
            // A value may follow on the same line.
            line = header.get(end + 1..).unwrap_or_default().trim_ascii();
        }
        let Some(equals) = line.iter().position(|&b| b == b'=') else { continue };
        let key = line[..equals].trim_ascii().to_ascii_lowercase();
        found.push(Setting { section: section.clone(), key, value: value(&line[equals + 1..]) });
    }
    found
}

/// The whole of a regular file that is at most so long. A fifo that a command puts in its place meanwhile neither
/// holds us up nor is read.
pub(super) fn read_small(file: &Path, most: u64, host: &Host) -> Option<Vec<u8>> {
    let read = || {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(file)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > most {
            return Ok(None);
        }
        let mut text = Vec::new();
        file.take(most).read_to_end(&mut text)?;
        Ok(Some(text))
    };
    host.heed(file, read()).ok().flatten()
}

fn expand(value: &[u8], home: &Path) -> PathBuf {
    match value.strip_prefix(b"~/") {
        Some(rest) => home.join(OsStr::from_bytes(rest)),
        None => OsStr::from_bytes(value).into(),
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
    use std::fs;

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
        let found =
            excludes_file(&env, home.path(), &[home.path().join("repo/.git/config")], &host()).unwrap();
        found.strip_prefix(home.path()).unwrap_or(&found).to_str().unwrap().into()
    }

    fn host() -> Host {
        Host::new(0, [])
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

    #[test]
    fn what_a_repository_obeys() {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("config");
        let text =
            "[include] path = more\n[includeIf \"onbranch:x\"]\npath = ~/cond\n[core]\nhooksPath = .hooks\n";
        fs::write(&config, text).unwrap();
        fs::write(home.path().join("more"), "[include]\npath=config\n[Extensions]\nworktreeConfig = true\n")
            .unwrap();
        let mut found = obeyed(&config, home.path(), &host());
        found.includes.sort();
        assert_eq!(found.includes, ["cond", "config", "more"].map(|name| home.path().join(name)));
        assert_eq!(found.hooks[0], Path::new(".hooks"));
        assert!(found.per_worktree);
        assert!(!obeyed(&home.path().join("cond"), home.path(), &host()).per_worktree);
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read_small(&fifo, 10, &host()), None);
        fs::write(folder.path().join("long"), "12345678901").unwrap();
        assert_eq!(read_small(&folder.path().join("long"), 10, &host()), None);
    }
}
