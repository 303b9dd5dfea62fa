//! Values that must not be printed.

use std::{fmt, hint::black_box};

/// A credential. It has no text form, is overwritten when dropped, and compares in constant time.
///
/// Overwriting is best effort: copies that the allocator or the kernel made on the way here are out of reach.
#[derive(Clone, Default)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The bytes. Every call is a place where a secret leaves its keeping, so there should be few.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Without a reader the compiler may leave the dead store out.
        black_box(self.0.as_slice());
    }
}

/// Takes the same time for every pair of one length, so that a guess learns nothing from how long it took.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && black_box(self.0.iter().zip(&other.0).fold(0, |diff, (a, b)| black_box(diff | (a ^ b)))) == 0
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_printed() {
        let secret = Secret::from("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), "Secret(7 bytes)");
        assert_eq!(format!("{:#?}", Some(&secret)), "Some(\n    Secret(7 bytes),\n)");
    }

    #[test]
    fn compares_by_content() {
        let secret = |text: &str| Secret::from(text.to_owned());
        assert_eq!(secret("abc"), secret("abc"));
        assert_eq!(secret(""), secret(""));
        for other in ["abd", "bbc", "ab", "abcd", ""] {
            assert_ne!(secret("abc"), secret(other), "{other}");
        }
    }
}
