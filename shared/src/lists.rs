//! Allow and deny lists: one function, one answer.
