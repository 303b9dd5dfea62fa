//! Why a program that is there was not found. The kernel says so as well of one whose interpreter is missing: what `#!`
//! names in a script, the dynamic loader of any other program.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::apply::candidates;

/// As many scripts as the kernel lets be each other's interpreters.
const CHAIN: usize = 5;
/// What the kernel reads of a script to find its interpreter.
const FIRST_LINE: usize = 256;

/// Why.
#[derive(Debug, PartialEq, Eq)]
pub enum Reason {
    /// It names an interpreter that is nowhere.
    NoInterpreter(PathBuf),
    /// All is there outside the sandbox.
    Hidden,
}

impl Reason {
    /// Looks for it outside, as it was looked for inside. `None` if it is not there either, or cannot be told.
    pub fn find(program: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Option<Self> {
        let mut at = look_up(program, path, cwd)?;
        for _ in 0..CHAIN {
            let Some(interpreter) = interpreter(&at).ok()? else { return Some(Self::Hidden) };
            at = cwd.join(&interpreter);
            if !at.exists() {
                return Some(Self::NoInterpreter(interpreter));
            }
        }
        None
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInterpreter(interpreter) => {
                write!(f, "its interpreter `{}` is missing", interpreter.to_string_lossy().escape_debug())?;
                if interpreter.as_os_str().as_bytes().ends_with(b"\r") {
                    f.write_str(": the script's lines end as on Windows")?;
                }
                Ok(())
            }
            Self::Hidden => {
                f.write_str("it is there outside: `denyRead` hides it, or its interpreter, from the command")
            }
        }
    }
}

fn look_up(program: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    let fits = |file: &PathBuf| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    candidates(program, path).into_iter().map(|file| cwd.join(file)).find(fits)
}

/// What the kernel starts in the file's place; `None` if that is the file itself.
fn interpreter(program: &Path) -> io::Result<Option<PathBuf>> {
    let file = File::open(program)?;
    let head = read_at(&file, 0, FIRST_LINE)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        return Ok(of_script(line));
    }
    of_elf(&file, &head)
}

fn of_script(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| matches!(byte, b'\n' | b'\0')).next()?;
    let word = line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty())?;
    Some(OsString::from_vec(word.to_vec()).into())
}

/// `PT_INTERP` of an executable of this machine's byte order.
fn of_elf(file: &File, head: &[u8]) -> io::Result<Option<PathBuf>> {
    const PT_INTERP: u64 = 3;
    /// Where fields are, and how long: the table of segments, the size and number of its entries, and in an entry the
    /// place and length of what it is about.
    struct Layout {
        table: (usize, usize),
        size: usize,
        count: usize,
        place: (usize, usize),
        length: (usize, usize),
    }
    let layout = match head {
        [0x7f, b'E', b'L', b'F', 1, ..] => {
            Layout { table: (28, 4), size: 42, count: 44, place: (4, 4), length: (16, 4) }
        }
        [0x7f, b'E', b'L', b'F', 2, ..] => {
            Layout { table: (32, 8), size: 54, count: 56, place: (8, 8), length: (32, 8) }
        }
        _ => return Ok(None),
    };
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let number = |bytes: &[u8], (at, length): (usize, usize)| -> io::Result<u64> {
        let mut all = [0; 8];
        all[..length].copy_from_slice(bytes.get(at..at + length).ok_or_else(short)?);
        Ok(u64::from_le_bytes(all))
    };
    let (table, size) = (number(head, layout.table)?, number(head, (layout.size, 2))?);
    for index in 0..number(head, (layout.count, 2))? {
        let entry = read_at(file, table.saturating_add(index * size), size as usize)?;
        if number(&entry, (0, 4))? == PT_INTERP {
            let length = number(&entry, layout.length)?.min(libc::PATH_MAX as u64);
            let mut path = read_at(file, number(&entry, layout.place)?, length as usize)?;
            path.truncate(path.iter().position(|byte| *byte == 0).unwrap_or(path.len()));
            return Ok(Some(OsString::from_vec(path).into()));
        }
    }
    Ok(None)
}

/// Up to this many bytes.
fn read_at(file: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut read = 0;
    while read < length {
        match file.read_at(&mut bytes[read..], at.saturating_add(read as u64))? {
            0 => break,
            more => read += more,
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn of(contents: impl AsRef<[u8]>) -> Option<Reason> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, contents).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let by_path = Reason::find("program".as_ref(), Some(folder.path().as_os_str()), Path::new("/"));
        assert_eq!(Reason::find("./program".as_ref(), None, folder.path()), by_path);
        by_path
    }

    #[test]
    fn the_interpreter_of_a_script_is_what_its_first_line_names() {
        for (line, missing) in [
            ("#!/no/such", "/no/such"),
            ("#! \t/no/such -x\nfoo", "/no/such"),
            ("#!/bin/sh\r\n", "/bin/sh\r"),
            ("#!no-such\n", "no-such"),
        ] {
            assert_eq!(of(line), Some(Reason::NoInterpreter(missing.into())), "{line:?}");
        }
        assert_eq!(of("#!/bin/sh\n"), Some(Reason::Hidden));
        assert_eq!(of("no script\n"), Some(Reason::Hidden));
        assert_eq!(of("#!\n"), Some(Reason::Hidden));
        let text = Reason::NoInterpreter("/bin/sh\r".into()).to_string();
        assert_eq!(text, r"its interpreter `/bin/sh\r` is missing: the script's lines end as on Windows");
    }

    #[test]
    fn that_of_a_program_is_its_loader() {
        let own = fs::read("/bin/sh").unwrap();
        let loader = interpreter(Path::new("/bin/sh")).unwrap().expect("a loader");
        let loader = loader.to_str().unwrap();
        assert!(Path::new(loader).exists(), "{loader}");
        // Its path is among the first bytes of every executable.
        let at = own.windows(loader.len()).position(|bytes| bytes == loader.as_bytes()).unwrap();
        let mut broken = own[..own.len().min(1 << 16)].to_vec();
        broken[at + 1] = b'X';
        let missing = loader.replacen(&loader[1..2], "X", 1);
        assert_eq!(of(&broken), Some(Reason::NoInterpreter(missing.into())));
        // Cut off in the header, and in the table behind it.
        assert_eq!((of(&own[..40]), of(&own[..100])), (None, None));
    }

    #[test]
    fn what_is_not_there_outside_needs_no_explanation() {
        assert_eq!(
            Reason::find("no-such-program".as_ref(), Some("/bin:/usr/bin".as_ref()), Path::new("/")),
            None
        );
        assert_eq!(Reason::find("/no/such/program".as_ref(), None, Path::new("/")), None);
        assert_eq!(Reason::find("etc".as_ref(), Some("/".as_ref()), Path::new("/")), None);
    }
}
