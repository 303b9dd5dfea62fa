//! `srt-launch`: not built yet.
fn main() {
    eprintln!("srt-launch: not built yet");
    std::process::exit(srt_launch::exit::OWN_FAILURE);
}
