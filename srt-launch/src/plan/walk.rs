//! The one walk that serves every pattern of the settings and the search for protected names. Each directory is
//! read once, and only if some pattern can match beneath it or the search still reaches it.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::{OsStr, OsString},
    io::{self, ErrorKind},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use srt_shared::glob::{Pattern, Position, Step};

use super::{
    host::{Creation, Found, Host, Kind},
    mount_table::RemoteMounts,
    protected,
};

/// What to look for, and from where.
#[derive(Debug, Default)]
pub(super) struct Search {
    patterns: Vec<Sought>,
    starts: BTreeMap<PathBuf, Vec<Interest>>,
}

/// What a walk has found. Lists are in no particular order.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Paths that a pattern matches; their parents are resolved, they themselves may be links.
    pub(super) hits: Vec<Hit>,
    /// Directories that a pattern may match in, and that cannot be searched.
    pub(super) unsearchable: Vec<Unsearchable>,
    /// Directories that the search for protected names reaches, with what is in them.
    pub(super) listings: Vec<Listing>,
    /// Directories that it reaches and that cannot be read.
    pub(super) unreadable: Vec<PathBuf>,
    /// Remote mounts that were not entered.
    pub(super) not_entered: Vec<PathBuf>,
}

/// One match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) pattern: PatternId,
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// The links that the walk followed to get there; none where one way leads there without. Whoever replaces one
    /// hides the match from the next search.
    pub(super) links: Vec<PathBuf>,
}

/// A directory that a pattern may match in, and that cannot be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unsearchable {
    pub(super) pattern: PatternId,
    pub(super) directory: PathBuf,
    /// As for a [`Hit`].
    pub(super) links: Vec<PathBuf>,
}

/// A directory in which something that may be protected is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) directory: PathBuf,
    /// Those names of it that may matter.
    pub(super) names: Vec<OsString>,
    /// Whether protected directories count here, or only files: those are looked for one level deeper.
    pub(super) directories: bool,
}

/// Which pattern a finding is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PatternId(usize);

/// What a pattern makes of symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// They match or not, and nothing lies behind them.
    AsTheyAre,
    /// It goes on behind those that lead to directories.
    Followed,
    /// As `Followed`, and nothing else counts as a match.
    Alone,
}

#[derive(Debug)]
struct Sought {
    pattern: Pattern,
    links: Links,
}

/// Why a directory is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Interest {
    /// Its entries may match.
    Pattern(PatternId, Position),
    /// It may hold protected names; so may directories below it, down to so many levels.
    Protected { levels: usize, top: bool },
}

impl Search {
    /// Looks for what a pattern matches beneath a resolved directory.
    pub(super) fn add_pattern(&mut self, start: PathBuf, pattern: Pattern, links: Links) -> PatternId {
        let id = PatternId(self.patterns.len());
        let position = pattern.start();
        self.patterns.push(Sought { pattern, links });
        self.starts.entry(start).or_default().push(Interest::Pattern(id, position));
        id
    }

    /// Looks for protected names in a resolved directory and below it, where a file may be `depth` names deep.
    pub(super) fn add_protected(&mut self, start: PathBuf, depth: usize) {
        self.starts.entry(start).or_default().push(Interest::Protected { levels: depth, top: true });
    }

    /// Walks. Nothing is touched when nothing is looked for.
    pub(super) fn run(self, host: &Host) -> Findings {
        if self.starts.is_empty() { Findings::default() } else { self.run_among(RemoteMounts::read(), host) }
    }

    /// Walks around these mounts.
    pub(super) fn run_among(self, remote: RemoteMounts, host: &Host) -> Findings {
        let mut walk = Walk {
            host,
            patterns: &self.patterns,
            remote,
            pending: self.starts,
            through_links: HashSet::new(),
            followed: Vec::new(),
            findings: Findings::default(),
        };
        // In order of paths, so that a start below another is met on the way from that one.
        while let Some((start, interests)) = walk.pending.pop_first() {
            walk.visit(&start, merged(interests));
        }
        walk.findings.keep_shortest_ways();
        walk.findings
    }
}

struct Walk<'a> {
    host: &'a Host,
    patterns: &'a [Sought],
    remote: RemoteMounts,
    /// Starts not visited yet.
    pending: BTreeMap<PathBuf, Vec<Interest>>,
    /// Where links have led already: without this, links in circles would be followed for ever.
    through_links: HashSet<(PathBuf, Interest)>,
    /// The links behind which the walk is now.
    followed: Vec<PathBuf>,
    findings: Findings,
}

