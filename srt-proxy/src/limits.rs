//! Every size, count and deadline of the proxy, each with the reason for its value.

// --- HTTP/1.1 codec -------------------------------------------------------------------------------

/// Bytes of one message head, its final empty line included.
///
/// The decider protocol has no limit on a query but the 1 MiB of its frame, in which a byte may take two
/// or six once escaped, so a head that can be asked about stays under this; what is larger cannot be.
pub const HEAD_MAX: usize = 2 * 1024 * 1024;

/// Field lines of one head.
///
/// The decider is asked about at most 190 values; that is judged later, with an error of its own. This
/// bound only keeps a 2 MiB head of `a:` lines from turning into half a million index entries.
pub const FIELDS_MAX: usize = 4096;

/// Options in all `Connection` fields of one head.
///
/// Every option that is not a well-known one is compared with every field name; a bound keeps that from
/// becoming a quadratic burden. Real messages carry one or two.
pub const CONNECTION_OPTIONS_MAX: usize = 64;

/// Bytes of one chunk-size line before its LF, extensions included.
///
/// A size takes at most 16. Extensions are thrown away, so nothing is gained by reading long ones, and a
/// sender of long ones spends our time without moving a body.
pub const CHUNK_LINE_MAX: usize = 1024;

/// Bytes of a trailer section, its final empty line included: as much as the header fields of a request
/// that a decider can be asked about.
pub const TRAILERS_MAX: usize = 64 * 1024;

/// Field lines of a trailer section; gRPC sends three, a generous message some ten.
pub const TRAILER_FIELDS_MAX: usize = 256;
