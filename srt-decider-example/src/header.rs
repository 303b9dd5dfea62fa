//! Conditions on headers.

use srt_shared::{decider::ReqField, field_name::FieldName};
use thiserror::Error;

use crate::{reach::Reach, text::TextPattern};

/// What one header must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderCondition {
    /// The header.
    pub name: FieldName,
    /// What must be true of it.
    pub wanted: HeaderWanted,
}

/// What must be true of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderWanted {
    /// It is there.
    Present,
    /// It is not there, in no spelling.
    Absent,
    /// Its value is one of these.
    OneOf(Vec<TextPattern>),
}

/// Why a header does not match. Values are left out: they may be secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeaderMismatch {
    /// Not there.
    #[error("there is no header {0}")]
    Missing(FieldName),
    /// There.
    #[error("there is a header {0}, in one spelling or another")]
    Present(FieldName),
    /// On several lines, or in a second spelling such as `x_a` for `x-a`: servers differ in which one they take.
    #[error("the header {0} is there more than once, or in another spelling")]
    Repeated(FieldName),
    /// Another value.
    #[error("the header {0} has another value")]
    Value(FieldName),
}

impl HeaderCondition {
    /// Checks the headers of a request.
    ///
    /// # Errors
    /// [`HeaderMismatch`]: what is missing.
    pub fn check(&self, headers: &[ReqField], reach: Reach) -> Result<(), HeaderMismatch> {
        let name = || self.name.clone();
        let mut same = headers.iter().filter(|field| self.name.is_same(field.name.as_str().as_bytes()));
        let Some(first) = same.next() else {
            return match self.wanted {
                HeaderWanted::Absent => Ok(()),
                _ => Err(HeaderMismatch::Missing(name())),
            };
        };
        if reach == Reach::Wide {
            return self.check_widely(first, same);
        }
        if self.wanted == HeaderWanted::Absent {
            return Err(HeaderMismatch::Present(name()));
        }
        let (None, true, [value]) = (same.next(), first.name == self.name, first.values.as_slice()) else {
            return Err(HeaderMismatch::Repeated(name()));
        };
        match &self.wanted {
            HeaderWanted::OneOf(patterns) if !patterns.iter().any(|p| p.matches(value, reach)) => {
                Err(HeaderMismatch::Value(name()))
            }
            _ => Ok(()),
        }
    }

    fn check_widely<'a>(
        &self,
        first: &'a ReqField,
        others: impl Iterator<Item = &'a ReqField>,
    ) -> Result<(), HeaderMismatch> {
        match &self.wanted {
            HeaderWanted::Present => Ok(()),
            HeaderWanted::Absent => {
                // Where not exactly this header is there once, a server may see none.
                let is_plain = first.name == self.name && first.values.len() == 1 && others.count() == 0;
                if is_plain { Err(HeaderMismatch::Present(self.name.clone())) } else { Ok(()) }
            }
            HeaderWanted::OneOf(patterns) => {
                let mut values = std::iter::once(first).chain(others).flat_map(|field| &field.values);
                let fits = |value: &String| patterns.iter().any(|p| p.matches(value, Reach::Wide));
                if values.any(fits) { Ok(()) } else { Err(HeaderMismatch::Value(self.name.clone())) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, values: &[&str]) -> ReqField {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        ReqField { name: FieldName::parse(name).unwrap(), values }
    }

    fn check(wanted: HeaderWanted, headers: &[ReqField], reach: Reach) -> bool {
        HeaderCondition { name: FieldName::parse("x-role").unwrap(), wanted }.check(headers, reach).is_ok()
    }

    #[test]
    fn narrow_wants_one_line_of_exactly_that_name() {
        let one_of = || HeaderWanted::OneOf(vec![TextPattern::new("read*")]);
        let plain = [field("x-role", &["reader"])];
        assert!(check(HeaderWanted::Present, &plain, Reach::Narrow));
        assert!(check(one_of(), &plain, Reach::Narrow));
        assert!(!check(HeaderWanted::Absent, &plain, Reach::Narrow));
        for doubtful in [
            &[field("x-role", &["reader", "admin"])][..],
            &[field("x_role", &["reader"])],
            &[field("x-role", &["reader"]), field("x.role", &["admin"])],
            &[field("x-role", &[])],
        ] {
            assert!(!check(HeaderWanted::Present, doubtful, Reach::Narrow), "{doubtful:?}");
            assert!(!check(HeaderWanted::Absent, doubtful, Reach::Narrow), "{doubtful:?}");
            assert!(!check(one_of(), doubtful, Reach::Narrow), "{doubtful:?}");
        }
        assert!(!check(one_of(), &[field("x-role", &["admin"])], Reach::Narrow));
        assert!(check(HeaderWanted::Absent, &[field("x-other", &["a"])], Reach::Narrow));
    }

    #[test]
    fn wide_takes_every_spelling_and_line() {
        let admin = || HeaderWanted::OneOf(vec![TextPattern::new("admin")]);
        for headers in [
            &[field("x-role", &["reader", "admin"])][..],
            &[field("x_role", &["ADMIN"])],
            &[field("x-role", &["reader"]), field("x.role", &["admin"])],
        ] {
            assert!(check(admin(), headers, Reach::Wide), "{headers:?}");
            assert!(check(HeaderWanted::Present, headers, Reach::Wide), "{headers:?}");
            assert!(check(HeaderWanted::Absent, headers, Reach::Wide), "{headers:?}");
        }
        assert!(!check(HeaderWanted::Absent, &[field("x-role", &["reader"])], Reach::Wide));
        assert!(check(HeaderWanted::Absent, &[], Reach::Wide));
        assert!(!check(admin(), &[field("x-role", &["reader"])], Reach::Wide));
    }
}
