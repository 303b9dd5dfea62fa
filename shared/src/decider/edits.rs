use std::fmt;

use thiserror::Error;

use crate::{
    field_name::{FieldName, is_credential, is_framing},
    limits::{MAX_CREDENTIAL, MAX_FIELD_BYTES, MAX_FIELD_VALUES},
    secret::Secret,
};

/// What an allow does to the request's headers: remove, then set, then the credential.
///
/// Names are compared folded ([`crate::field_name`]). Only [`Edits::new`] makes one, so no framing header is
/// among them, and no credential header is set but through [`Cred`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    set: Vec<SetField>,
    remove: Vec<FieldName>,
    cred: Option<Cred>,
}

/// One header to set. Without values it changes nothing: the client's own header of that name stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetField {
    /// The name to send.
    pub name: FieldName,
    /// One header line each.
    pub values: Vec<FieldValue>,
}

impl Edits {
    /// Checks the names and the limits.
    ///
    /// # Errors
    /// [`EditsError`]: what the other end would take for a violation.
    pub fn new(set: Vec<SetField>, remove: Vec<FieldName>, cred: Option<Cred>) -> Result<Self, EditsError> {
        check_set(&set)?;
        check_remove(&remove)?;
        Ok(Self { set, remove, cred })
    }

    /// The headers to set.
    pub fn set(&self) -> &[SetField] {
        &self.set
    }

    /// The headers to remove.
    pub fn remove(&self) -> &[FieldName] {
        &self.remove
    }

    /// The credential to send in place of the client's.
    pub fn cred(&self) -> Option<&Cred> {
        self.cred.as_ref()
    }

    /// Whether the request goes on as it came.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty() && self.cred.is_none()
    }

    /// The first header to set with a character that HTTP cannot carry. The request must then be refused.
    pub fn unsendable(&self) -> Option<&FieldName> {
        let has_wide = |field: &&SetField| field.values.iter().any(|value| value.to_latin1().is_none());
        self.set.iter().find(has_wide).map(|field| &field.name)
    }
}

/// A header value: no control character but tab. It may be a secret of the decider's, so it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct FieldValue(Box<str>);

impl FieldValue {
    /// Takes a value without control characters.
    ///
    /// # Errors
    /// [`EditsError::ControlCharacter`].
    pub fn parse(text: &str) -> Result<Self, EditsError> {
        if has_control(text) { Err(EditsError::ControlCharacter) } else { Ok(Self(text.into())) }
    }

    /// The value as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes to send, one for each character up to U+00FF; `None` if there is one above.
    pub fn to_latin1(&self) -> Option<Vec<u8>> {
        if self.0.is_ascii() {
            return Some(self.0.as_bytes().to_vec());
        }
        self.0.chars().map(|c| u8::try_from(c).ok()).collect()
    }
}

impl fmt::Debug for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldValue({} bytes)", self.0.len())
    }
}

/// A credential, and the class that says how it is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cred {
    class: Box<str>,
    credential: Secret,
}

impl Cred {
    /// Checks both parts.
    ///
    /// # Errors
    /// [`EditsError::EmptyClass`], [`EditsError::Credential`].
    pub fn new(class: &str, credential: impl Into<Secret>) -> Result<Self, EditsError> {
        let credential = credential.into();
        if class.is_empty() {
            return Err(EditsError::EmptyClass);
        }
        let printable = credential.expose().iter().all(|b| (0x21..=0x7e).contains(b));
        if !printable || credential.is_empty() || credential.len() > MAX_CREDENTIAL {
            return Err(EditsError::Credential);
        }
        Ok(Self { class: class.into(), credential })
    }

    /// The class, such as `github`.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// 1 to 8192 bytes of printable ASCII without blanks.
    pub fn credential(&self) -> &Secret {
        &self.credential
    }
}

/// Why edits are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EditsError {
    /// A framing header, in any spelling.
    #[error("{0} says how the message is framed: only the proxy sets or removes it")]
    Framing(FieldName),
    /// A credential header, in any spelling.
    #[error("{0} carries a credential: it is set only through cred")]
    Credentials(FieldName),
    /// The same name twice in a list, or twice as a key.
    #[error("{0} is there twice")]
    Duplicate(FieldName),
    /// More than 190.
    #[error("more than {MAX_FIELD_VALUES} values or names")]
    TooMany,
    /// More than 64 KiB.
    #[error("more than {MAX_FIELD_BYTES} bytes of names and values")]
    TooLong,
    /// C0 without tab, DEL, C1.
    #[error("a control character in a header value")]
    ControlCharacter,
    /// A class without a character.
    #[error("the class is empty")]
    EmptyClass,
    /// Not 1 to 8192 bytes of printable ASCII.
    #[error("the credential is not 1 to {MAX_CREDENTIAL} bytes of printable ASCII without blanks")]
    Credential,
}

/// Whether the text has a control character other than tab; C1 counts, as some terminals and servers obey it.
pub(super) fn has_control(text: &str) -> bool {
    text.chars().any(|c| c.is_control() && c != '\t')
}

fn check_set(set: &[SetField]) -> Result<(), EditsError> {
    let mut count = 0;
    let mut bytes = 0;
    for field in set {
        count += field.values.len().max(1);
        bytes += field.name.as_str().len();
        bytes += field.values.iter().map(|value| value.as_str().len()).sum::<usize>();
        check_limits(count, bytes)?;
        let name = field.name.as_str().as_bytes();
        if is_framing(name) {
            return Err(EditsError::Framing(field.name.clone()));
        }
        if is_credential(name) {
            return Err(EditsError::Credentials(field.name.clone()));
        }
    }
    match first_repeated(set.iter().map(|field| &field.name)) {
        Some(name) => Err(EditsError::Duplicate(name)),
        None => Ok(()),
    }
}

fn check_remove(remove: &[FieldName]) -> Result<(), EditsError> {
    check_limits(remove.len(), remove.iter().map(|name| name.as_str().len()).sum())?;
    if let Some(name) = remove.iter().find(|name| is_framing(name.as_str().as_bytes())) {
        return Err(EditsError::Framing(name.clone()));
    }
    match first_repeated(remove.iter()) {
        Some(name) => Err(EditsError::Duplicate(name)),
        None => Ok(()),
    }
}

fn check_limits(count: usize, bytes: usize) -> Result<(), EditsError> {
    if count > MAX_FIELD_VALUES {
        return Err(EditsError::TooMany);
    }
    if bytes > MAX_FIELD_BYTES { Err(EditsError::TooLong) } else { Ok(()) }
}

/// The first name that stands there twice in one spelling. Quick for the 190 names that are allowed.
fn first_repeated<'a>(names: impl Iterator<Item = &'a FieldName> + Clone) -> Option<FieldName> {
    let is_repeated = |(at, name): &(usize, &FieldName)| names.clone().take(*at).any(|other| other == *name);
    names.clone().enumerate().find(is_repeated).map(|(_, name)| name.clone())
}
