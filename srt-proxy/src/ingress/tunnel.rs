//! Tunnels, asked for by CONNECT or SOCKS: judged, answered, and looked into where that is to be.

use std::sync::Arc;

use bytes::BytesMut;
use srt_shared::domain::Host;
use srt_shared::event::IngressKind;
use tokio::time::{Instant, timeout_at};

use super::closing::{AnswerForm, answer_and_close};
use super::first_bytes::{self, FirstBytes, Speaker};
use super::requests::{Origin, serve_requests};
use super::{ClientSocket, ClientStream, Side, opaque, socks};
use crate::dial::Upstream;
use crate::limits;
use crate::pipeline::record::Record;
use crate::pipeline::refuse::{About, NotServed, Refusal};
use crate::pipeline::target::Target;
use crate::pipeline::{Pipeline, dial_opaque};
use crate::policy::Policy;
use crate::prefixed::Prefixed;
use crate::session::{Session, Slot};
use crate::timer::Timer;
use crate::tls::{self, ClientHello, LeafCache};
use crate::wire::Wire;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";

/// How a tunnel was asked for, and so how it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// By a CONNECT.
    Connect,
    /// By SOCKS5.
    Socks,
}

impl Asked {
    fn ingress(self) -> IngressKind {
        match self {
            Self::Connect => IngressKind::Connect,
            Self::Socks => IngressKind::Socks,
        }
    }

    /// Says yes, at the front of what the client gets next.
    fn grant(self, client: &mut Wire<ClientSocket>) {
        match self {
            Self::Connect => client.output().front().extend_from_slice(ESTABLISHED),
            Self::Socks => socks::grant(client),
        }
    }

    async fn refuse(self, mut client: Wire<ClientSocket>, why: &NotServed, about: &About<'_>) {
        match self {
            Self::Connect => {
                let form = AnswerForm { connect: true, head_only: false };
                answer_and_close(&mut client, why, about, form).await;
            }
            Self::Socks => socks::refuse(client, about.target.map(Target::port), why).await,
        }
    }
}

/// A terminated tunnel's own end of the conversation.
type Terminated = tls::ClientStream<ClientSocket>;

impl ClientStream for Terminated {
    /// Inside TLS an end of stream is a close_notify or a cut connection; nobody half-closes TLS and waits.
    fn is_gone(&self) -> bool {
        true
    }

    fn side(&self) -> Side {
        match self.get_ref().0.inner().side() {
            Side::Open => Side::Open,
            Side::Ended | Side::Gone => Side::Gone,
        }
    }

    fn abort(&self) {
        self.get_ref().0.inner().abort();
    }
}

/// Serves a tunnel whose target was read, or could not be.
pub async fn serve(
    asked: Asked,
    mut client: Wire<ClientSocket>,
    session: &Arc<Session>,
    target: Result<Target, Refusal>,
) {
    let policy = session.policy();
    let record = Record::new(session, asked.ingress(), target.as_ref().ok());
    let admitted = match &target {
        Ok(target) => admit(asked, session, &policy, target).await.map(|way| (target, way)),
        Err(refusal) => Err(refusal.clone().into()),
    };
    match admitted {
        Err(why) => {
            record.not_served(&why);
            asked.refuse(client, &why, &record.about()).await;
        }
        Ok((_, Way::Opaque(upstream))) => {
            asked.grant(&mut client);
            opaque::pass(client, Wire::new(upstream, BytesMut::new()), record).await;
        }
        Ok((target, Way::Terminate(terminate))) => {
            asked.grant(&mut client);
            let deadline = terminate.deadline;
            let tunnel = Tunnel { session, policy: &policy, asked, target, terminate };
            match timeout_at(deadline, tunnel.look_into(client)).await {
                Ok(seen) => seen.serve(record).await,
                Err(_) => record.refused(&Refusal::OpaqueTunnel("no TLS handshake in time")),
            }
        }
    }
}

/// What is done with a tunnel.
enum Way {
    /// It is let through as it is.
    Opaque(Upstream),
    /// It is looked into.
    Terminate(Terminate),
}

struct Terminate {
    slot: Slot,
    leaves: Arc<LeafCache>,
    deadline: Instant,
}

/// Everything that can be refused before the client is told that its tunnel stands.
async fn admit(asked: Asked, session: &Session, policy: &Policy, target: &Target) -> Result<Way, NotServed> {
    policy.hosts.check(target.host(), target.port())?;
    if !policy.opaque_tunnels && asked == Asked::Socks {
        return Err(Refusal::OpaqueTunnel("SOCKS tunnels cannot be looked into").into());
    }
    match policy.termination.of(target.host(), target.port()) {
        Some(on) => {
            let slot = session.common.tunnels.take(on.max_tunnels).ok_or(Refusal::TooManyTunnels)?;
            let deadline = Instant::now() + on.handshake;
            session.common.dialler.prepare_tls();
            Ok(Way::Terminate(Terminate { slot, leaves: Arc::clone(&on.leaves), deadline }))
        }
        None if policy.opaque_tunnels => Ok(Way::Opaque(dial_opaque(session, policy, target).await?)),
        None => Err(Refusal::OpaqueTunnel(policy.termination.why_not()).into()),
    }
}

