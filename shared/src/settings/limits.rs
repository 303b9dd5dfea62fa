//! How much a settings document may be.

use crate::json::{Limits, Null};

/// Enough for a hundred thousand path entries, small enough to read whole. One line of a control descriptor
/// may be as long.
pub const MAX_BYTES: usize = 16 << 20;

/// The deepest place known is four levels down; unknown keys may hold a little more.
const MAX_DEPTH: usize = 32;

/// `null` is passed, so that it is reported with everything else that is wrong.
pub(super) const JSON: Limits = Limits { max_bytes: MAX_BYTES, max_depth: MAX_DEPTH, null: Null::Passed };
