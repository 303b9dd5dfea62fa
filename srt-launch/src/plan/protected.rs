//! What is never writable, because programs outside the sandbox run or obey it: shell start files, editor and
//! tool configuration, and what git executes.

use std::{
    ffi::OsStr,
    fs::{DirEntry, Metadata},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use super::{
    git_config::{Obeyed, obeyed, read_small, submodules},
    host::{Found, Host, Kind, absolute},
    walk::Listing,
};

const FILES: [&str; 9] = [
    ".bashrc",
    ".bash_profile",
    ".zshrc",
    ".zprofile",
    ".profile",
    ".gitconfig",
    ".gitmodules",
    ".ripgreprc",
    ".mcp.json",
];
const DIRECTORIES: [&str; 4] = [".vscode", ".idea", ".claude/commands", ".claude/agents"];
/// What every git directory has.
const GIT_DIRECTORY_MARKS: [&str; 3] = ["HEAD", "objects", "refs"];

/// Submodules in submodules: more of them in one another than anybody has.
const MAX_MODULE_DEPTH: usize = 16;
/// Longer than any path and what stands before it in a file of git.
const MAX_POINTER: u64 = 8192;

/// Finds what is to be protected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protected<'a> {
    pub(super) host: &'a Host,
    /// What `~` means.
    pub(super) home: &'a Path,
    /// What the user's configuration makes git obey in every repository.
    pub(super) user_git: &'a Obeyed,
    /// `filesystem.allowGitConfig`
    pub(super) allow_git_config: bool,
}

/// Whether a walk has to keep the name.
pub(super) fn may_matter(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        matches!(name, ".vscode" | ".idea" | ".claude" | ".git")
            || FILES.contains(&name)
            || GIT_DIRECTORY_MARKS.contains(&name)
    })
}

