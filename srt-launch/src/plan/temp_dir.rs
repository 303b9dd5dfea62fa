use std::{
    fs::Metadata,
    io::ErrorKind,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::host::{Creation, Host};

/// Where the command's `TMPDIR` leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TempDir {
    pub(super) path: PathBuf,
    /// Whether it has to be made.
    pub(super) missing: bool,
}

impl TempDir {
    /// The shared directory of the reference; one of the user's own where somebody else holds that name.
    pub(super) fn choose(host: &Host) -> Option<Self> {
        Self::choose_in(Path::new("/tmp"), host)
    }

    fn choose_in(parent: &Path, host: &Host) -> Option<Self> {
        // By the name that mounts can have, should it be a link.
        let lookup = host.follow(parent);
        let parent = lookup.there()?;
        [parent.join("claude"), parent.join(format!("claude-{}", host.uid()))].into_iter().find_map(|path| {
            // A placeholder of another run's is nothing to be used, and nothing that can be made.
            match host.lstat(&path) {
                Ok(metadata) => is_safe(&metadata, host.uid()).then_some(Self { path, missing: false }),
                Err(error) => (error.kind() == ErrorKind::NotFound
                    && host.creation(parent) == Creation::Possible)
                    .then_some(Self { path, missing: true }),
            }
        })
    }
}

/// Whether only this user can take away what it makes there, and can make something.
fn is_safe(metadata: &Metadata, uid: u32) -> bool {
    let mode = metadata.mode();
    let sticky = mode & 0o1000 != 0;
    let own = metadata.uid() == uid && mode & 0o700 == 0o700 && (sticky || mode & 0o022 == 0);
    let of_root = metadata.uid() == 0 && sticky && mode & 0o003 == 0o003;
    metadata.is_dir() && (own || of_root)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, symlink},
    };

    use nix::unistd::geteuid;

    use super::*;

    fn choose(parent: &Path) -> Option<(String, bool)> {
        let host = Host::new(geteuid().as_raw(), []);
        TempDir::choose_in(parent, &host)
            .map(|found| (found.path.file_name().unwrap().to_str().unwrap().into(), found.missing))
    }

    #[test]
    fn what_is_not_a_safe_directory_is_passed_over() {
        let parent = tempfile::tempdir().unwrap();
        let own = format!("claude-{}", geteuid());
        let shared = parent.path().join("claude");
        assert_eq!(choose(parent.path()), Some(("claude".into(), true)));
        fs::create_dir(&shared).unwrap();
        for (mode, name, missing) in [
            (0o755, "claude", false),
            (0o700, "claude", false),
            (0o1777, "claude", false),
            (0o777, own.as_str(), true),
            (0o775, own.as_str(), true),
            (0o555, own.as_str(), true),
        ] {
            fs::set_permissions(&shared, Permissions::from_mode(mode)).unwrap();
            assert_eq!(choose(parent.path()), Some((name.into(), missing)), "{mode:o}");
        }
        fs::remove_dir(&shared).unwrap();
        symlink(parent.path(), &shared).unwrap();
        assert_eq!(choose(parent.path()), Some((own.clone(), true)));
        fs::write(parent.path().join(&own), "").unwrap();
        assert_eq!(choose(parent.path()), None);
    }

    #[test]
    fn the_name_leads_through_no_link() {
        let parent = tempfile::tempdir().unwrap();
        let real = parent.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink("real", parent.path().join("tmp")).unwrap();
        let host = Host::new(geteuid().as_raw(), []);
        let chosen = TempDir::choose_in(&parent.path().join("tmp"), &host);
        assert_eq!(
            chosen,
            Some(TempDir { path: real.canonicalize().unwrap().join("claude"), missing: true })
        );
        assert_eq!(TempDir::choose_in(&parent.path().join("none"), &host), None);
    }

    #[test]
    fn what_holds_a_deny_of_another_run_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        // TMPDIR may be reached by a link.
        let parent = folder.path().canonicalize().unwrap();
        let shared = parent.join("claude");
        fs::write(&shared, "").unwrap();
        let host = Host::new(geteuid().as_raw(), [shared]);
        let own = parent.join(format!("claude-{}", geteuid()));
        assert_eq!(TempDir::choose_in(&parent, &host), Some(TempDir { path: own, missing: true }));
    }
}
