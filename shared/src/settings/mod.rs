//! The settings file: its types, validation and messages.

/// A whole settings file, valid.
#[derive(Debug, Clone, Default)]
pub struct Settings {}
