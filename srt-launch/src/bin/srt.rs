//! `srt`: not built yet.
fn main() {
    eprintln!("srt: not built yet");
    std::process::exit(srt_launch::exit::OWN_FAILURE);
}
