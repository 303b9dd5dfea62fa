use std::{
    ffi::OsString,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use srt_shared::{
    glob::{Pattern, has_glob_characters},
    settings::PathEntry,
};

use super::host::Host;

/// What one entry of a path list stands for. An entry with `*`, `?`, `[` or `]` may be two things at once: a
/// pattern, and the name of something that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Readings {
    /// Paths, absolute, not resolved.
    pub(super) paths: Vec<PathBuf>,
    /// Patterns.
    pub(super) patterns: Vec<Anchored>,
    /// Whether it has a pattern that no directory starts, as `/**/*.pem`.
    pub(super) unanchored: bool,
}

/// A pattern beneath a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchored {
    /// The directory, absolute, not resolved.
    pub(super) start: PathBuf,
    /// The pattern beneath it.
    pub(super) pattern: Pattern,
    /// Whether the entry went on with `/**`: what matches is a directory, and everything in it is meant.
    pub(super) contents: bool,
}

/// Where relative entries and `~` start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bases<'a> {
    pub(super) home: &'a Path,
    pub(super) cwd: &'a Path,
}

/// A deny covers every reading it may have, an allow only what is plainly there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Deny,
    Allow,
}

impl Readings {
    /// Reads an entry. The file system is asked only about names with pattern characters.
    pub(super) fn of(entry: &PathEntry, bases: Bases<'_>, effect: Effect, host: &Host) -> Self {
        let (base, text) = split_base(&entry.path, bases);
        if entry.literal {
            return Self::path(super::host::absolute(base, Path::new(text)));
        }
        let mut parts = parts(base, text);
        let mut contents = false;
        // `src/**` is `src` and all in it; without a slash, `**` is a pattern like another.
        while entry.path.contains('/') && parts.last().is_some_and(|part| part.written && part.name == "**") {
            parts.pop();
            contents = true;
        }
        let mut readings = Self { paths: Vec::new(), patterns: Vec::new(), unanchored: false };
        let Some(first) = parts.iter().position(Part::may_be_pattern) else {
            return Self::path(join(&parts));
        };
        readings.add_pattern(&parts, first, contents);
        // Each name with pattern characters that is there opens a reading in which it is only a name.
        for (at, _) in parts.iter().enumerate().filter(|(_, part)| part.may_be_pattern()) {
            if !is_there(&parts, first, at, effect, host) {
                break;
            }
            match parts[at + 1..].iter().position(Part::may_be_pattern) {
                Some(next) => readings.add_pattern(&parts, at + 1 + next, contents),
                None if effect == Effect::Deny || is_there(&parts, first, parts.len() - 1, effect, host) => {
                    readings.paths.push(join(&parts));
                }
                None => {}
            }
        }
        readings.paths.sort();
        readings.paths.dedup();
        readings
    }

    fn path(path: PathBuf) -> Self {
        Self { paths: vec![path], patterns: Vec::new(), unanchored: false }
    }

    /// Adds the reading in which everything from `first` on is a pattern.
    fn add_pattern(&mut self, parts: &[Part], first: usize, contents: bool) {
        let prefix = join(&parts[..first]);
        let text: Vec<&str> = parts[first..].iter().filter_map(|part| part.name.to_str()).collect();
        match Pattern::split(&text.join("/")) {
            Err(name) => self.paths.push(prefix.join(name)),
            Ok((start, pattern)) => {
                let start = super::host::absolute(&prefix, Path::new(&start));
                if start == Path::new("/") {
                    self.unanchored = true;
                } else {
                    self.patterns.push(Anchored { start, pattern, contents });
                }
            }
        }
    }
}

/// One component of an entry.
#[derive(Debug)]
struct Part {
    name: OsString,
    /// Part of the entry's own text, not of the directory it starts from.
    written: bool,
}

impl Part {
    fn may_be_pattern(&self) -> bool {
        self.written && self.name.to_str().is_some_and(has_glob_characters)
    }
}

/// Where a text starts from, and what of it follows.
pub(super) fn split_base<'a>(text: &'a str, bases: Bases<'a>) -> (&'a Path, &'a str) {
    match text.strip_prefix('~') {
        Some("") => (bases.home, ""),
        Some(rest) if rest.starts_with('/') => (bases.home, rest.trim_start_matches('/')),
        _ if text.starts_with('/') => (Path::new("/"), text.trim_start_matches('/')),
        _ => (bases.cwd, text),
    }
}

fn parts(base: &Path, text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = base
        .iter()
        .filter(|name| *name != "/")
        .map(|name| Part { name: name.into(), written: false })
        .collect();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(Part { name: name.into(), written: true }),
        }
    }
    parts
}

fn join(parts: &[Part]) -> PathBuf {
    let mut path = PathBuf::from("/");
    path.extend(parts.iter().map(|part| &part.name));
    path
}

/// Whether the path that ends with part `at` is there, as far as the effect needs it: for an allow, no component
/// from `first` on may be a symbolic link, for whoever could plant one would choose what is allowed.
fn is_there(parts: &[Part], first: usize, at: usize, effect: Effect, host: &Host) -> bool {
    match effect {
        Effect::Deny => match host.metadata(&join(&parts[..=at])) {
            Ok(_) => true,
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        },
        Effect::Allow => (first..=at)
            .all(|i| host.metadata(&join(&parts[..=i])).is_ok_and(|metadata| !metadata.is_symlink())),
    }
}
