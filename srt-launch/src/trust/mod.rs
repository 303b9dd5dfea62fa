//! What a command inside trusts when TLS is terminated: the system's roots and the proxy's CA, in the two forms that
//! programs read.

mod bundle;
mod pkcs12;

use std::path::{Path, PathBuf};

use crate::plan::{PROVIDED, Provided, Trust};

pub use bundle::{Bundle, SYSTEM_BUNDLES};
pub use pkcs12::{CertificateError, trust_store};

const BUNDLE: &str = "ca/bundle.pem";
const JAVA_STORE: &str = "ca/trust.p12";

/// Where both lie inside.
pub fn places() -> Trust {
    let inside = |name| Path::new(PROVIDED).join(name);
    Trust { bundle: inside(BUNDLE), java_store: Some(inside(JAVA_STORE)) }
}

/// Makes both from the proxy's CA certificate. `roots` names the caller's own bundle, `extra` further files.
pub fn provide(ca_pem: &str, roots: Option<&Path>, extra: &[PathBuf]) -> Vec<Provided> {
    let mut bundle = Bundle::of_system(roots);
    bundle.add(ca_pem);
    for file in extra {
        bundle.add_file(file);
    }
    let over = SYSTEM_BUNDLES.iter().filter_map(|path| Path::new(path).canonicalize().ok());
    let mut bind_over: Vec<PathBuf> = over.filter(|path| path.is_file()).collect();
    bind_over.sort_unstable();
    bind_over.dedup();
    let mut provided = Vec::new();
    // Java goes without where a certificate is absurd; everything else still works.
    if let Ok(store) = trust_store(bundle.certificates()) {
        provided.push(Provided { name: JAVA_STORE.to_owned(), contents: store, bind_over: Vec::new() });
    }
    let contents = bundle.as_pem().as_bytes().to_vec();
    provided.push(Provided { name: BUNDLE.to_owned(), contents, bind_over });
    provided
}
