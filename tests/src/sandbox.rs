//! A folder to work in, a folder outside it, a settings file, and the launcher started from there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::binary;
use crate::sys::reset_inherited;

/// Everything one test of the launcher needs; removed when it goes.
#[derive(Debug)]
pub struct Sandbox {
    root: TempDir,
    settings: Value,
}

impl Sandbox {
    /// With these settings of `filesystem` (absent lists are empty) and no network.
    pub fn new(filesystem: Value) -> Self {
        let mut lists = json!({"denyRead": [], "allowRead": [], "allowWrite": [], "denyWrite": []});
        for (key, value) in filesystem.as_object().expect("an object") {
            lists[key] = value.clone();
        }
        let network = json!({"allowedDomains": [], "deniedDomains": []});
        let this = Self {
            root: tempfile::tempdir().expect("a temporary folder"),
            settings: json!({"network": network, "filesystem": lists}),
        };
        for folder in ["home", "work", "outside"] {
            fs::create_dir(this.path(folder)).unwrap();
        }
        this.write_settings();
        this
    }

    /// Sets another key of the settings.
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.settings[key] = value;
        self.write_settings();
        self
    }

    /// A path of the test: `home`, `work` and `outside` are there, and what the test makes.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.path().canonicalize().expect("the folder").join(relative)
    }

    /// Writes a file, with its folders.
    pub fn write(&self, relative: &str, contents: &str) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a folder")).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }

    /// What a file holds; empty if it is not there.
    pub fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_default()
    }

    /// The settings as a file.
    pub fn settings_file(&self) -> PathBuf {
        self.path("settings.json")
    }

    fn write_settings(&self) {
        fs::write(self.settings_file(), self.settings.to_string()).unwrap();
    }

    /// `srt-launch`, to be given its own options, `--`, and a command.
    pub fn launch(&self) -> Command {
        let mut command = self.command(binary("srt-launch"));
        command.arg("--settings").arg(self.settings_file()).arg("--no-network");
        command
    }

    /// `srt-launch` that runs a script with bash.
    pub fn script(&self, script: &str) -> Command {
        let mut command = self.launch();
        command.args(["--", "bash", "-c", script]);
        command
    }

    /// A program, in `work` and with nothing of this process's environment but `PATH`.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.path("home")).env("LC_ALL", "C.UTF-8");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.current_dir(self.path("work")).stdin(Stdio::null());
        reset_inherited(&mut command);
        command
    }
}

/// Runs a command to its end: exit status, standard output, standard error.
pub fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|e| panic!("{:?}: {e}", command.get_program()));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}
