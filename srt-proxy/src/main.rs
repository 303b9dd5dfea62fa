//! `srt-proxy`
fn main() {}
