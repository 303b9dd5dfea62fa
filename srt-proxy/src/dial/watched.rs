//! A small configuration file, parsed once and again whenever it changed.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// Two writes within one tick of the file system's clock leave the same time: a file as young as this is read
/// again, whatever its stamp says.
const SETTLED: Duration = Duration::from_secs(2);

/// The parsed contents of a file. One that is absent, or may not be read, counts as empty, as it does for glibc.
pub(super) struct Watched<T> {
    path: PathBuf,
    limit: u64,
    parse: fn(&[u8]) -> T,
    last: Mutex<Option<(Stamp, T)>>,
}

impl<T: Clone> Watched<T> {
    /// Watches `path`, which may have `limit` bytes.
    pub(super) fn new(path: impl Into<PathBuf>, limit: u64, parse: fn(&[u8]) -> T) -> Self {
        Self { path: path.into(), limit, parse, last: Mutex::new(None) }
    }

    /// What the file says now. One `stat` as long as it does not change.
    ///
    /// # Errors
    /// When it cannot be read for a moment, because this process has no descriptor left for example, or is too large.
    /// Its lines are there all the same, and going on without them would lead names elsewhere.
    pub(super) fn current(&self) -> io::Result<T> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&self.path);
        if let Some((known, value)) = &*last
            && *known == stamp
            && stamp.is_settled()
        {
            return Ok(value.clone());
        }
        let value = (self.parse)(&self.read()?);
        *last = Some((stamp, value.clone()));
        Ok(value)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
        let read = read_limited(&self.path, self.limit);
        match read {
            Err(error) if matches!(error.kind(), NotADirectory | NotFound | PermissionDenied) => {
                Ok(Vec::new())
            }
            Err(ref error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot be read");
                read
            }
            read => read,
        }
    }
}

/// What changes when a file does, however it was written. The default is that of a file that is not there.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(path: &PathBuf) -> Self {
        fs::metadata(path).map_or_else(
            |_| Self::default(),
            |meta| Self {
                device: meta.dev(),
                inode: meta.ino(),
                size: meta.size(),
                modified: meta.modified().ok(),
            },
        )
    }

    fn is_settled(&self) -> bool {
        // A time in the future tells nothing either.
        self.modified.is_none_or(|modified| modified.elapsed().is_ok_and(|age| age > SETTLED))
    }
}

fn read_limited(path: &PathBuf, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn length(bytes: &[u8]) -> usize {
        bytes.len()
    }

    #[test]
    fn a_change_shows_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let watched = Watched::new(&path, 10, length);
        assert_eq!(watched.current().unwrap(), 0, "absent");
        for text in ["one", "three", "three!", ""] {
            fs::write(&path, text).unwrap();
            assert_eq!(watched.current().unwrap(), text.len());
        }
        fs::write(&path, "larger than it may be").unwrap();
        assert!(watched.current().is_err(), "too large");
        fs::write(dir.path().join("new"), "replaced").unwrap();
        fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(watched.current().unwrap(), 8, "replaced by rename");
        fs::remove_file(&path).unwrap();
        assert_eq!(watched.current().unwrap(), 0, "removed");
    }

    #[test]
    fn a_settled_file_is_parsed_once() {
        static PARSED: AtomicUsize = AtomicUsize::new(0);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "x").unwrap();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        File::options().write(true).open(&path).unwrap().set_modified(hour_ago).unwrap();
        let watched = Watched::new(&path, 10, |_| PARSED.fetch_add(1, Ordering::Relaxed));
        for _ in 0..3 {
            assert_eq!(watched.current().unwrap(), 0);
        }
        File::options().write(true).open(&path).unwrap().set_modified(hour_ago - SETTLED).unwrap();
        assert_eq!(watched.current().unwrap(), 1, "same size, other time");
    }

    #[test]
    fn a_file_that_could_not_be_read_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::create_dir(&path).unwrap();
        let watched = Watched::new(&path, 10, length);
        assert!(watched.current().is_err(), "a directory");
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "lines").unwrap();
        assert_eq!(watched.current().unwrap(), 5);
        let absent = Watched::new(path.join("below"), 10, length);
        assert_eq!(absent.current().unwrap(), 0);
    }
}
