//! Harness of the end-to-end tests: the binaries under test as processes, and everything around them.
#![deny(unsafe_code)]
