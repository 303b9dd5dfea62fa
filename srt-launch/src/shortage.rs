//! Errors that say nothing about a file.

use nix::errno::Errno;

/// Whether an error says that something is short in this moment, and nothing of what was looked at: at another time there
/// would be none. Whoever takes it for "not there" leaves away what protects it.
pub fn is_shortage(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS | Errno::EINTR | Errno::EAGAIN
    )
}

/// Whether an error says that a path does not lead to what it has led to. Any other may be gone tomorrow: a disk that fails,
/// a folder that was made inaccessible, a file system that has become read-only.
pub fn is_elsewhere(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::ENAMETOOLONG | Errno::ENXIO | Errno::ENODEV
    )
}
