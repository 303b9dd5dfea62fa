//! Mount points on the host for write-denied paths that do not exist.
//!
//! An absent path can only be denied by a mount over it, and a mount needs something to lie on. So an empty file or
//! folder is made there for as long as commands run. When one run unlinks such a placeholder, its mount goes in *every*
//! mount namespace, and the command of another run could then make the real path. Therefore each run holds a shared
//! lock on each placeholder it uses, and one is removed only by whoever gets the exclusive lock, after a look that it
//! is still the same and still empty.
//!
//! A process of its own ([`Keeper`]) makes and removes them. It outlives the launcher, `kill -9` included, by as long as
//! the removal takes; what it cannot remove because it was killed itself, the next run of anybody removes, by the
//! [`manifest`] it left.

mod keeper;
mod manifest;
mod placeholder;

pub use keeper::{Keeper, Kept};
pub use manifest::{live_placeholders, state_folder};
