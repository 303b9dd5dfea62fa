use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

use srt_shared::decider::frame::{FrameReader, Side};
use srt_shared::decider::{
    Body, Decision, Denial, Edits, FromProxy, Hello, NeedBody, Req, Verdict, parse_from_proxy,
};

/// What a decider says to a request, first without its body and, if it wants to see that, once more with it.
/// `None` is silence.
pub trait Rule: Fn(&Req, Option<&Body>) -> Option<Decision> + Send + 'static {}

impl<F: Fn(&Req, Option<&Body>) -> Option<Decision> + Send + 'static> Rule for F {}

/// A decider on a thread of this process.
#[derive(Debug)]
pub struct TestDecider {
    proxy_end: UnixStream,
    asked: Arc<Mutex<Vec<Req>>>,
}

impl TestDecider {
    /// A decider whose hello allows these hosts, and that judges by `rule`.
    pub fn new(allowed: &[&str], denied: &[&str], rule: impl Rule) -> Self {
        let (proxy_end, ours) = UnixStream::pair().unwrap();
        let hello = Hello::new(allowed, denied).unwrap();
        let asked = Arc::<Mutex<Vec<Req>>>::default();
        let log = Arc::clone(&asked);
        thread::spawn(move || serve(ours, &hello, &log, &rule));
        Self { proxy_end, asked }
    }

    /// A decider that allows every request to these hosts.
    pub fn allowing(hosts: &[&str]) -> Self {
        Self::new(hosts, &[], |_: &Req, _: Option<&Body>| Some(Self::allow()))
    }

    /// The requests it was asked about so far; taken, so that the next call tells of later ones.
    pub fn take_asked(&self) -> Vec<Req> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// The end that the proxy gets.
    pub fn proxy_end(&self) -> OwnedFd {
        self.proxy_end.try_clone().unwrap().into()
    }

    /// An allow that changes nothing.
    pub fn allow() -> Decision {
        Decision::Allow(Edits::default())
    }

    /// A deny.
    pub fn deny(status: u16, reason: &str) -> Decision {
        Decision::Deny(Denial::new(status, Some(reason)).unwrap())
    }

    /// A wish to see up to `max` bytes of the body.
    pub fn need_body(max: u32) -> Decision {
        Decision::NeedBody(NeedBody::new(max).unwrap())
    }
}

/// Panics, which ends the link, when the proxy breaks the protocol.
fn serve(mut socket: UnixStream, hello: &Hello, asked: &Mutex<Vec<Req>>, rule: &impl Rule) {
    let mut frames = FrameReader::new(Side::Decider);
    let mut open = HashMap::new();
    let mut answer = Vec::new();
    hello.encode(&mut answer).unwrap();
    loop {
        while let Some(frame) = frames.next_frame().unwrap() {
            let (id, decision) = match parse_from_proxy(frame).unwrap() {
                FromProxy::Hello => continue,
                FromProxy::Req(req) => {
                    asked.lock().unwrap().push(Req::clone(&req));
                    let decision = rule(&req, None);
                    let id = req.id;
                    if matches!(decision, Some(Decision::NeedBody(_))) {
                        open.insert(id, req);
                    }
                    (id, decision)
                }
                FromProxy::Body(body) => {
                    let req = open.remove(&body.id).expect("a body that was asked for");
                    (body.id, rule(&req, Some(&body)))
                }
            };
            if let Some(decision) = decision {
                Verdict { id, decision }.encode(&mut answer).unwrap();
            }
        }
        // The proxy may stop at any time.
        if socket.write_all(&answer).is_err() {
            return;
        }
        answer.clear();
        let mut buffer = [0; 16 * 1024];
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(n) => frames.tail().extend_from_slice(&buffer[..n]),
        }
    }
}
