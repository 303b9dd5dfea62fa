//! From a target to a connection: resolve once, check, dial the address that passed.
