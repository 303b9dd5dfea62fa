//! Path patterns: a component-wise matcher.
