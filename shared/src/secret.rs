//! Values that must not be printed.
