use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::{AttachProxy, Folder};
use crate::binary::binary;
use crate::program::start;
use crate::sys;

/// A shell in a sandbox that connects and sends as it is told, and tells what came back.
#[derive(Debug)]
pub struct Probe {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

const PROBE: &str = r#"
trap '' PIPE
attempt() { printf "$3" >&3; base64 -w0 <&3; }
while read -r address port bytes; do
  attempt "$address" "$port" "$bytes" 3<>"/dev/tcp/$address/$port" || printf refused
  echo
done 2>/dev/null
"#;

impl Probe {
    /// Starts it in a sandbox of its own, attached to `proxy`.
    pub fn attached(folder: &Folder, proxy: &AttachProxy, name: &str, allow: &[&str]) -> Self {
        let mut command = Command::new(binary("srt-launch"));
        sys::reset_inherited(&mut command);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", folder.home()).current_dir(folder.work());
        let socket = proxy.attach_socket();
        command.args(["--proxy-fd", &socket.as_raw_fd().to_string(), "--name", name]);
        command.args(allow.iter().flat_map(|host| ["--allow", host]));
        command.args(["--", "bash", "-c", PROBE]).stdin(Stdio::piped()).stdout(Stdio::piped());
        sys::inherit(&mut command, vec![socket]);
        let mut child = start(&mut command);
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { orders: child.stdin.take(), answers, child }
    }

    /// What comes back for `bytes` until the other end closes; `None` when nobody listens there.
    pub fn attempt(&mut self, address: &str, port: u16, bytes: impl AsRef<[u8]>) -> Option<String> {
        let bytes: String = bytes.as_ref().iter().map(|byte| format!("\\x{byte:02x}")).collect();
        writeln!(self.orders.as_mut().unwrap(), "{address} {port} {bytes}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let answer = answer.strip_suffix('\n').expect("the probe has ended");
        (answer != "refused").then(|| decode_base64(answer))
    }

    /// The same at the sandbox's own port.
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Option<String> {
        self.attempt("127.0.0.1", 3128, bytes)
    }

    /// Ends the command, and waits for its sandbox to end.
    pub fn end(mut self) {
        drop(self.orders.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn decode_base64(text: &str) -> String {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0u32, |bits, &byte| bits << 6 | u32::from(value(byte)));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
