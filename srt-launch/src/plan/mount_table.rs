use std::{
    collections::HashSet,
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// Mount points that a search must not enter by itself: what lies behind them may be slow, gone, or mounted only
/// by the looking (autofs).
#[derive(Debug, Default)]
pub(super) struct RemoteMounts(HashSet<PathBuf>);

impl RemoteMounts {
    /// Reads the caller's mount table. Where there is none, nothing is known to be remote.
    pub(super) fn read() -> Self {
        fs::read("/proc/self/mountinfo").map(|table| Self::parse(&table)).unwrap_or_default()
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        !self.0.is_empty() && self.0.contains(path)
    }

    pub(super) fn parse(table: &[u8]) -> Self {
        Self(table.split(|&b| b == b'\n').filter_map(remote_mount_point).collect())
    }
}

/// See proc_pid_mountinfo(5): the mount point is field 5, the type the first field behind the lone hyphen.
fn remote_mount_point(line: &[u8]) -> Option<PathBuf> {
    let mut fields = line.split(|&b| b == b' ');
    let mount_point = fields.nth(4)?;
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    is_remote(kind).then(|| PathBuf::from(OsString::from_vec(unescape(mount_point))))
}

fn is_remote(kind: &[u8]) -> bool {
    const REMOTE: [&[u8]; 17] = [
        b"nfs",
        b"nfs4",
        b"autofs",
        b"cifs",
        b"smb3",
        b"smbfs",
        b"ncpfs",
        b"afs",
        b"coda",
        b"ceph",
        b"lustre",
        b"glusterfs",
        b"beegfs",
        b"gpfs",
        b"orangefs",
        b"pvfs2",
        b"9p",
    ];
    // What a program serves may be remote (sshfs), or a program that no longer answers.
    REMOTE.contains(&kind) || kind == b"fuse" || kind.starts_with(b"fuse.")
}

/// Blanks, tabs, newlines and backslashes are written as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        let octal =
            tail.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|d| (b'0'..b'8').contains(d)));
        match octal {
            Some(digits) => {
                out.push(digits.iter().fold(0, |sum: u8, d| sum.wrapping_mul(8).wrapping_add(d - b'0')));
                rest = &tail[3..];
            }
            None => out.push(first),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_file_systems_are_told_from_local_ones() {
        let table = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            30 22 0:40 / /net rw master:3 propagate_from:2 - autofs systemd-1 rw,fd=9\n\
            31 22 0:41 / /home/a\\040b\\134c rw - nfs4 srv:/x rw\n\
            32 22 0:42 / /mnt/ssh rw - fuse.sshfs u@h: rw\n\
            33 22 0:43 / /tmp rw - tmpfs tmpfs rw\n\
            broken line\n";
        let mounts = RemoteMounts::parse(table);
        for (path, remote) in [
            ("/", false),
            ("/net", true),
            ("/home/a b\\c", true),
            ("/mnt/ssh", true),
            ("/tmp", false),
            ("/net/x", false),
        ] {
            assert_eq!(mounts.contains(Path::new(path)), remote, "{path}");
        }
    }
}
