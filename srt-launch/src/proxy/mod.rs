//! The way out of a sandbox: one listening socket made inside its network namespace and served from outside.
//!
//! Either a running `srt-proxy` gets the socket ([`Session`]), or our own outside process relays what comes in to some
//! other proxy of the host ([`Relay`]). Without either a sandbox has no network.

mod attach;
mod listener;
mod news;
mod probe;
mod relay;
mod violations;

pub use attach::{AttachFailure, Liveness, Session};
pub use listener::{PROXY_PORT, listen};
pub use news::{News, Told};
pub use relay::{Relay, RelayTarget};
pub use violations::{Ignored, report};
