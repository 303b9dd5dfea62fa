//! Hosts, and the patterns of the allow and deny lists.
