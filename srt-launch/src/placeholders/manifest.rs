//! Manifests: which paths are placeholders, of which run.
//!
//! A run's manifest is a file in its user's folder `srt-UID.0` in memory shared by the machine, where no sandbox
//! reaches: a sandbox has a `/dev/shm` of its own. Only that user can write there, everybody can read it, so
//! that runs of different users in one directory know each other's placeholders. The run holds an exclusive
//! lock on its manifest; one that is not locked is of a dead run.
//!
//! Records end with NUL: `+ TYPE MODE PATH` before a placeholder is made, `= DEV INO BORN PATH` when it is.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::ErrorKind::{AlreadyExists, NotFound};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::unistd::{Uid, geteuid};

use crate::apply::SystemError;
use crate::plan::Placeholder;
use crate::shortage::is_shortage;

/// Places all users may write, in order of preference; all runs of a machine take the same.
const SHARED: [&str; 3] = ["/dev/shm", "/run/shm", "/var/tmp"];

/// The folder of this user's manifests. It need not exist. The shared folder is everybody's, so what has its name may
/// be another user's: then it is the next name.
pub fn state_folder() -> PathBuf {
    let me = geteuid();
    let name = |number| shared().join(format!("{PREFIX}{me}.{number}"));
    let ours = |path: &PathBuf| match fs::symlink_metadata(path) {
        Ok(found) => is_trusted(&found, me),
        Err(error) => error.kind() == NotFound,
    };
    (0..NAMES).map(name).find(ours).unwrap_or_else(|| name(0))
}

/// How many names are tried.
const NAMES: u32 = 16;
const PREFIX: &str = "srt-";

fn shared() -> &'static Path {
    let found = SHARED.into_iter().find(|path| Path::new(path).is_dir());
    Path::new(found.unwrap_or(SHARED[0]))
}

/// What tells one inode from every other there is or was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    /// Nanoseconds of its birth: inode numbers are used again. 0 on file systems that do not say.
    born: u128,
}

impl Identity {
    /// Of an open file, or of what a look at a path said.
    pub fn of(file: &fs::Metadata) -> Self {
        let born = file.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { device: file.dev(), inode: file.ino(), born: born.map_or(0, |age| age.as_nanos()) }
    }
}

/// One placeholder in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub placeholder: Placeholder,
    /// Its inode; `None` while it is about to be made.
    pub made: Option<Identity>,
    /// Whose manifest it stands in.
    pub owner: Uid,
}

impl Entry {
    /// Whether somebody removed the placeholder and has a file of its own there now.
    pub fn is_replaced(&self) -> bool {
        let Some(made) = self.made else { return false };
        fs::symlink_metadata(&self.placeholder.path).is_ok_and(|found| Identity::of(&found) != made)
    }
}

/// The manifest of this run. Its lock goes with it; its file has to be removed.
pub struct Manifest {
    path: PathBuf,
    file: File,
}

impl Manifest {
    /// Makes it, and with it the user's folder.
    pub fn create() -> io::Result<Self> {
        let folder = state_folder();
        // No run would come to remove the folder of one that failed.
        Self::create_in(&folder).inspect_err(|_| drop(fs::remove_dir(&folder)))
    }

    fn create_in(folder: &Path) -> io::Result<Self> {
        loop {
            make_folder(folder)?;
            // Process numbers repeat, in time and across pid namespaces.
            let now = UNIX_EPOCH.elapsed().map_or(0, |age| age.as_nanos());
            let path = folder.join(format!("{}-{now}", std::process::id()));
            let made = OpenOptions::new().read(true).append(true).create_new(true).mode(0o644).open(&path);
            let file = match made {
                // Or somebody removed the empty folder: make it again.
                Err(error) if matches!(error.kind(), NotFound | AlreadyExists) => continue,
                result => result?,
            };
            let manifest = Self { path, file };
            match manifest.take() {
                Ok(true) => return Ok(manifest),
                Ok(false) => {}
                Err(error) => {
                    manifest.remove();
                    return Err(error);
                }
            }
        }
    }

    /// Makes it a living run's. False if it was cleared away: until it is locked it looks like a dead one's.
    fn take(&self) -> io::Result<bool> {
        self.file.lock()?;
        // Whatever the umask: runs of other users in the same folders read it.
        self.file.set_permissions(Permissions::from_mode(0o644))?;
        Ok(self.file.metadata()?.nlink() > 0)
    }

