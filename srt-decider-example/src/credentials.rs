//! Where credentials come from. They are read when the rules are, and are in no other place than the answer
//! to the proxy: not in the log, not in an error, not in the environment of the proxy.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use srt_shared::{
    decider::{Cred, EditsError},
    secret::Secret,
};
use thiserror::Error;

use crate::limits::MAX_CREDENTIAL_FILE;

/// A credential by where it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialSource {
    /// The class, which says how the proxy places it.
    pub class: Box<str>,
    /// Where it is kept.
    pub kept: Kept,
    /// The line of the rules file that names it.
    pub line: usize,
}

/// Where a credential is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// In this environment variable.
    Variable(Box<str>),
    /// In this file, alone, perhaps with a line end.
    File(PathBuf),
}

/// Why a credential is not there.
#[derive(Debug, Error)]
pub enum CredentialError {
    /// Not set, or not UTF-8.
    #[error("the environment variable {0} is not set")]
    NotSet(Box<str>),
    /// The file.
    #[error("{}: {error}", file.display())]
    File {
        /// Which file.
        file: PathBuf,
        /// What went wrong.
        error: io::Error,
    },
    /// Nothing a header can carry.
    #[error("{kept}: {error}")]
    Unfit {
        /// The variable or file.
        kept: String,
        /// What is wrong.
        error: EditsError,
    },
}

impl CredentialSource {
    /// Reads the credential.
    ///
    /// # Errors
    /// [`CredentialError`], which never shows the credential.
    pub fn read(&self) -> Result<Cred, CredentialError> {
        let (secret, kept) = match &self.kept {
            Kept::Variable(name) => {
                let value = std::env::var(&**name).map_err(|_| CredentialError::NotSet(name.clone()))?;
                (Secret::from(value), name.to_string())
            }
            Kept::File(file) => {
                let secret =
                    read_file(file).map_err(|error| CredentialError::File { file: file.clone(), error })?;
                (secret, file.display().to_string())
            }
        };
        Cred::new(&self.class, secret).map_err(|error| CredentialError::Unfit { kept, error })
    }
}

fn read_file(path: &Path) -> io::Result<Secret> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_CREDENTIAL_FILE).read_to_end(&mut bytes)?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let length = line.strip_suffix(b"\r").unwrap_or(line).len();
    bytes.truncate(length);
    Ok(Secret::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Result<Cred, CredentialError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, content).unwrap();
        CredentialSource { class: "github".into(), kept: Kept::File(file), line: 1 }.read()
    }

    #[test]
    fn a_file_holds_the_credential_and_perhaps_a_line_end() {
        for content in ["s3cret", "s3cret\n", "s3cret\r\n"] {
            assert_eq!(read(content).unwrap().credential().expose(), b"s3cret");
        }
    }

    #[test]
    fn errors_never_show_the_credential() {
        for content in ["", "\n", "s3cret with blank", "s3cret\nsecond", "s3cret\n\n", &"s3cret".repeat(2000)]
        {
            let error = read(content).unwrap_err();
            assert!(matches!(error, CredentialError::Unfit { .. }), "{error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        let source = CredentialSource {
            class: "a".into(),
            kept: Kept::Variable("SRT_TEST_NEVER_SET".into()),
            line: 1,
        };
        assert_eq!(
            source.read().unwrap_err().to_string(),
            "the environment variable SRT_TEST_NEVER_SET is not set"
        );
    }
}
