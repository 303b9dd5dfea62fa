use super::{
    error::ProtocolError,
    frame::{self, FrameTooLong},
    verdict::write_list,
};
use crate::{domain::DomainPattern, limits::MAX_FRAME, lists::Lists};

/// What a decider says first: the hosts it may be asked about at all.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Hello {
    allowed: Vec<DomainPattern>,
    denied: Vec<DomainPattern>,
}

impl Hello {
    /// Reads the entries of both lists.
    ///
    /// # Errors
    /// For an entry that is none, and one that is in its list twice.
    pub fn new<S: AsRef<str>>(allowed: &[S], denied: &[S]) -> Result<Self, ProtocolError> {
        Ok(Self {
            allowed: parse_list("allowedDomains", allowed)?,
            denied: parse_list("deniedDomains", denied)?,
        })
    }

    /// The lists, ready to be asked.
    pub fn into_lists(self) -> Lists {
        Lists::new(self.allowed, self.denied)
    }

    /// The entries of the allow list.
    pub fn allowed(&self) -> &[DomainPattern] {
        &self.allowed
    }

    /// The entries of the deny list.
    pub fn denied(&self) -> &[DomainPattern] {
        &self.denied
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// When the lists are too long for a frame; `out` is then as it was before.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameTooLong> {
        frame::append(out, MAX_FRAME, |out| {
            out.extend_from_slice(br#"{"t":"hello","proto":1,"allowedDomains":"#);
            write_list(out, self.allowed.iter().map(DomainPattern::as_str));
            out.extend_from_slice(br#","deniedDomains":"#);
            write_list(out, self.denied.iter().map(DomainPattern::as_str));
            out.push(b'}');
            Ok(())
        })
    }
}

fn parse_list<S: AsRef<str>>(list: &'static str, entries: &[S]) -> Result<Vec<DomainPattern>, ProtocolError> {
    let mut seen = std::collections::HashSet::new();
    entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let entry = entry.as_ref();
            if !seen.insert(entry) {
                return Err(ProtocolError::RepeatedEntry { list, index });
            }
            DomainPattern::parse_hello(entry).map_err(|source| ProtocolError::Entry { list, index, source })
        })
        .collect()
}
