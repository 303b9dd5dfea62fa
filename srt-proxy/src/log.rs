//! Logging: what happens, to stderr, under `--debug`. Never a header value, a query, a body or a credential.

/// Sets up logging. Without `debug` only warnings are shown.
pub fn init(debug: bool) {
    let level = if debug { tracing::Level::DEBUG } else { tracing::Level::WARN };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .init();
}
