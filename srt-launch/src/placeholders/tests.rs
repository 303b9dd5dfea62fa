use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use tempfile::TempDir;

use super::manifest::Manifest;
use super::placeholder::{Held, hold, release};
use super::*;
use crate::plan::Placeholder;

/// A run: a manifest and what it holds.
struct Run {
    manifest: Manifest,
    held: Vec<Held>,
}

impl Run {
    fn start(wanted: &[Placeholder]) -> Self {
        let mut manifest = Manifest::create().unwrap();
        manifest.announce(wanted).unwrap();
        let mut held = Vec::new();
        for placeholder in wanted {
            let one = hold(placeholder, &manifest).unwrap().expect("not refused");
            manifest.note(&placeholder.path, one.identity).unwrap();
            held.push(one);
        }
        Self { manifest, held }
    }

    fn end(self) {
        let Self { manifest, held } = self;
        assert!(held.into_iter().rev().all(|one| release(one, &manifest)));
        manifest.remove();
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

fn file(path: PathBuf) -> Placeholder {
    Placeholder { path, directory: false, mode: 0o444 }
}

#[test]
fn the_last_of_several_runs_removes_it() {
    let (_dir, dir) = folder();
    let wanted = [
        file(dir.join("x")),
        Placeholder { path: dir.join("d"), directory: true, mode: 0o1777 },
        file(dir.join("d/y")),
    ];
    let (first, second) = (Run::start(&wanted), Run::start(&wanted));
    for Placeholder { path, mode, .. } in &wanted {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o7777, *mode);
    }
    first.end();
    assert!(wanted.iter().all(|placeholder| placeholder.path.exists()));
    second.end();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn what_is_somebodys_own_is_neither_joined_nor_removed() {
    let (_dir, dir) = folder();
    let path = dir.join("x");
    let manifest = Manifest::create().unwrap();
    for contents in ["", "mine"] {
        fs::write(&path, contents).unwrap();
        let failure = hold(&file(path.clone()), &manifest).err().unwrap();
        assert!(failure.is_stale_plan(), "{failure}");
    }
    fs::remove_file(&path).unwrap();
    manifest.remove();

    // Written to while it was a placeholder.
    let run = Run::start(&[file(path.clone())]);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    fs::write(&path, "mine").unwrap();
    run.end();
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::remove_file(&path).unwrap();

    // Another empty file in its place, which no other run takes for the placeholder either.
    let run = Run::start(&[file(path.clone())]);
    fs::rename(&path, dir.join("old")).unwrap();
    fs::write(&path, "").unwrap();
    let other = Manifest::create().unwrap();
    let failure = hold(&file(path.clone()), &other).err().unwrap();
    assert!(failure.is_stale_plan(), "{failure}");
    assert!(!in_use().unwrap().iter().any(|placeholder| placeholder.path == path));
    other.remove();
    run.end();
    assert!(path.exists());

    // A folder that was filled.
    let filled = dir.join("d");
    let run = Run::start(&[Placeholder { path: filled.clone(), directory: true, mode: 0o755 }]);
    fs::write(filled.join("f"), "").unwrap();
    run.end();
    assert!(filled.join("f").exists());
}

#[test]
fn links_are_not_followed() {
    let (_dir, dir) = folder();
    fs::create_dir(dir.join("real")).unwrap();
    symlink("real", dir.join("link")).unwrap();
    symlink("target", dir.join("x")).unwrap();
    let manifest = Manifest::create().unwrap();
    for path in ["x", "link/y"] {
        let failure = hold(&file(dir.join(path)), &manifest).err().unwrap();
        assert!(failure.is_stale_plan(), "{failure}");
    }
    manifest.remove();
    assert!(!dir.join("target").exists() && !dir.join("real/y").exists());
}

#[test]
fn the_next_run_removes_what_a_dead_one_left() {
    let (_dir, dir) = folder();
    let (a, b) = (dir.join("a"), dir.join("b"));
    let dead = Run::start(&[file(a.clone()), file(b.clone())]);
    let alive = Run::start(&[file(b.clone())]);
    drop(dead);
    sweep();
    assert!(!a.exists(), "of the dead run alone");
    assert!(b.exists(), "in use");
    assert!(in_use().unwrap().iter().any(|placeholder| placeholder.path == b));
    alive.end();
    sweep();
    assert!(!b.exists());
    assert!(!in_use().unwrap().iter().any(|placeholder| placeholder.path == b));
}

#[test]
fn the_next_run_removes_what_a_dead_one_had_no_time_to_note() {
    let (_dir, dir) = folder();
    let folder = Placeholder { path: dir.join("d"), directory: true, mode: 0o555 };
    for wanted in [file(dir.join("x")), file(dir.join("commondir")), folder] {
        let mut manifest = Manifest::create().unwrap();
        manifest.announce(std::slice::from_ref(&wanted)).unwrap();
        drop((hold(&wanted, &manifest).unwrap(), manifest));
        assert!(wanted.path.exists());
        sweep();
        assert!(!wanted.path.exists(), "{wanted:?}");
    }
}

#[test]
fn what_is_somebodys_own_where_one_was_announced_stays() {
    let (_dir, dir) = folder();
    let wanted = [file(dir.join("before")), file(dir.join("after")), file(dir.join("another mode"))];
    let make = |path: &Path, mode| {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    make(&wanted[0].path, 0o444);
    std::thread::sleep(std::time::Duration::from_millis(50));
    let mut manifest = Manifest::create().unwrap();
    manifest.announce(&wanted).unwrap();
    make(&wanted[2].path, 0o644);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    make(&wanted[1].path, 0o444);
    drop(manifest);
    sweep();
    assert!(wanted.iter().all(|placeholder| placeholder.path.exists()));
}

#[test]
fn a_folder_of_ones_own_that_refuses_is_made_to_allow() {
    if nix::unistd::geteuid().is_root() {
        return; // refused nothing
    }
    let (_dir, dir) = folder();
    fs::set_permissions(&dir, PermissionsExt::from_mode(0o555)).unwrap();
    let run = Run::start(&[file(dir.join("x"))]);
    assert!(dir.join("x").exists());
    run.end();
    assert!(!dir.join("x").exists());
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o555);
    fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Git takes an empty `commondir` for damage, and what names the git directory itself for nothing.
#[test]
fn a_commondir_says_what_its_absence_says() {
    let (_dir, dir) = folder();
    let path = dir.join("commondir");
    let wanted = [file(path.clone())];
    let run = Run::start(&wanted);
    assert_eq!(fs::read(&path).unwrap(), b".\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o444);
    run.end();
    assert!(!path.exists());

    // Somebody's own by now: it stays.
    let run = Run::start(&wanted);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&path, "..").unwrap();
    run.end();
    assert_eq!(fs::read(&path).unwrap(), b"..");
}

#[test]
fn what_somebody_put_in_its_place_is_no_placeholder() {
    let (_dir, dir) = folder();
    let wanted = file(dir.join("x"));
    let run = Run::start(std::slice::from_ref(&wanted));
    assert!(in_use().unwrap().contains(&wanted));
    fs::remove_file(&wanted.path).unwrap();
    fs::write(&wanted.path, "own").unwrap();
    assert!(!in_use().unwrap().contains(&wanted));
    run.end();
    assert_eq!(fs::read(&wanted.path).unwrap(), b"own");
}
