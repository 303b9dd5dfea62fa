//! Which symbolic links a command may have put where they are. Whoever plants a link on the way of an entry that opens
//! something chooses what the next run opens, so such an entry is not followed through it.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{compile::Scene, rules::Rules};

/// Whether a command with these settings, in an earlier run, may have made a link: some entry opens what it lies in.
/// Denies do not count. One that holds now need not have held then: a pattern matches what a command has made since.
pub(super) fn may_be_planted(link: &Path, rules: &Rules, scene: Scene<'_>) -> bool {
    let opened = link.parent().is_some_and(|parent| {
        rules.nearest(parent, |node| node.allow_write.is_some() || node.default_write.is_some()).is_some()
    });
    // Nobody makes links in the trees of the kernel. What only root can replace, root's command can as well.
    let closed = is_of_the_kernel(link) || scene.host.uid() != 0 && is_of_the_system(link, scene);
    opened && !closed
}

/// Whether a link on the way to an `allowWrite` was made by whoever set up the machine: it is root's, in a directory
/// where only root makes names. For root itself that says nothing, so only the places count where distributions put
/// links, and only where no entry lets a command of root's put others there.
pub(super) fn is_to_be_followed(link: &Path, scene: Scene<'_>, opened: &[PathBuf]) -> bool {
    let Some(parent) = link.parent() else { return false };
    let usual = ["/", "/var", "/usr"].iter().any(|place| parent == Path::new(place));
    let untouched = || usual && !opened.iter().any(|root| parent.starts_with(root));
    is_of_the_system(link, scene) && (scene.host.uid() != 0 || untouched())
}

/// Whether a link was made by whoever set up the machine: it is root's, in a directory where only root makes names.
fn is_of_the_system(link: &Path, scene: Scene<'_>) -> bool {
    let look = |path: &Path| scene.host.lstat(path).ok().filter(|metadata| metadata.uid() == 0);
    let closed = link.parent().and_then(look).is_some_and(|metadata| metadata.mode() & 0o022 == 0);
    closed && look(link).is_some()
}

fn is_of_the_kernel(path: &Path) -> bool {
    ["/proc", "/dev", "/sys"].iter().any(|tree| path.starts_with(tree))
}
