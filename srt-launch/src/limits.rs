//! Every wait and count of the launcher, each with its reason.

use std::time::Duration;

/// From the first signal that asks the command to end until it is killed. What container runtimes give.
pub const GRACE: Duration = Duration::from_secs(10);

/// How many events of one run are kept, some hundred bytes each. More are counted.
pub const MAX_EVENTS: usize = 10_000;

/// How many lines a report of refusals has: people and models read it. More are counted.
pub const MAX_REPORT_LINES: usize = 200;

/// How often a plan is made anew because files it names came or went meanwhile. Each attempt takes
/// milliseconds; a tree that changes faster than that is no tree to protect.
pub const PLAN_ATTEMPTS: u32 = 20;

/// How long to wait for another run that is making or removing the same placeholder. It holds the lock for
/// microseconds, unless it was stopped.
pub const PLACEHOLDER_WAIT: Duration = Duration::from_secs(2);

/// Pause between two looks at such a placeholder.
pub const PLACEHOLDER_PAUSE: Duration = Duration::from_millis(1);

/// How long the janitor tries to remove a placeholder that a stranger has locked before it leaves it to the
/// next run.
pub const JANITOR_PATIENCE: Duration = Duration::from_millis(300);

/// How long pid 1 waits for an answer whether it was a key that has stopped or ended the command.
pub const KEYBOARD_PATIENCE: Duration = Duration::from_millis(50);
