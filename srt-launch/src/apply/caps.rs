//! Capabilities of the command.

use super::failure::{During, Failure, Step};
use super::namespaces::Caller;
use crate::sys;

/// What uid 0 keeps, inside its own user namespace, over files of mapped users only: without these it could
/// not even write its own files of mode 0444, and every package manager and `tar` would fail.
const KEPT_BY_ROOT: u64 = 1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_FOWNER | 1 << CAP_FSETID;

const CAP_CHOWN: u32 = 0;
const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_FOWNER: u32 = 3;
const CAP_FSETID: u32 = 4;

/// Drops every capability, or for uid 0 every other one, from all sets, for good.
pub fn drop(caller: Caller) -> Result<(), Failure> {
    let keep = if caller.is_root() { KEPT_BY_ROOT } else { 0 };
    sys::keep_capabilities(keep).during(Step::Capabilities, "capset")
}
