//! Every size and count of the protocols, with its reason. The decider's are fixed by version 1 of its
//! protocol: both ends must count alike, or one would take for a violation what the other sends in good faith.

/// The longest frame payload of either direction, but for `body`.
pub const MAX_FRAME: usize = 1 << 20;

/// The longest payload of a `body` frame: 32 MiB in base64 and the object around it.
pub const MAX_BODY_FRAME: usize = 44_739_302;

/// The most bytes of a body that a decider may ask for.
pub const MAX_NEED_BODY: u32 = 32 << 20;

/// The most header values in a `req` or in `setHeaders`, and names in `removeHeaders`. A name without a value
/// counts as one.
pub const MAX_FIELD_VALUES: usize = 190;

/// The most bytes of header names and values together, in UTF-8, each name once.
pub const MAX_FIELD_BYTES: usize = 64 << 10;

/// The most bytes in UTF-8 of each of `host`, `hostHeader`, `sni` and `path`.
pub const MAX_TARGET_BYTES: usize = 8 << 10;

/// The longest reason of a deny, in bytes of UTF-8.
pub const MAX_REASON: usize = 1 << 10;

/// The longest credential, in bytes: what the header line of common servers can hold.
pub const MAX_CREDENTIAL: usize = 8 << 10;

/// The highest id: the last integer that every JSON reader holds exactly (RFC 8259 section 6).
pub const MAX_ID: u64 = (1 << 53) - 1;

/// How deep a message may nest: one level more than the deepest well-formed one, `{"headers":{"name":[…]}}`.
pub const MAX_MESSAGE_DEPTH: usize = 4;

/// The longest packet on an attach socket. A `SOCK_SEQPACKET` message is taken whole or not at all, and
/// twice this still fits the default socket buffer.
pub const MAX_ATTACH_PACKET: usize = 64 << 10;

/// The longest name of a session: it stands in every event.
pub const MAX_SESSION_NAME: usize = 128;

/// The longest reason shown to people, in UTF-16 units, as the reference counts it.
pub const MAX_SHOWN_REASON: usize = 500;
