//! The one sequence every request goes through, whatever brought it in:
//!
//! 1. who is meant (`target.rs`)
//! 2. may anything go there ([`HostRules`](crate::policy::HostRules))
//! 3. may this request (`ask.rs`)
//! 4. where does it really lead (`upstream.rs`, [`dial`](crate::dial))
//! 5. stream both ways (`forward.rs`)
//!
//! Nothing is resolved, dialled or forwarded before every step ahead of it has said yes.

pub mod record;
pub mod refuse;
pub mod target;

mod answer;
mod ask;
mod body;
mod forward;
mod normalize;
mod outgoing;
mod upstream;

use std::sync::Arc;

use crate::http::{ConnectionOptions, PathAndQuery, RequestHead, RequestTarget, Version, request_framing};
use crate::ingress::{ClientStream, Origin};
use crate::policy::Policy;
use crate::session::Session;
use crate::timer::Timer;
use crate::wire::Wire;
use answer::Completed;
use ask::Question;
use body::RequestBody;
use forward::{Broken, Exchange};
use outgoing::Outgoing;
use record::Record;
use refuse::{NotServed, Refusal};
use target::{Target, host_header};
use upstream::{Connection, Keeper};

pub use upstream::dial_opaque;

/// What becomes of the client's connection after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It may carry another request.
    Request,
    /// It ends in order, after what is written to it.
    Close,
    /// It ends without a word, as the upstream's did, so that a client inside TLS can tell.
    Drop,
    /// It is cut: an answer that began cannot be completed and must not look complete, or nobody is there.
    Abort,
}

/// Why a request ended without the upstream's answer.
#[derive(Debug)]
enum Stop {
    /// It gets an answer of ours.
    Answer(NotServed),
    /// There is nobody to answer, or no way to.
    Cut(&'static str),
}

impl<T: Into<NotServed>> From<T> for Stop {
    fn from(answer: T) -> Self {
        Self::Answer(answer.into())
    }
}

/// Serves the requests of one connection or tunnel.
#[derive(Debug)]
pub struct Pipeline<'s> {
    session: &'s Arc<Session>,
    policy: Arc<Policy>,
    origin: Origin,
    keeper: Keeper,
}

impl<'s> Pipeline<'s> {
    /// A pipeline for what `origin` describes, under `policy` to its end.
    pub fn new(session: &'s Arc<Session>, policy: Arc<Policy>, origin: Origin) -> Self {
        Self { session, policy, origin, keeper: Keeper::default() }
    }

