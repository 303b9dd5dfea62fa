//! The application protocols offered, on both legs.

/// HTTP/1.1 (RFC 7301 section 6). HTTP/2 is added here, once there is a codec for it.
pub(super) fn offered() -> Vec<Vec<u8>> {
    vec![b"http/1.1".to_vec()]
}