impl Protected<'_> {
    /// All protected names of a directory, whether they are there or not: of the working directory, the home
    /// directory, and every writable root.
    pub(super) fn of_anchor(self, directory: &Path) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> =
            FILES.iter().chain(&DIRECTORIES).map(|name| directory.join(name)).collect();
        // A repository can be made where there is none, so an absent `.git` stays absent.
        self.add_git(&directory.join(".git"), &mut paths);
        self.add_if_git_directory(directory, &mut paths);
        paths
    }

    /// What is protected among the names a search has found.
    pub(super) fn of_listing(self, listing: &Listing) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> =
            FILES.iter().filter(|name| listing.has(name)).map(|name| listing.directory.join(name)).collect();
        if !listing.directories {
            return paths;
        }
        for name in DIRECTORIES {
            let path = listing.directory.join(name);
            let (outer, inner) = name.split_once('/').unwrap_or((name, ""));
            if listing.has(outer) && (inner.is_empty() || self.host.metadata(&path).is_ok()) {
                paths.push(path);
            }
        }
        if listing.has(".git") {
            self.add_git(&listing.directory.join(".git"), &mut paths);
        }
        if GIT_DIRECTORY_MARKS.iter().all(|name| listing.has(name)) {
            self.add_git_directory(&listing.directory, None, 0, &mut paths);
        }
        paths
    }

    /// What is protected because of where a writable root lies: a root may be a part of a repository, or of what it must
    /// leave alone, and nothing looks for protected names above it.
    pub(super) fn around(self, root: &Path) -> Vec<PathBuf> {
        // A name of two parts is met from the folder above its first, which nobody looks at here.
        let parts = DIRECTORIES.iter().filter_map(|name| name.split_once('/'));
        let mut paths: Vec<PathBuf> =
            parts.filter(|(outer, _)| root.ends_with(outer)).map(|(_, inner)| root.join(inner)).collect();
        // What somebody else puts in a directory that all share says nothing of what others have there.
        for above in root.ancestors().skip(1).take_while(|above| !is_shared_by_all(above, self.host)) {
            self.add_git(&above.join(".git"), &mut paths);
            self.add_if_git_directory(above, &mut paths);
        }
        paths
    }

    /// The user's configuration of git, and what is as good: what it includes, and hooks in one place for all repositories.
    pub(super) fn of_user(self) -> Vec<PathBuf> {
        let everywhere = self.user_git.hooks.iter().filter(|hooks| hooks.is_absolute());
        everywhere.chain(&self.user_git.includes).cloned().collect()
    }

    /// The protected folder or file that a path lies in or is.
    pub(super) fn protected_name_above(self, path: &Path) -> Option<&Path> {
        path.ancestors().find(|above| self.is_protected_name(above))
    }

    /// Whether a folder is laid out as what git keeps of a repository.
    pub(super) fn is_git_directory(self, directory: &Path) -> bool {
        GIT_DIRECTORY_MARKS.iter().all(|name| self.host.metadata(&directory.join(name)).is_ok())
    }

    fn add_if_git_directory(self, directory: &Path, paths: &mut Vec<PathBuf>) {
        if self.is_git_directory(directory) {
            self.add_git_directory(directory, None, 0, paths);
        }
    }

    /// Whether a path has the name of something protected.
    fn is_protected_name(self, path: &Path) -> bool {
        FILES.iter().chain(&DIRECTORIES).any(|name| path.ends_with(name))
    }

    /// A `.git`: the directory itself, or a file of a worktree or submodule that says where it is.
    fn add_git(self, dot_git: &Path, paths: &mut Vec<PathBuf>) {
        let top = dot_git.parent();
        match self.host.follow(dot_git).found {
            // By the name it has here: where that is a link, the link must stay as well.
            Found::There(_, Kind::Directory) => self.add_git_directory(dot_git, top, 0, paths),
            Found::There(file, _) => {
                paths.push(dot_git.into());
                if let Some(directory) = self.pointer(&file, b"gitdir:") {
                    self.add_git_directory(&directory, top, 0, paths);
                }
            }
            Found::Missing(..) | Found::BelowFile(_) | Found::Unknown(_) | Found::Circle => {}
        }
    }

    /// Hooks and configuration of a git directory, of the one it shares them with, of its worktrees and of its
    /// submodules. Absent ones count: what makes them is a way to run a program at the next `git status` outside.
    fn add_git_directory(self, directory: &Path, top: Option<&Path>, depth: usize, paths: &mut Vec<PathBuf>) {
        let common = self.pointer(&directory.join("commondir"), b"").unwrap_or_else(|| directory.into());
        let config = common.join("config");
        let says = obeyed(&config, self.home, self.host);
        paths.push(common.join("hooks"));
        // Git starts them at the top of the work tree, or where there is none in the git directory.
        let hooks = says.hooks.iter().chain(&self.user_git.hooks);
        paths.extend(hooks.map(|hooks| absolute(top.unwrap_or(&common), hooks)));
        if !self.allow_git_config {
            paths.push(config);
            paths.extend(says.includes.iter().cloned());
        }
        let mut own = vec![directory.to_path_buf(), common.clone()];
        own.extend(directories(&common.join("worktrees"), self.host));
        own.sort();
        own.dedup();
        for directory in own {
            // Whoever writes it says where git finds hooks and configuration (gitrepository-layout(5)).
            paths.push(directory.join("commondir"));
            // Read only where `config` says so.
            let worktree = directory.join("config.worktree");
            let has_own = self.host.metadata(&worktree).is_ok();
            if !self.allow_git_config && (says.per_worktree || has_own) {
                paths.push(worktree.clone());
            }
            if has_own {
                let own = obeyed(&worktree, self.home, self.host);
                self.add_work_trees(&directory, &own.work_trees, paths);
            }
            self.add_link_back(&directory, paths);
            self.add_modules(&directory.join("modules"), depth + 1, paths);
        }
        self.add_work_trees(&common, &says.work_trees, paths);
        if let Some(top) = top.filter(|_| depth == 0) {
            self.add_submodules(top, paths);
        }
    }

    /// The `.git` files of work trees. Git at the top goes into each submodule, and obeys what that file names;
    /// the search for names need not reach that far down.
    fn add_work_trees(self, directory: &Path, work_trees: &[PathBuf], paths: &mut Vec<PathBuf>) {
        for tree in work_trees {
            self.add_dot_git_file(absolute(directory, tree).join(".git"), paths);
        }
    }

    /// The `.git` file of a worktree, and the file that says where it is: rewritten, it would hide the other from the
    /// next run.
    fn add_link_back(self, directory: &Path, paths: &mut Vec<PathBuf>) {
        let file = directory.join("gitdir");
        if let Some(text) = read_small(&file, MAX_POINTER, self.host).filter(|text| !text.is_empty()) {
            let dot_git = absolute(directory, Path::new(OsStr::from_bytes(text.trim_ascii())));
            self.add_dot_git_file(dot_git, paths);
            paths.push(file);
        }
    }

    /// Submodules whose git directory lies in their work tree, and is not in `modules`.
    fn add_submodules(self, top: &Path, paths: &mut Vec<PathBuf>) {
        for path in submodules(&top.join(".gitmodules"), self.host) {
            let module = absolute(top, &path);
            let dot_git = module.join(".git");
            match self.host.follow(&dot_git).found {
                Found::There(_, Kind::Directory) if module != top && module.starts_with(top) => {
                    self.add_git_directory(&dot_git, Some(&module), 1, paths);
                }
                _ => self.add_dot_git_file(dot_git, paths),
            }
        }
    }

    /// Nothing but a file: a folder of that name is a git directory, in which work goes on.
    fn add_dot_git_file(self, dot_git: PathBuf, paths: &mut Vec<PathBuf>) {
        if self.host.metadata(&dot_git).is_ok_and(|found| found.is_file()) {
            paths.push(dot_git);
        }
    }

    /// Git directories of submodules; the name of a submodule may have slashes.
    fn add_modules(self, directory: &Path, depth: usize, paths: &mut Vec<PathBuf>) {
        if depth > MAX_MODULE_DEPTH {
            return;
        }
        for module in directories(directory, self.host) {
            if self.host.metadata(&module.join("HEAD")).is_ok() {
                self.add_git_directory(&module, None, depth, paths);
            } else {
                self.add_modules(&module, depth + 1, paths);
            }
        }
    }

    /// The directory that a small file of git names, relative to the file's own.
    pub(super) fn pointer(self, file: &Path, prefix: &[u8]) -> Option<PathBuf> {
        // A placeholder is not there.
        self.host.metadata(file).ok().filter(Metadata::is_file)?;
        let text = read_small(file, MAX_POINTER, self.host)?;
        let path = text.strip_prefix(prefix)?.trim_ascii();
        let target = absolute(file.parent()?, Path::new(OsStr::from_bytes(path)));
        match self.host.follow(&target).found {
            Found::There(directory, Kind::Directory) => Some(directory),
            _ => None,
        }
    }
}

/// Whether a directory is like `/tmp`: everybody makes names in it, and nobody removes another's.
pub(super) fn is_shared_by_all(directory: &Path, host: &Host) -> bool {
    host.lstat(directory).is_ok_and(|metadata| metadata.mode() & 0o1002 == 0o1002)
}

/// The directories in a directory, links to some not among them.
fn directories(directory: &Path, host: &Host) -> Vec<PathBuf> {
    let entries = host.entries(directory).into_iter().flatten();
    let kind = |entry: &DirEntry| host.heed(directory, entry.file_type());
    let directories = entries.filter(|entry| kind(entry).is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}
