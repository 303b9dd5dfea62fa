use std::fmt::Write;

/// The place of a value in a document, as people write it: `network.allowedDomains[3]`.
#[derive(Debug, Default)]
pub(super) struct Path {
    text: String,
    starts: Vec<usize>,
}

impl Path {
    pub(super) fn push_key(&mut self, key: &str) {
        self.starts.push(self.text.len());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
        if !key.is_empty() && key.chars().all(plain) {
            if !self.text.is_empty() {
                self.text.push('.');
            }
            self.text.push_str(key);
        } else {
            write!(self.text, "[{key:?}]").expect("invariant: writing to a string cannot fail");
        }
    }

    pub(super) fn push_index(&mut self, index: usize) {
        self.starts.push(self.text.len());
        write!(self.text, "[{index}]").expect("invariant: writing to a string cannot fail");
    }

    pub(super) fn pop(&mut self) {
        self.text.truncate(self.starts.pop().expect("invariant: every pop has its push"));
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}