impl Walk<'_> {
    fn visit(&mut self, directory: &Path, interests: Vec<Interest>) {
        let entries = match read(directory, self.host) {
            Ok(entries) => entries,
            Err(error) => return self.failed(directory, &interests, &error),
        };
        let mut deeper = Vec::new();
        for interest in interests {
            match interest {
                Interest::Pattern(id, position) => {
                    self.match_in(directory, &entries, id, &position, &mut deeper)
                }
                Interest::Protected { levels, top } => {
                    let names =
                        entries.iter().map(|entry| &entry.name).filter(|name| protected::may_matter(name));
                    let names: Vec<OsString> = names.cloned().collect();
                    if !names.is_empty() {
                        self.findings.listings.push(Listing {
                            directory: directory.into(),
                            names,
                            directories: top || levels > 1,
                        });
                    }
                    if levels > 1 {
                        let below = Interest::Protected { levels: levels - 1, top: false };
                        let plain =
                            |entry: &&Entry| entry.kind == Some(Kind::Directory) && entry.name != ".git";
                        deeper.extend(
                            entries.iter().filter(plain).map(|entry| (entry.name.clone(), below.clone())),
                        );
                    }
                }
            }
        }
        self.descend(directory, deeper);
    }

    /// Matches the entries of one directory, and notes where the pattern goes on.
    fn match_in(
        &mut self,
        directory: &Path,
        entries: &[Entry],
        id: PatternId,
        position: &Position,
        deeper: &mut Vec<(OsString, Interest)>,
    ) {
        let sought = &self.patterns[id.0];
        let mut links = Vec::new();
        for entry in entries {
            let Step { matches, below } = sought.pattern.step(position, entry.name.as_bytes());
            if !matches && below.is_none() {
                continue;
            }
            let path = directory.join(&entry.name);
            if self.host.is_ghost(&path) {
                continue;
            }
            let kind = match entry.kind {
                Some(kind) if sought.links == Links::Alone => kind,
                // What matches is mounted over, so it must be reachable; what does not need not be looked at.
                Some(kind) if !matches => kind,
                _ => match self.host.lstat(&path) {
                    Ok(metadata) => Kind::of(metadata.file_type()),
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(_) => {
                        self.not_searched(id, directory);
                        break;
                    }
                },
            };
            if matches && (kind == Kind::Link || sought.links != Links::Alone) {
                let links = self.followed.clone();
                self.findings.hits.push(Hit { pattern: id, path: path.clone(), kind, links });
            }
            if let Some(below) = below {
                match kind {
                    Kind::Directory => deeper.push((entry.name.clone(), Interest::Pattern(id, below))),
                    Kind::Link if sought.links != Links::AsTheyAre => links.push((path, below)),
                    Kind::Link | Kind::File => {}
                }
            }
        }
        // In order of names: of several links to one place, the first is the way that counts.
        links.sort_by(|a, b| a.0.cmp(&b.0));
        for (link, below) in links {
            self.through_link(&link, directory, id, below);
        }
    }

    /// Goes on behind a link to a directory, unless it leads back up, where the walk has come from.
    fn through_link(&mut self, link: &Path, directory: &Path, id: PatternId, below: Position) {
        let lookup = self.host.follow(link);
        let target = match lookup.found {
            Found::There(target, Kind::Directory) => target,
            // Its owner's command can open it again, and what lies behind would not be denied.
            Found::Unknown(closed) if self.host.creation(&closed) != Creation::Refused => {
                return self.behind(lookup.links, |walk| walk.not_searched(id, &closed));
            }
            _ => return,
        };
        let above = target.ancestors().any(is_root_of_kernel_tree);
        if directory.starts_with(&target) || above || self.is_remote(&target) {
            return;
        }
        let interest = Interest::Pattern(id, below);
        if self.through_links.insert((target.clone(), interest.clone())) {
            self.behind(lookup.links, |walk| walk.visit(&target, vec![interest]));
        }
    }

    /// Goes on behind these links.
    fn behind(&mut self, links: Vec<PathBuf>, go_on: impl FnOnce(&mut Self)) {
        let before = self.followed.len();
        self.followed.extend(links);
        go_on(self);
        self.followed.truncate(before);
    }

    fn descend(&mut self, directory: &Path, mut deeper: Vec<(OsString, Interest)>) {
        deeper.sort_by(|a, b| a.0.cmp(&b.0));
        for group in deeper.chunk_by(|a, b| a.0 == b.0) {
            let path = directory.join(&group[0].0);
            if is_root_of_kernel_tree(&path) || self.is_remote(&path) {
                continue;
            }
            let mut interests: Vec<Interest> = group.iter().map(|(_, interest)| interest.clone()).collect();
            // Behind a link it would seem that what starts here needs the link.
            if self.followed.is_empty() {
                interests.extend(self.pending.remove(&path).unwrap_or_default());
            }
            self.visit(&path, merged(interests));
        }
    }

    /// A remote mount is entered only where an entry names it or something beneath it, which is then a start.
    fn is_remote(&mut self, path: &Path) -> bool {
        let remote = self.remote.contains(path);
        if remote {
            self.findings.not_entered.push(path.into());
        }
        remote
    }

    fn not_searched(&mut self, pattern: PatternId, directory: &Path) {
        let links = self.followed.clone();
        self.findings.unsearchable.push(Unsearchable { pattern, directory: directory.into(), links });
    }

    fn failed(&mut self, directory: &Path, interests: &[Interest], error: &io::Error) {
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
            return;
        }
        // Where it cannot even be looked at, nothing can be mounted on it: the directory above has to do.
        let reachable = match (self.host.lstat(directory), directory.parent()) {
            (Err(_), Some(parent)) => parent,
            _ => directory,
        };
        for interest in interests {
            match interest {
                Interest::Pattern(id, _) => self.not_searched(*id, reachable),
                Interest::Protected { .. } => self.findings.unreadable.push(reachable.into()),
            }
        }
    }
}

