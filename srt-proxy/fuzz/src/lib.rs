//! What the fuzz targets share.

/// Cuts an input in two: its first byte says how the rest is to be cut into reads, and how long these are.
///
/// Empty inputs have no rest.
pub fn split(input: &[u8]) -> Option<(&[u8], impl Iterator<Item = &[u8]> + Clone)> {
    let (&size, bytes) = input.split_first()?;
    Some((bytes, bytes.chunks(usize::from(size).max(1))))
}
