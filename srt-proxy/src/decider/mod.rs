//! The decider: who is asked about every request, over a link that fails closed.

mod budget;
mod link;
mod table;

pub use budget::{BodyBudget, Reservation};
pub use link::{AskError, Ended, Link, LinkError, Question, connect};
pub use table::Answer;
