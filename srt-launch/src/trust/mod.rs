//! What a command inside trusts when TLS is terminated: the system's roots and the proxy's CA, in the two forms that
//! programs read.

mod bundle;
mod pkcs12;

pub use bundle::{Bundle, SYSTEM_BUNDLES};
pub use pkcs12::{CertificateError, trust_store};
