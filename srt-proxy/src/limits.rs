//! Every deadline, size and count of the proxy, each with its reason.

use std::time::Duration;

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
