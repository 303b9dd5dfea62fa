//! The attach protocol: how a launcher points a sandbox at a running proxy.