/// A tunnel that is to be looked into.
struct Tunnel<'a> {
    session: &'a Arc<Session>,
    policy: &'a Arc<Policy>,
    asked: Asked,
    target: &'a Target,
    terminate: Terminate,
}

/// What it turned out to carry.
#[expect(clippy::large_enum_variant, reason = "one short-lived value a tunnel")]
enum Seen<'a> {
    /// TLS, terminated. Boxed: its state is large, and most of this future's life is spent before it exists.
    Requests(Box<Requests<'a>>),
    /// Something else, which is let through.
    Opaque { client: Wire<ClientSocket>, upstream: Wire<Upstream> },
    /// Something that is not.
    Refused(NotServed),
    /// Nothing: the client left.
    Left,
}

struct Requests<'a> {
    client: Wire<Terminated>,
    pipeline: Pipeline<'a>,
    slot: Slot,
}

impl Seen<'_> {
    async fn serve(self, record: Record<'_>) {
        match self {
            Self::Requests(requests) => {
                let Requests { client, pipeline, slot } = *requests;
                serve_requests(client, pipeline, &mut Timer::new(limits::IDLE)).await;
                drop(slot);
            }
            Self::Opaque { client, upstream } => opaque::pass(client, upstream, record).await,
            // The tunnel was granted, so that all that is left is to close it.
            Self::Refused(why) => record.not_served(&why),
            Self::Left => record.cut_short("the client left before it said anything"),
        }
    }
}

impl<'a> Tunnel<'a> {
    /// Finds out what the tunnel carries, and does the handshake if it is TLS. Runs under the handshake's deadline.
    async fn look_into(self, mut client: Wire<ClientSocket>) -> Seen<'a> {
        // Dialling before a decider has been asked would tell the upstream's address that somebody is interested.
        let may_wait_for_server = self.policy.opaque_tunnels && self.policy.decider.is_none();
        let mut first = first_bytes::of_client(&mut client, may_wait_for_server).await;
        if let FirstBytes::Silence = first {
            if let Ok(upstream) = dial_opaque(self.session, self.policy, self.target).await {
                let mut upstream = Wire::new(upstream, BytesMut::new());
                if first_bytes::of_either(&mut client, &mut upstream).await == Speaker::Server {
                    return Seen::Opaque { client, upstream };
                }
            }
            first = first_bytes::of_client(&mut client, false).await;
        }
        match first {
            FirstBytes::Tls(hello) => self.terminate(client, hello).await,
            FirstBytes::Other if self.policy.opaque_tunnels => {
                match dial_opaque(self.session, self.policy, self.target).await {
                    Ok(upstream) => Seen::Opaque { client, upstream: Wire::new(upstream, BytesMut::new()) },
                    Err(why) => Seen::Refused(why),
                }
            }
            FirstBytes::Other => refused("the tunnel carries no TLS"),
            FirstBytes::MalformedTls => refused("the ClientHello is malformed"),
            FirstBytes::Silence | FirstBytes::Gone => Seen::Left,
        }
    }

    async fn terminate(self, mut client: Wire<ClientSocket>, hello: ClientHello) -> Seen<'a> {
        if client.drain().await.is_err() {
            return Seen::Left;
        }
        let Ok(leaf) = self.terminate.leaves.leaf(&self.leaf_host(&hello)) else {
            return refused("no certificate could be made for this host");
        };
        let (socket, early) = client.into_parts();
        let stream = self.session.common.server_tls.accept(Prefixed::new(early, socket), leaf).await;
        let Ok(stream) = stream else {
            return refused("the TLS handshake failed; does the client trust the CA of this proxy?");
        };
        let origin = Origin::Tunnel {
            ingress: self.asked.ingress(),
            target: self.target.clone(),
            names_target: hello.names(self.target.host()),
            sni: hello.sni().map(str::to_ascii_lowercase),
        };
        let pipeline = Pipeline::new(self.session, Arc::clone(self.policy), origin);
        let client = Wire::new(stream, BytesMut::new());
        Seen::Requests(Box::new(Requests { client, pipeline, slot: self.terminate.slot }))
    }

    /// Whose certificate the client gets: the target's. Where names need not match, the one it asks for, because that
    /// is the name it checks.
    fn leaf_host(&self, hello: &ClientHello) -> Host {
        let asked = hello.sni().filter(|_| !self.policy.host_match).and_then(|sni| Host::from_bare(sni).ok());
        asked.unwrap_or_else(|| self.target.host().clone())
    }
}

fn refused<'a>(why: &'static str) -> Seen<'a> {
    Seen::Refused(Refusal::OpaqueTunnel(why).into())
}
