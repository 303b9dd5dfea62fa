//! The smallest decider: one request of one host, on standard input and output.
use srt_shared::decider::frame::{FrameReader, Side};
use srt_shared::decider::{Decision, Denial, Edits, FromProxy, Hello, Verdict, parse_from_proxy};
use std::io::{Read, Write, stdin, stdout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut frames, mut out, mut chunk) = (FrameReader::new(Side::Decider), Vec::new(), [0; 1 << 16]);
    loop {
        while let Some(frame) = frames.next_frame()? {
            match parse_from_proxy(frame)? {
                FromProxy::Hello => Hello::new(&["api.example.com"], &[])?.encode(&mut out)?,
                FromProxy::Req(req) => {
                    let decision = match (req.method.as_str(), req.path.as_str(), req.query) {
                        ("GET", "/v1/models", None) => Decision::Allow(Edits::default()),
                        _ => Decision::Deny(Denial::new(403, Some("only GET /v1/models"))?),
                    };
                    Verdict { id: req.id, decision }.encode(&mut out)?;
                }
                FromProxy::Body(_) => return Err("a body that was not asked for".into()),
            }
        }
        stdout().write_all(&out)?;
        stdout().flush()?;
        out.clear();
        match stdin().read(&mut chunk)? {
            0 => return Ok(()),
            length => frames.tail().extend_from_slice(&chunk[..length]),
        }
    }
}