    /// Announces placeholders, before any is made.
    pub fn announce(&mut self, placeholders: &[Placeholder]) -> io::Result<()> {
        let mut records = Vec::new();
        for Placeholder { path, directory, mode } in placeholders {
            let kind = if *directory { 'd' } else { 'f' };
            write!(records, "+ {kind} {mode:o} ")?;
            records.extend_from_slice(path.as_os_str().as_bytes());
            records.push(0);
        }
        self.file.write_all(&records)
    }

    /// Notes that one is there.
    pub fn note(&mut self, path: &Path, identity: Identity) -> io::Result<()> {
        let Identity { device, inode, born } = identity;
        let mut record = format!("= {device} {inode} {born} ").into_bytes();
        record.extend_from_slice(path.as_os_str().as_bytes());
        record.push(0);
        self.file.write_all(&record)
    }

    /// Removes it, and the user's folder if it is the last.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// A manifest whose run is dead, locked against others who clear up.
pub struct Dead {
    manifest: Manifest,
    /// What it lists.
    pub entries: Vec<Entry>,
    /// When its last record was written.
    written: SystemTime,
}

/// A run that was killed between making a placeholder and noting it was killed within that time. On a stopped machine
/// it may be longer; then the placeholder stays.
const UNNOTED: Duration = Duration::from_secs(1);
/// By how much a later moment may read as an earlier one on another file system: a tick of the kernel's clock.
const TICK: Duration = Duration::from_millis(10);

impl Dead {
    /// Whether a file that stands where a placeholder was announced is it, not noted because the run was killed just then:
    /// made by that user in the moment after the last record, and nobody has given it another mode.
    pub fn has_made(&self, entry: &Entry, found: &fs::Metadata) -> bool {
        let next = found
            .created()
            .is_ok_and(|born| (born + TICK).duration_since(self.written).is_ok_and(|later| later <= UNNOTED));
        // Until it is set, the mode is what the umask has left of it.
        let mode = found.mode() & 0o7777 & !entry.placeholder.mode == 0;
        entry.made.is_none() && next && mode && found.is_dir() == entry.placeholder.directory
    }

    /// Removes the manifest: nothing of what it lists is left.
    pub fn remove(self) {
        self.manifest.remove();
    }
}

/// The manifests of dead runs that this user may clear: its own, and for root everybody's.
pub fn dead() -> impl Iterator<Item = Dead> {
    let me = geteuid();
    // What is short now is left to the next run.
    let mine = folders().into_iter().flatten().filter(move |(_, owner)| *owner == me || me.is_root());
    let each =
        |(folder, owner): (PathBuf, Uid)| files(&folder).into_iter().flatten().map(move |path| (path, owner));
    mine.flat_map(each).filter_map(|(path, owner)| {
        let file = open_regular(&path, owner).ok()?;
        file.try_lock().ok()?;
        let found = file.metadata().ok()?;
        let (linked, written) = (found.nlink() > 0, found.modified().ok()?);
        let entries = parse(&file, owner).ok()?;
        linked.then_some(Dead { manifest: Manifest { path, file }, entries, written })
    })
}

/// Every entry of every manifest, but for one of them, that can be believed: another user's only where that user
/// owns the file, or it could make us remove any empty file of ours.
///
/// # Errors
/// Something is short just now. Who would go on without what it hides would take placeholders for files that stay.
pub fn entries(but: Option<&Manifest>) -> io::Result<Vec<Entry>> {
    let me = geteuid();
    let but = but.map(|manifest| manifest.path.as_path());
    let mut all = Vec::new();
    for (folder, owner) in folders()? {
        for path in files(&folder)?.into_iter().filter(|path| Some(path.as_path()) != but) {
            let listed = open_regular(&path, owner).and_then(|file| parse(&file, owner));
            for entry in unless_short(listed)?.into_iter().flatten() {
                // One that somebody outside has put a file of his own in place of is none any more.
                if entry.owner == me && entry.made.is_none() || is_made(&entry)? {
                    all.push(entry);
                }
            }
        }
    }
    Ok(all)
}

/// Whether an entry's placeholder is there, and of the user who lists it.
fn is_made(entry: &Entry) -> io::Result<bool> {
    let found = unless_short(fs::symlink_metadata(&entry.placeholder.path))?;
    Ok(found
        .is_some_and(|found| found.uid() == entry.owner.as_raw() && entry.made == Some(Identity::of(&found))))
}

/// `None` for what is not there or not ours to look at.
fn unless_short<T>(look: io::Result<T>) -> io::Result<Option<T>> {
    match look {
        Err(error) if is_shortage(error.errno()) => Err(error),
        look => Ok(look.ok()),
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let opened = |()| fs::set_permissions(folder, Permissions::from_mode(0o755));
    match DirBuilder::new().mode(0o755).create(folder).and_then(opened) {
        // Another run, the last one, has removed it already: who makes a file in it will see.
        Err(error) if error.kind() == NotFound && shared().is_dir() => Ok(()),
        Err(error) if error.kind() == AlreadyExists => {
            let found = fs::symlink_metadata(folder)?;
            if is_trusted(&found, geteuid()) {
                Ok(())
            } else {
                Err(io::Error::from_raw_os_error(libc::EPERM))
            }
        }
        result => result,
    }
}

/// Whether only this user can have put what is in a folder there.
fn is_trusted(folder: &fs::Metadata, owner: Uid) -> bool {
    folder.is_dir() && folder.uid() == owner.as_raw() && folder.mode() & 0o022 == 0
}

/// The users' folders. Whose one is, its owner says.
fn folders() -> io::Result<Vec<(PathBuf, Uid)>> {
    let named =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    let mut folders = Vec::new();
    for path in files(shared())?.into_iter().filter(named) {
        let Some(found) = unless_short(fs::symlink_metadata(&path))? else { continue };
        let owner = Uid::from_raw(found.uid());
        if is_trusted(&found, owner) {
            folders.push((path, owner));
        }
    }
    Ok(folders)
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    Ok(unless_short(listed)?.unwrap_or_default())
}

fn open_regular(path: &Path, owner: Uid) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.uid() == owner.as_raw() {
        Ok(file)
    } else {
        Err(io::Error::from_raw_os_error(libc::EPERM))
    }
}

fn parse(mut file: &File, owner: Uid) -> io::Result<Vec<Entry>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut entries = BTreeMap::new();
    // What stands behind the last NUL is being written.
    let complete = bytes.iter().rposition(|byte| *byte == 0).map_or(&[][..], |end| &bytes[..end]);
    for record in complete.split(|byte| *byte == 0) {
        match parse_record(record) {
            Some(Record::Announced(placeholder)) => {
                entries.insert(placeholder.path.clone(), Entry { placeholder, made: None, owner });
            }
            Some(Record::Made(path, identity)) => {
                entries.entry(path).and_modify(|entry| entry.made = Some(identity));
            }
            None => {}
        }
    }
    Ok(entries.into_values().collect())
}

