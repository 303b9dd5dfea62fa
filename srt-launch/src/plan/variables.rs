//! Tables of environment variables, and what each program reads there.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

/// The address every client inside is given, HTTP and SOCKS5 on one port.
pub const PROXY_ADDRESS: &str = "127.0.0.1:3128";
const PROXY_HOST: &str = "127.0.0.1";
const PROXY_PORT: &str = "3128";

/// Variables that name a proxy. Those of the host are taken out of every environment: they lead nowhere from
/// inside, and may hold a password.
pub(super) const PROXY: [(&str, Option<&str>); 24] = [
    // What most programs read; libcurl reads `http_proxy` in lower case only.
    ("HTTP_PROXY", Some("http://127.0.0.1:3128")),
    ("http_proxy", Some("http://127.0.0.1:3128")),
    ("HTTPS_PROXY", Some("http://127.0.0.1:3128")),
    ("https_proxy", Some("http://127.0.0.1:3128")),
    ("ALL_PROXY", Some("http://127.0.0.1:3128")),
    ("all_proxy", Some("http://127.0.0.1:3128")),
    // FTP needs a tunnel for its data connection, which an HTTP proxy does not give.
    ("FTP_PROXY", Some("socks5h://127.0.0.1:3128")),
    ("ftp_proxy", Some("socks5h://127.0.0.1:3128")),
    ("GRPC_PROXY", Some("http://127.0.0.1:3128")),
    ("grpc_proxy", Some("http://127.0.0.1:3128")),
    // The sandbox's own loopback. No ranges and no brackets: some clients fail on either.
    ("NO_PROXY", Some("localhost,127.0.0.1,::1")),
    ("no_proxy", Some("localhost,127.0.0.1,::1")),
    // rsync wants no scheme.
    ("RSYNC_PROXY", Some(PROXY_ADDRESS)),
    ("DOCKER_HTTP_PROXY", Some("http://127.0.0.1:3128")),
    ("DOCKER_HTTPS_PROXY", Some("http://127.0.0.1:3128")),
    ("CLOUDSDK_PROXY_TYPE", Some("http")),
    ("CLOUDSDK_PROXY_ADDRESS", Some(PROXY_HOST)),
    ("CLOUDSDK_PROXY_PORT", Some(PROXY_PORT)),
    ("CLOUDSDK_PROXY_USERNAME", None),
    ("CLOUDSDK_PROXY_PASSWORD", None),
    // Node's own fetch reads the variables above from 22.21 on, and only with this.
    ("NODE_USE_ENV_PROXY", Some("1")),
    // npm heeds these before the ones above.
    ("npm_config_proxy", None),
    ("npm_config_https_proxy", None),
    ("npm_config_noproxy", None),
];

/// Whether a variable of the caller's names a proxy of the host: one of the above in any case, or one that a program
/// reads as its own (`CARGO_HTTP_PROXY`, `YARN_HTTPS_PROXY`) and would heed before those. What is called a proxy and holds
/// no address is left alone: `X509_USER_PROXY` is a file.
pub(super) fn names_a_proxy(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.as_bytes().to_ascii_uppercase(), value.as_bytes());
    let known = PROXY.iter().any(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
    let address = value.contains(&b':') && !value.starts_with(b"/");
    known || name.ends_with(b"_PROXY") && address
}

/// Further arguments for `ssh` that git starts: names are resolved and connections made by the proxy, and no
/// connection of the host is shared.
pub(super) const SSH_ARGUMENTS: &str =
    "-o ControlMaster=no -o ControlPath=none -o 'ProxyCommand=/dev/srt/connect %h %p'";

/// System properties for JVMs, which read no proxy variable at all.
pub(super) const JAVA_PROXY_OPTIONS: &str = "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 \
     -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts=localhost|127.*|[::1]";

/// Variables that name a bundle of trusted certificates, in the place of a program's own.
pub(super) const TRUST_BUNDLE: [&str; 13] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
    // Node and Deno add it to their own.
    "NODE_EXTRA_CA_CERTS",
    "DENO_CERT",
    "NIX_SSL_CERT_FILE",
    "CARGO_HTTP_CAINFO",
    "HTTPLIB2_CA_CERTS",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
];

/// A folder of hashed certificates, beside the bundle: ours has none.
pub(super) const TRUST_DIRECTORY: &str = "SSL_CERT_DIR";

/// System properties that give a JVM another trust store, which is neither encrypted nor sealed.
pub(super) fn java_trust_options(store: &Path) -> String {
    format!("-Djavax.net.ssl.trustStore={} -Djavax.net.ssl.trustStoreType=PKCS12", store.display())
}
