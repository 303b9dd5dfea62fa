//! Classes of IP addresses that a name must not lead to, and ranges of addresses.