    /// The session it belongs to.
    pub fn session(&self) -> &'s Session {
        self.session
    }

    /// Where its requests come from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Serves one request whose head was read.
    pub async fn serve<S: ClientStream>(
        &mut self,
        client: &mut Wire<S>,
        head: &RequestHead,
        timer: &mut Timer,
    ) -> Next {
        let meant = self.read_target(head);
        let known = self.origin.target().cloned();
        let mut record = Record::new(self.session, self.origin.ingress(), known.as_ref());
        record.set_method(head.method());
        let served = match &meant {
            Ok((target, resource)) => {
                record.set_target(target, resource.path());
                self.run(client, head, target, resource, timer).await
            }
            Err(refusal) => Err(refusal.clone().into()),
        };
        match served {
            Ok(completed) => {
                (record.bytes_in, record.bytes_out) = (completed.bytes_in, completed.bytes_out);
                record.allowed(completed.status);
                match completed {
                    Completed { client_persists: true, .. } => Next::Request,
                    Completed { end_is_doubtful: true, .. } => Next::Drop,
                    _ => Next::Close,
                }
            }
            Err(Stop::Answer(why)) => {
                record.not_served(&why);
                why.write(client.output().front(), &record.about(), false, head.method() == "HEAD");
                Next::Close
            }
            Err(Stop::Cut(why)) => {
                record.cut_short(why);
                Next::Abort
            }
        }
    }

    /// Step 1: who is meant, from the one place that says it.
    fn read_target(&self, head: &RequestHead) -> Result<(Target, PathAndQuery), Refusal> {
        let requested = head.request_target().map_err(|e| Refusal::bad_request(e.to_string()))?;
        match (&self.origin, requested) {
            (Origin::Plain, RequestTarget::Absolute { scheme, authority, resource }) => {
                let port = authority.port.unwrap_or(scheme.default_port());
                Ok((Target::new(authority.host, port, scheme), resource))
            }
            (Origin::Plain, _) => {
                Err(Refusal::bad_request("a request to a proxy must name an http or https URI"))
            }
            (Origin::Tunnel { target, .. }, RequestTarget::Origin(resource)) => {
                Ok((target.clone(), resource))
            }
            (Origin::Tunnel { .. }, _) => {
                Err(Refusal::bad_request("inside a tunnel the request target must be a path"))
            }
        }
    }

    /// Steps 2 to 5.
    async fn run<S: ClientStream>(
        &mut self,
        client: &mut Wire<S>,
        head: &RequestHead,
        target: &Target,
        resource: &PathAndQuery,
        timer: &mut Timer,
    ) -> Result<Completed, Stop> {
        let policy = Arc::clone(&self.policy);
        let framing = request_framing(head).map_err(|e| Refusal::bad_request(e.to_string()))?;
        let connection =
            ConnectionOptions::parse(head.fields()).map_err(|e| Refusal::bad_request(e.to_string()))?;
        policy.hosts.check(target.host(), target.port())?;
        let host = self.check_names(head, target)?;
        if policy.refuse_trace {
            check_method(head.method())?;
        }
        if policy.refuse_odd_targets
            && let Some(oddity) = resource.oddity()
        {
            return Err(Refusal::bad_request(oddity).into());
        }
        let normal = normalize::judge(resource, policy.ambiguous_target)?;
        let resource = normal.as_ref().unwrap_or(resource);

        let mut body = RequestBody::new(head, framing);
        let edits = match &policy.decider {
            None => Box::default(),
            Some(link) => {
                let question = Question { head, target, resource, host, sni: self.sni() };
                question.ask(link, client, &mut body, timer).await?
            }
        };
        let authority = self.upstream_authority(target, host)?;
        let outgoing = Outgoing::new(head, authority, target, resource, framing, connection, &edits)?;
        if outgoing.has_sets() && self.is_cleartext() && !policy.plaintext_header_set {
            return Err(Refusal::PlaintextHeaderSet.into());
        }
        self.forward(client, head, target, &outgoing, body, timer).await
    }

    /// Everything the client says about the target must name the same one.
    fn check_names<'h>(&self, head: &'h RequestHead, target: &Target) -> Result<Option<&'h [u8]>, Refusal> {
        let host = host_header(head)?;
        if !self.policy.host_match {
            return Ok(host);
        }
        if let Origin::Tunnel { names_target: false, .. } = self.origin {
            return Err(Refusal::Misdirected("the TLS server name"));
        }
        match host {
            Some(value) if !target.is_named_by(value) => Err(Refusal::Misdirected("the Host header")),
            host => Ok(host),
        }
    }

    /// What the upstream gets as `Host`. A proxy must replace what comes with an absolute target (RFC 9112 section
    /// 3.2.2); inside a tunnel where names need not match, it is the client's to say.
    fn upstream_authority<'h>(&self, target: &'h Target, host: Option<&'h [u8]>) -> Result<&'h str, Refusal> {
        match (&self.origin, host) {
            (Origin::Tunnel { .. }, Some(host)) if !self.policy.host_match => {
                std::str::from_utf8(host).map_err(|_| Refusal::bad_request("the Host header is not text"))
            }
            _ => Ok(target.authority()),
        }
    }

    fn sni(&self) -> Option<&str> {
        match &self.origin {
            Origin::Plain => None,
            Origin::Tunnel { sni, .. } => sni.as_deref(),
        }
    }

    /// Whether the client's own leg is readable by whoever carries it. An `https` URI in a plain request is: the
    /// secret would be safe towards the upstream, but its answer would come back in clear.
    fn is_cleartext(&self) -> bool {
        matches!(self.origin, Origin::Plain)
    }

    /// Step 5, with a connection that is kept or dialled (step 4). A kept connection that turns out to be dead is
    /// replaced once, where sending the request a second time cannot do anything twice.
    async fn forward<S: ClientStream>(
        &mut self,
        client: &mut Wire<S>,
        head: &RequestHead,
        target: &Target,
        outgoing: &Outgoing<'_>,
        mut body: RequestBody,
        timer: &mut Timer,
    ) -> Result<Completed, Stop> {
        let kept = self.keeper.take(target);
        let mut connection = match kept {
            Some(kept) => kept,
            None => self.dial(target).await?,
        };
        loop {
            outgoing.write(&mut connection.wire);
            let may_repeat = connection.is_reused && body.is_untouched() && is_idempotent(head.method());
            let exchange = Exchange::new(
                client,
                &mut connection.wire,
                &mut body,
                head,
                outgoing.client_persists(),
                &self.policy.strip,
            );
            match exchange.run(timer).await {
                Ok(completed) => {
                    if completed.upstream_persists {
                        self.keeper.keep(connection);
                    }
                    return Ok(completed);
                }
                Err(Broken::Upstream { nothing_received: true, .. }) if may_repeat && body.is_untouched() => {
                    connection = self.dial(target).await?;
                }
                Err(broken) => return Err(broken.into()),
            }
        }
    }

    /// Step 4. The client may leave meanwhile, which is not watched: a dial is short and bounded.
    async fn dial(&self, target: &Target) -> Result<Connection, Stop> {
        // Boxed: the future of name lookup and handshake is large, and every connection would carry it for life.
        Box::pin(upstream::dial(self.session, &self.policy, target)).await.map_err(Stop::Answer)
    }
}

/// TRACE and TRACK make the upstream echo the request, and with it what the decider has set.
fn check_method(method: &str) -> Result<(), Refusal> {
    match method {
        "TRACE" | "TRACK" => Err(Refusal::MethodRefused),
        _ => Ok(()),
    }
}

/// RFC 9110 section 9.2.2.
fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE")
}

/// Whether the client reads HTTP/1.1: chunks, interim answers, a connection that stays open.
fn is_http11(head: &RequestHead) -> bool {
    head.version() == Version::Http11
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::ClientGone => Self::Cut("the client left"),
            Broken::Stalled => Self::Cut("nothing moved for too long"),
            Broken::CutShort => Self::Cut("the upstream broke its answer off"),
            Broken::ClientBody { error, answered: false } => Refusal::bad_request(error.to_string()).into(),
            Broken::ClientBody { answered: true, .. } => Self::Cut("the request's body is malformed"),
            Broken::Upstream { failure, .. } => failure.into(),
        }
    }
}
