use thiserror::Error;

use super::{
    edits::{Edits, has_control},
    frame::{self, FrameTooLong},
};
use crate::{
    json::{write_str, write_u64},
    limits::{MAX_FRAME, MAX_NEED_BODY, MAX_REASON},
};

/// A decider's answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The id of the request.
    pub id: u64,
    /// What is to become of it.
    pub decision: Decision,
}

/// What is to become of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It goes out, edited.
    Allow(Edits),
    /// It is refused.
    Deny(Denial),
    /// The decider wants to see its body first.
    NeedBody(NeedBody),
}

/// The status of a refusal, and perhaps its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    status: u16,
    reason: Option<Box<str>>,
}

impl Denial {
    /// Checks the status, 400 to 599, and the reason: not empty, up to 1 KiB, no control character but tab.
    ///
    /// # Errors
    /// [`DenialError`].
    pub fn new(status: u16, reason: Option<&str>) -> Result<Self, DenialError> {
        if !(400..=599).contains(&status) {
            return Err(DenialError::Status);
        }
        match reason {
            Some("") => return Err(DenialError::EmptyReason),
            Some(text) if text.len() > MAX_REASON => return Err(DenialError::ReasonTooLong),
            Some(text) if has_control(text) => return Err(DenialError::ControlCharacter),
            _ => {}
        }
        Ok(Self { status, reason: reason.map(Into::into) })
    }

    /// The status to answer with.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The reason to show, as the decider wrote it.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

/// Why a denial is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DenialError {
    /// Outside 400 to 599.
    #[error("the status is not from 400 to 599")]
    Status,
    /// An optional field that is empty is left out.
    #[error("the reason is empty")]
    EmptyReason,
    /// More than 1 KiB.
    #[error("the reason is longer than {MAX_REASON} bytes")]
    ReasonTooLong,
    /// C0 without tab, DEL, C1.
    #[error("a control character in the reason")]
    ControlCharacter,
}

/// How many bytes of the body the decider wants to see at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedBody(u32);

impl NeedBody {
    /// Takes 1 to 33,554,432 bytes.
    pub fn new(max: u32) -> Option<Self> {
        (1..=MAX_NEED_BODY).contains(&max).then_some(Self(max))
    }

    /// The number of bytes.
    pub fn max(self) -> u32 {
        self.0
    }
}

impl Verdict {
    /// Appends the frame.
    ///
    /// # Errors
    /// When it is longer than a frame may be, which escapes can do to edits within their limits; `out` is then
    /// as it was before.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameTooLong> {
        frame::append(out, MAX_FRAME, |out| {
            out.extend_from_slice(br#"{"t":"verdict","id":"#);
            write_u64(out, self.id);
            match &self.decision {
                Decision::Allow(edits) => write_allow(out, edits),
                Decision::Deny(denial) => {
                    out.extend_from_slice(br#","action":"deny","status":"#);
                    write_u64(out, denial.status.into());
                    if let Some(reason) = &denial.reason {
                        out.extend_from_slice(br#","reason":"#);
                        write_str(out, reason);
                    }
                }
                Decision::NeedBody(NeedBody(max)) => {
                    out.extend_from_slice(br#","action":"need_body","max":"#);
                    write_u64(out, (*max).into());
                }
            }
            out.push(b'}');
            Ok(())
        })
    }
}

fn write_allow(out: &mut Vec<u8>, edits: &Edits) {
    out.extend_from_slice(br#","action":"allow""#);
    let mut open = br#","setHeaders":{"#.as_slice();
    for field in edits.set() {
        out.extend_from_slice(open);
        open = b",";
        write_str(out, field.name.as_str());
        out.push(b':');
        write_list(out, field.values.iter().map(|value| value.as_str()));
    }
    if !edits.set().is_empty() {
        out.push(b'}');
    }
    if !edits.remove().is_empty() {
        out.extend_from_slice(br#","removeHeaders":"#);
        write_list(out, edits.remove().iter().map(|name| name.as_str()));
    }
    if let Some(cred) = edits.cred() {
        out.extend_from_slice(br#","cred":"#);
        write_str(out, cred.class());
        // Printable ASCII, but a quote or backslash is among it.
        out.extend_from_slice(br#","credential":"#);
        crate::json::write_latin1(out, cred.credential().expose());
    }
}

pub(super) fn write_list<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    out.push(b'[');
    for (at, text) in texts.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_str(out, text);
    }
    out.push(b']');
}
