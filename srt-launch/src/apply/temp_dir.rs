//! The directory for temporary files, on the host.

use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkdir;

use super::failure::{During, Failure, Step};
use super::mounts::with_exact_modes;

/// Makes it like `/tmp` itself: for everybody, and nobody removes what is another's. If somebody else was faster, the
/// plan has to judge what is there now.
pub fn make_temp_dir(path: &Path) -> Result<(), Failure> {
    // Not changed afterwards: by then the name could be another's.
    let made = with_exact_modes(|| mkdir(path, Mode::from_bits_truncate(0o1777)));
    made.during_at(Step::TempDir, "mkdir", path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn for_everybody_whatever_the_umask() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("claude");
        make_temp_dir(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o1777);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        assert!(make_temp_dir(&path).unwrap_err().is_stale_plan());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
    }
}
