//! Everything around `srt-proxy`: the host that starts it, its decider, its clients and its upstreams.
//!
//! Names resolve through `--resolve NAME=127.0.0.1 --allow-resolved 127.0.0.1`, so nothing here needs root, a
//! name server or a network. Clients trust only the CA that the proxy mints with, the proxy only the one of the
//! upstreams: an answer through a tunnel proves that TLS was terminated.

mod client;
mod conn;
mod decider;
mod launcher;
mod pki;
mod process;
mod site;
mod upstream;

pub use client::{connect, connect_tunnel, programs_env, try_tunnel};
pub use conn::{Body, Conn, Message, PATIENCE};
pub use decider::{Rule, TestDecider};
pub use launcher::{Launchers, Sandbox};
pub use pki::{Pki, sha256};
pub use process::{Exited, Starter, TestProxy};
pub use site::{Site, pattern, site};
pub use upstream::{Seen, TestUpstream};

/// The name that the upstreams of most tests go by.
pub const APP: &str = "app.test";
