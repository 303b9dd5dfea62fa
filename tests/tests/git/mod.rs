//! A git server: `git http-backend`, spoken to as CGI (RFC 3875).

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use srt_tests::program::{Program, start};
use srt_tests::proxy::{Conn, Message};

/// git without the configuration of this machine.
pub fn program() -> Program {
    ["AUTHOR", "COMMITTER"]
        .into_iter()
        .fold(Program::new("git"), |git, who| {
            git.env(&format!("GIT_{who}_NAME"), "Test").env(&format!("GIT_{who}_EMAIL"), "test@app.test")
        })
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
}

/// Makes an empty repository that takes pushes from anybody.
pub fn make_bare(path: &Path) {
    program().args(["init", "--quiet", "--bare", "--initial-branch=main"]).arg(path).run().succeeded();
    program().arg("-C").arg(path).args(["config", "http.receivepack", "true"]).run().succeeded();
}

/// The references of a repository.
pub fn refs(path: &Path) -> String {
    program().arg("-C").arg(path).arg("for-each-ref").run().succeeded().text()
}

/// Serves the repositories under `root`.
pub fn backend(root: PathBuf) -> impl Fn(&mut Conn, &Message) -> io::Result<()> + Send + Sync + 'static {
    move |conn, head| {
        let (path, query) = head.target().split_once('?').unwrap_or((head.target(), ""));
        let mut command = Command::new("git");
        command.arg("http-backend").env_clear();
        for (name, value) in [
            ("PATH", std::env::var("PATH").unwrap_or_default().as_str()),
            ("GIT_PROJECT_ROOT", root.to_str().unwrap_or_default()),
            ("GIT_HTTP_EXPORT_ALL", "1"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("REQUEST_METHOD", head.method()),
            ("PATH_INFO", path),
            ("QUERY_STRING", query),
            ("REMOTE_USER", "test"),
            ("CONTENT_TYPE", head.field("content-type").unwrap_or_default()),
            ("HTTP_CONTENT_ENCODING", head.field("content-encoding").unwrap_or_default()),
            ("GIT_PROTOCOL", head.field("git-protocol").unwrap_or_default()),
        ] {
            command.env(name, value);
        }
        let mut body = Vec::new();
        conn.body(head, false).read_to_end(&mut body)?;
        let mut child = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        // It reads its whole input before it answers, so there is no need for a second thread.
        let written = child.stdin.take().expect("piped").write_all(&body);
        let output = child.wait_with_output()?.stdout;
        written?;
        answer(conn, &output)
    }
}

/// Turns the answer of a CGI program into one of HTTP.
fn answer(conn: &mut Conn, output: &[u8]) -> io::Result<()> {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    let (head, body) = (String::from_utf8_lossy(&output[..end]), &output[end + 4..]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let fields: String =
        head.lines().filter(|line| !line.starts_with("Status: ")).map(|line| format!("{line}\r\n")).collect();
    conn.send(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len()))?;
    conn.send(body)
}
