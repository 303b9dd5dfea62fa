//! The command: its arguments and environment, and how a program is looked for.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::stat;
use nix::unistd::execve;

use super::failure::{During, Failure, Step};
use crate::plan::Plan;

/// Where programs are looked for without `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that is ready to be executed: nothing more has to be computed in the new process.
#[derive(Debug)]
pub struct Command {
    program: OsString,
    /// Where the program may be, in order.
    candidates: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Command {
    /// `argv` with the environment of the plan. An empty `argv` is an error, as is a NUL byte anywhere.
    pub fn new(argv: &[OsString], plan: &Plan) -> Result<Self, Failure> {
        let c_string = |bytes: Vec<u8>| {
            CString::new(bytes).map_err(|_| Errno::EINVAL).during(Step::Launch, "a NUL byte in an argument")
        };
        let program = argv.first().ok_or(Errno::EINVAL).during(Step::Launch, "no command")?;
        let environment = plan.env.iter().map(|(name, value)| {
            let mut line = name.as_bytes().to_vec();
            line.push(b'=');
            line.extend_from_slice(value.as_bytes());
            c_string(line)
        });
        let path = plan.env.get(OsStr::new("PATH")).map(OsString::as_os_str);
        Ok(Self {
            program: program.clone(),
            candidates: candidates(program, path)
                .into_iter()
                .map(|candidate| c_string(candidate.into_vec()))
                .collect::<Result<_, _>>()?,
            arguments: argv.iter().map(|arg| c_string(arg.clone().into_vec())).collect::<Result<_, _>>()?,
            environment: environment.collect::<Result<_, _>>()?,
        })
    }

    /// Becomes the command. Returns only if that fails.
    pub fn execute(&self) -> Failure {
        let mut worst = Errno::ENOENT;
        for candidate in &self.candidates {
            match self.execute_at(candidate) {
                Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG | Errno::ELOOP => {}
                // In a folder of PATH that may not be searched nothing was found, as for a shell.
                Errno::EACCES if self.candidates.len() > 1 && stat(candidate.as_c_str()).is_err() => {}
                // It is there; perhaps a later folder has one that may be executed.
                Errno::EACCES => worst = Errno::EACCES,
                errno => {
                    worst = errno;
                    break;
                }
            }
        }
        let failed: Result<(), _> = Err(worst).during_at(Step::Command, "execve", &self.program);
        failed.expect_err("invariant: made from an error")
    }

    fn execute_at(&self, program: &CStr) -> Errno {
        let Err(errno) = execve(program, &self.arguments, &self.environment);
        if errno != Errno::ENOEXEC {
            return errno;
        }
        // A script without `#!`: shells run it, so callers expect it to run.
        let mut arguments = vec![c"sh", program];
        arguments.extend(self.arguments.iter().skip(1).map(CString::as_c_str));
        let Err(errno) = execve(c"/bin/sh", &arguments, &self.environment);
        errno
    }
}

/// Where a program may be, in order. Without a `/` in it that is in the folders of `PATH`.
pub fn candidates(program: &OsStr, path: Option<&OsStr>) -> Vec<OsString> {
    if program.is_empty() {
        return Vec::new();
    }
    if program.as_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    path.unwrap_or(OsStr::new(DEFAULT_PATH))
        .as_bytes()
        .split(|byte| *byte == b':')
        .map(|folder| if folder.is_empty() { b"." } else { folder })
        .map(|folder| Path::new(OsStr::from_bytes(folder)).join(program).into_os_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_as_shells_do_it() {
        for (program, path, want) in [
            ("ls", Some("/a:/b"), &["/a/ls", "/b/ls"][..]),
            ("ls", Some("/a::b"), &["/a/ls", "./ls", "b/ls"]),
            ("ls", None, &["/usr/local/bin/ls", "/usr/bin/ls", "/bin/ls"]),
            ("ls", Some(""), &["./ls"]),
            ("./ls", Some("/a:/b"), &["./ls"]),
            ("/bin/ls", Some("/a"), &["/bin/ls"]),
            ("d/ls", Some("/a"), &["d/ls"]),
            ("", Some("/a:/b"), &[]),
        ] {
            assert_eq!(candidates(program.as_ref(), path.map(OsStr::new)), want, "{program:?} in {path:?}");
        }
    }
}
