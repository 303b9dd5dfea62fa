//! `srt-decider-example`: not built yet.
fn main() {
    eprintln!("srt-decider-example: not built yet");
    std::process::exit(125);
}
