//! TLS towards the client (minted leaves) and towards the upstream (verified).
//!
//! Towards the client: [`client_hello`] looks at a tunnel's first bytes, [`LeafCache`] gives the certificate
//! for the host the tunnel leads to, [`ServerTls`] completes the handshake on the tunnel's own socket.
//! Towards the upstream: [`UpstreamTls`] verifies the name against the host's roots.
//!
//! The crypto provider is always passed explicitly ([`provider`]); nothing process-wide is installed.

mod alpn;
mod ca;
mod cache;
mod client;
mod der;
mod hello;
mod issuer;
mod leaf;
mod provider;
mod server;
#[cfg(test)]
mod testing;

pub use ca::{Authority, CaError};
pub use cache::LeafCache;
pub use client::{RootsError, UpstreamTls, UpstreamTlsError};
pub use hello::{ClientHello, HelloState, client_hello};
pub use leaf::MintError;
pub use provider::provider;
pub use server::{ClientStream, ServerTls};
