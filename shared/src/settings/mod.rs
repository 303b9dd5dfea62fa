//! The settings file: its types, validation and messages.
