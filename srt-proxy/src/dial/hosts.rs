//! `/etc/hosts`, read by ourselves (hosts(5)).
//!
//! The resolver library asks DNS for the address family that a hosts line leaves out and mixes both answers; for
//! a program that pins where a name leads, a hosts line has to be the whole answer.

use std::{collections::HashMap, io, net::IpAddr, path::PathBuf, sync::Arc};

use super::watched::Watched;
use crate::limits;

/// The names of a hosts file.
pub(super) struct HostsFile {
    names: Watched<Arc<HashMap<String, Vec<IpAddr>>>>,
}

impl HostsFile {
    /// Reads `path` whenever it changed.
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self { names: Watched::new(path, limits::HOSTS_FILE, |text| Arc::new(parse(text))) }
    }

    /// All addresses of a lower-case name, in the order of the file. `None` if the file does not have it.
    ///
    /// # Errors
    /// Those of [`Watched::current`].
    pub(super) fn lookup(&self, name: &str) -> io::Result<Option<Vec<IpAddr>>> {
        Ok(self.names.current()?.get(name).cloned())
    }
}

/// A line that cannot be read is skipped, as everywhere.
fn parse(text: &[u8]) -> HashMap<String, Vec<IpAddr>> {
    let mut names: HashMap<String, Vec<IpAddr>> = HashMap::new();
    for line in text.split(|&byte| byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let line = line.split('#').next().unwrap_or_default();
        let mut fields = line.split_ascii_whitespace();
        let Some(address) = fields.next().and_then(|field| field.parse().ok()) else { continue };
        for name in fields {
            let addresses = names.entry(name.to_ascii_lowercase()).or_default();
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &[&str]) -> Vec<IpAddr> {
        text.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn a_name_has_all_its_addresses_in_order() {
        let names = parse(
            b"127.0.0.1 localhost\n\
              # 1.1.1.1 comment\n\
              10.0.0.2\tApp.Example  alias # 10.0.0.9 other\n\
              ::2 app.example\r\n\
              10.0.0.1 app.example\n\
              10.0.0.2 app.example\n\
              \n\
              10.0.0.3",
        );
        for (name, expected) in [
            ("app.example", &["10.0.0.2", "::2", "10.0.0.1"][..]),
            ("alias", &["10.0.0.2"]),
            ("localhost", &["127.0.0.1"]),
        ] {
            assert_eq!(names[name], addresses(expected), "{name}");
        }
        assert_eq!(names.len(), 3, "{names:?}");
    }

    #[test]
    fn what_cannot_be_read_is_skipped() {
        let names = parse(b"fe80::1%eth0 scoped\n127.1 short\nname 10.0.0.1\n\xff\xfe bytes\n10.0.0.1 last");
        assert_eq!(names.into_keys().collect::<Vec<_>>(), ["last"]);
    }

    #[test]
    fn the_file_is_read_again_when_it_changed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let hosts = HostsFile::new(file.path());
        assert_eq!(hosts.lookup("a.example").unwrap(), None);
        std::fs::write(file.path(), "10.0.0.1 a.example").unwrap();
        assert_eq!(hosts.lookup("a.example").unwrap(), Some(addresses(&["10.0.0.1"])));
        std::fs::write(file.path(), "10.0.0.2 a.example").unwrap();
        assert_eq!(hosts.lookup("a.example").unwrap(), Some(addresses(&["10.0.0.2"])));
        assert_eq!(HostsFile::new("/nonexistent").lookup("a.example").unwrap(), None);
    }
}
