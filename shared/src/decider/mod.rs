//! The decider protocol, version 1: frames, messages and their strictness, for both ends.
