//! Every size, count and deadline of the proxy, each with its reason.

use std::time::Duration;

/// Bytes read from `--ca-fd`: a certificate and an RSA key in PEM are under 10 KiB; a chain with a preamble fits too.
pub const CA_BYTES: u64 = 1 << 20;
/// How long the host may take to write the CA, or the settings, and close its end.
pub const START_INPUT: Duration = Duration::from_secs(10);

/// Buffer of a connection that waits for a request: most heads fit, and 256 idle tunnels hold half a MiB.
pub const READ_IDLE: usize = 2 * 1024;
/// One read of a head or a small body.
pub const READ_SMALL: usize = 8 * 1024;
/// One read of a large body: four TLS records; larger reads gained nothing when measured.
pub const READ_BULK: usize = 64 * 1024;
/// Pieces up to this size are copied together and leave in one write; one TLS record.
pub const COALESCE: usize = 16 * 1024;

/// Terminated tunnels at once: each holds two sockets and two TLS states, some 60 KiB.
pub const TUNNELS: u32 = 256;
/// Milliseconds for each verdict. The reference's value; deciders count on it.
pub const VERDICT_MS: u64 = 5_000;
/// Body bytes held for the decider in all. Part of the protocol: hosts size their memory by it.
pub const HELD_BODIES: usize = 64 << 20;
/// Events waiting for their reader; some 300 bytes each, 5 KiB at the most.
pub const EVENTS_QUEUED: usize = 4096;
/// Characters of a method or path in an event. All of the event must fit into a packet for the launcher, and many of
/// them wait in the queue.
pub const EVENT_TEXT: usize = 2048;
/// Frames written for a decider that does not read: two of the largest body frames and the requests beside them.
/// Past it the decider counts as dead.
pub const FRAMES_QUEUED: usize = 117 << 20;
/// Bytes kept of an emptied buffer of frames: a few body frames of the usual size, so that it is not made anew for each.
pub const FRAMES_KEPT: usize = 1 << 20;
/// How long the decider may take for its hello: it may be an interpreter that starts on a busy machine.
pub const HELLO: Duration = Duration::from_secs(60);
/// How long clients of a proxy that cannot start are still answered.
pub const REFUSE_WAITING: Duration = Duration::from_millis(250);
/// Client connections at once; past it new ones wait in the listener's backlog.
pub const CONNECTIONS: usize = 2048;
/// After a failed accept (no descriptors left, mostly) we wait before the next: each try would fail at once.
pub const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);
/// What answers in flight get to finish when the proxy stops, and then what is left of the events.
pub const DRAIN: Duration = Duration::from_secs(1);
/// A TLS handshake with a client, from its CONNECT on.
pub const CLIENT_HANDSHAKE: Duration = Duration::from_secs(10);
/// A request head, once its first byte came: a slow head holds a connection and nothing else.
pub const REQUEST_HEAD: Duration = Duration::from_secs(30);
/// Without a request on a connection, or without progress on a transfer.
pub const IDLE: Duration = Duration::from_secs(300);
/// How long a connection keeps its buffers while no request comes. A busy client is back sooner, an idle tunnel
/// should cost nothing.
pub const KEEP_BUFFERS: Duration = Duration::from_secs(1);
/// Bytes of pipelined requests read ahead while one is served; enough to see the client leave.
pub const PIPELINED: usize = 16 * 1024;
/// How often a client that has sent more than that is looked for while its answer is waited for.
pub const LOOK: Duration = Duration::from_secs(1);
/// After a refusal the client may still be sending: reading a little longer keeps the kernel from throwing the
/// answer away with a reset (RFC 9112, section 9.6).
pub const LINGER: Duration = Duration::from_secs(2);
/// Bytes read and thrown away in that time.
pub const LINGER_BYTES: usize = 4 << 20;

// ---- TLS towards the client

/// Bytes of a ClientHello, record headers included, before it counts as malformed.
///
/// Browsers send about 2 KiB with a post-quantum key share; the largest seen in the wild stay under 16 KiB.
/// The handshake format would allow 16 MiB.
pub const CLIENT_HELLO: usize = 64 * 1024;

/// Minted certificates kept, one for each name.
///
/// Minting costs 5 % of a handshake, so this is about a host showing the same certificate twice, not speed.
pub const LEAVES: usize = 256;

/// How long a minted certificate is valid. Under every limit clients set (398 days is the strictest);
/// it is renewed at half of that, so a proxy may run for years.
pub const LEAF_VALIDITY: Duration = Duration::from_secs(30 * 24 * 3600);

/// How far a certificate's validity starts in the past, for clients whose clock is behind.
pub const LEAF_BACKDATE: Duration = Duration::from_secs(3600);

/// How long a CA made for one session is valid: no session lasts a year, and a forgotten trust store entry
/// should not last for ever.
pub const SESSION_CA_VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);

// ---- Upstream

/// One name's lookup, all servers, retries and both address families together.
///
/// The resolver's own timers would allow a dead server 3 rounds of 5 s for each address family.
pub const RESOLVE: Duration = Duration::from_secs(10);

/// How long the second address family may lag behind the first that gave addresses (RFC 8305, section 3):
/// some servers never answer AAAA questions.
pub const RESOLVE_LAG: Duration = Duration::from_millis(50);

/// TCP connect, all addresses together.
pub const CONNECT: Duration = Duration::from_secs(30);

/// Head start of one address before the next is tried beside it (RFC 8305, section 5).
pub const CONNECT_STAGGER: Duration = Duration::from_millis(250);

/// The TLS handshake with an upstream, from the first byte sent. Also covers loading the roots.
pub const UPSTREAM_HANDSHAKE: Duration = Duration::from_secs(10);

/// Upstream names whose TLS sessions are kept for resumption: a few KiB each.
pub const UPSTREAM_SESSIONS: usize = 256;

/// Bytes of `/etc/hosts` read. Block lists of a few MiB exist.
pub const HOSTS_FILE: u64 = 16 * 1024 * 1024;

/// Bytes of `/etc/resolv.conf` read.
pub const RESOLV_CONF: u64 = 64 * 1024;

/// Addresses of one name that are looked at. A DNS answer over TCP could carry thousands.
pub const ADDRESSES: usize = 64;

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

// ---- Attached sandboxes and settings

/// Sandboxes attached at once; each is a listener and a socket.
pub const SESSIONS: usize = 1024;

/// Bytes of one line of settings; a list of 10,000 hosts is a quarter of a MiB.
pub const CONTROL_LINE: u64 = 4 << 20;

/// Lines read ahead while one is put into force: the writer has to wait sooner than memory grows.
pub const CONTROL_QUEUED: usize = 4;

/// Bytes of the settings on `--settings-fd`.
pub const SETTINGS: u64 = 4 << 20;

/// How long a client may be silent in a tunnel before we look whether its server speaks first, as servers of mail,
/// databases and SSH do. Long enough that a TLS client has sent its first bytes, short enough not to be noticed.
pub const SERVER_FIRST: Duration = Duration::from_millis(300);

/// A SOCKS request, from its first byte on: some forty bytes.
pub const SOCKS_HANDSHAKE: Duration = Duration::from_secs(10);

/// One direction's buffer of an opaque tunnel.
pub const TUNNEL_BUFFER: usize = 16 * 1024;
