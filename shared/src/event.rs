//! Event records: what was allowed, refused, failed, closed.
