//! Narrow for allowing, wide for denying.

/// How a rule reads a request. Allowing is narrow and denying is wide, so that where two programs could read
/// a request in two ways, both readings end in a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Only what is spelled in the one usual way, and can be seen whole.
    Narrow,
    /// Also every other spelling that some server might take for the same, and what cannot be read at all.
    Wide,
}