#[derive(Debug, PartialEq, Eq)]
enum Record {
    Announced(Placeholder),
    Made(PathBuf, Identity),
}

fn parse_record(record: &[u8]) -> Option<Record> {
    let path = |bytes| PathBuf::from(OsStr::from_bytes(bytes));
    let fields = |n| record.splitn(n, |byte| *byte == b' ').collect::<Vec<_>>();
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<u128>().ok();
    match record.first()? {
        b'+' => {
            let [_, kind, mode, name] = fields(4).try_into().ok()?;
            let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
            Some(Record::Announced(Placeholder { path: path(name), directory: kind == b"d", mode }))
        }
        b'=' => {
            let [_, device, inode, born, name] = fields(5).try_into().ok()?;
            let identity = Identity {
                device: number(device)?.try_into().ok()?,
                inode: number(inode)?.try_into().ok()?,
                born: number(born)?,
            };
            Some(Record::Made(path(name), identity))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path).unwrap();
        let mut manifest = Manifest { path: path.clone(), file };
        let odd = PathBuf::from(OsStr::from_bytes(b"/w/a b\n\xff"));
        let placeholders = [
            Placeholder { path: odd.clone(), directory: false, mode: 0o444 },
            Placeholder { path: "/tmp/claude".into(), directory: true, mode: 0o1777 },
        ];
        manifest.announce(&placeholders).unwrap();
        let identity = Identity { device: 1, inode: u64::MAX, born: 1_700_000_000_000_000_001 };
        manifest.note(&odd, identity).unwrap();
        manifest.file.write_all(b"= 1 2 3 /tmp/cl").unwrap(); // cut short
        let entries = parse(&File::open(&path).unwrap(), Uid::from_raw(7)).unwrap();
        let owner = Uid::from_raw(7);
        let [a, b] = placeholders;
        assert_eq!(
            entries,
            [
                Entry { placeholder: b, made: None, owner },
                Entry { placeholder: a, made: Some(identity), owner }
            ]
        );
    }

    #[test]
    fn what_is_no_record_is_nothing() {
        for bad in [&b""[..], b"x", b"+ f", b"+ f 9 /x", b"= 1 2 /x", b"= a 2 3 /x", b"= -1 2 3 /x"] {
            assert_eq!(parse_record(bad), None, "{bad:?}");
        }
    }
}
