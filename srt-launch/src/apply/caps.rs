//! Capabilities of the command.

use super::failure::{During, Failure, Step};
use super::namespaces::Caller;
use crate::sys;

/// What uid 0 keeps, inside its own user namespace, over files of mapped users only: without these it could
/// not even write its own files of mode 0444, and every package manager and `tar` would fail.
const KEPT_BY_ROOT: u64 = 1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_FOWNER | 1 << CAP_FSETID;

/// What uid 0 must hold besides to map itself into a user namespace below its own (Linux 5.12), where those are
/// allowed.
const FOR_NESTED: u64 = 1 << CAP_SETFCAP;

const CAP_SETFCAP: u32 = 31;
const CAP_CHOWN: u32 = 0;
const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_FOWNER: u32 = 3;
const CAP_FSETID: u32 = 4;

/// Drops every capability, or for uid 0 every other one, from all sets, for good.
pub fn drop(caller: Caller, nested: bool) -> Result<(), Failure> {
    let keep = match (caller.is_root(), nested) {
        (false, _) => 0,
        (true, false) => KEPT_BY_ROOT,
        (true, true) => KEPT_BY_ROOT | FOR_NESTED,
    };
    sys::keep_capabilities(keep).during(Step::Capabilities, "capset")
}
