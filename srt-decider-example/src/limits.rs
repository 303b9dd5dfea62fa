//! Every size, count and time of this decider, with its reason. Those of the protocol are `srt_shared::limits`.

use std::time::Duration;

/// How long the proxy may live on without a decider: it lets answers under way finish for one second.
pub const STOP_GRACE: Duration = Duration::from_secs(10);

/// The longest rules file. A thousand rules are a tenth of it.
pub const MAX_RULES_FILE: u64 = 1 << 20;

/// How many bytes of a body are asked for where the rules file does not say: enough for a prompt of some
/// hundred pages, and 64 such bodies fit into what the proxy holds at once.
pub const DEFAULT_MAX_BODY: u32 = 1 << 20;

/// How deep a JSON body may nest: tool definitions reach about 20 levels.
pub const MAX_JSON_DEPTH: usize = 64;

/// The longest credential file: the longest credential and a line end.
pub const MAX_CREDENTIAL_FILE: u64 = srt_shared::limits::MAX_CREDENTIAL as u64 + 2;

/// How many requests may wait for their body. The proxy forgets what is further behind the newest id; what was
/// abandoned on the way would otherwise stay for ever.
pub const MAX_WAITING: u64 = 4096;

/// How much is read from the proxy at once.
pub const READ_BYTES: usize = 64 << 10;