/// Trees that the kernel makes up hold nothing of the user's and are without end. They are walked only where an
/// entry starts in them.
fn is_root_of_kernel_tree(path: &Path) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|tree| path == Path::new(tree))
}

/// Leaves the widest search for protected names, and each pattern position once.
fn merged(interests: Vec<Interest>) -> Vec<Interest> {
    let mut out: Vec<Interest> = Vec::with_capacity(interests.len());
    let mut protected: Option<(usize, bool)> = None;
    for interest in interests {
        match interest {
            Interest::Protected { levels, top } => {
                let (most, any_top) = protected.unwrap_or_default();
                protected = Some((most.max(levels), any_top || top));
            }
            pattern if !out.contains(&pattern) => out.push(pattern),
            _ => {}
        }
    }
    out.extend(protected.map(|(levels, top)| Interest::Protected { levels, top }));
    out
}

impl Findings {
    /// Of several ways to one place keeps the one through the fewest links. One way is enough to find it again, and a
    /// tree of packages that are linked into one another has very many.
    fn keep_shortest_ways(&mut self) {
        keep_shortest(&mut self.hits, |hit| (hit.pattern, &hit.path, &hit.links));
        keep_shortest(&mut self.unsearchable, |one| (one.pattern, &one.directory, &one.links));
    }
}

fn keep_shortest<T>(found: &mut Vec<T>, way: impl Fn(&T) -> (PatternId, &Path, &[PathBuf])) {
    if found.iter().all(|one| way(one).2.is_empty()) {
        return;
    }
    found.sort_by(|a, b| {
        let ((a, a_path, a_links), (b, b_path, b_links)) = (way(a), way(b));
        (a, a_path, a_links.len(), a_links).cmp(&(b, b_path, b_links.len(), b_links))
    });
    found.dedup_by(|a, b| way(a).0 == way(b).0 && way(a).1 == way(b).1);
}

struct Entry {
    name: OsString,
    /// `None` where the file system does not tell and the entry cannot be looked at.
    kind: Option<Kind>,
}

fn read(directory: &Path, host: &Host) -> io::Result<Vec<Entry>> {
    let entries = host.entries(directory)?.into_iter().map(|entry| {
        let kind = host.heed(directory, entry.file_type()).ok().map(Kind::of);
        Entry { name: entry.file_name(), kind }
    });
    Ok(entries.collect())
}

impl Listing {
    /// Whether an entry of this name is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == OsStr::new(name))
    }
}
