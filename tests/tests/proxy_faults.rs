//! Peers that fail in every way at every stage: the others go on, and nothing is left behind.

mod faults;

use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use faults::upstream::{Outcome, Plan, Step, expected, has_answered};
use faults::{FAULTS, Fault, STAGES, Stage, client, commit, decider, upstream};
use srt_tests::proxy::{
    APP, Conn, Message, PATIENCE, Pki, Starter, TestDecider, TestProxy, TestUpstream, connect,
    connect_tunnel, site,
};

/// How a client reaches an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leg {
    Plain,
    Tunnel,
}

/// One client connection, and what its requests look like.
struct Client {
    conn: Conn,
    base: String,
    host: String,
}

struct World {
    pki: Pki,
    proxy: TestProxy,
    _decider: TestDecider,
    good: [TestUpstream; 2],
    bad: [TestUpstream; 2],
    plan: Plan,
    steps: Receiver<Step>,
}

impl World {
    fn new() -> Self {
        let pki = Pki::new();
        let decider = TestDecider::allowing(&[APP]);
        let proxy = Starter::new(&pki, &decider).resolve(&[APP]).start();
        let good =
            [TestUpstream::plain(site(|_, _| Ok(()))), TestUpstream::tls(&pki, APP, site(|_, _| Ok(())))];
        let plan = Plan::default();
        let (send, steps) = channel();
        let bad = [
            upstream::start(&plan, None, send.clone()),
            upstream::start(&plan, Some(pki.upstream_config(&[APP])), send),
        ];
        Self { pki, proxy, _decider: decider, good, bad, plan, steps }
    }

    fn connect(&self, leg: Leg, upstreams: &[TestUpstream; 2]) -> Client {
        let port = upstreams[leg as usize].port();
        let host = format!("{APP}:{port}");
        match leg {
            Leg::Plain => Client { conn: connect(&self.proxy), base: format!("http://{host}"), host },
            Leg::Tunnel => {
                Client { conn: connect_tunnel(&self.proxy, &self.pki, APP, port), base: String::new(), host }
            }
        }
    }

    fn client_round(&self, leg: Leg, stage: Stage, fault: Fault, others: &mut Others) {
        let mut bad = self.connect(leg, &self.good);
        client::bring_to(&mut bad.conn, &bad.base, &bad.host, stage);
        let held = commit(bad.conn, fault);
        others.check(self);
        if let Some(held) = held {
            client::check_end(held, stage, fault);
        }
    }

    fn upstream_round(&self, leg: Leg, stage: Stage, fault: Fault, others: &mut Others) {
        let (go, wait) = channel();
        *self.plan.lock().unwrap() = Some((stage, fault, wait));
        let mut client = self.connect(leg, &self.bad);
        match stage {
            // Its body is not complete when the answer comes.
            Stage::InAnswer => client.send_half_a_post(),
            _ => client.send_get(),
        }
        let head = has_answered(stage).then(|| client.read_head());
        let idle = (stage == Stage::Idle).then(|| client.read_outcome(head.as_ref()));
        go.send(()).unwrap();
        self.expect(Step::Done);
        others.check(self);
        match (expected(stage, fault, leg == Leg::Tunnel), idle) {
            (Outcome::Nothing, _) => {}
            (expected, None) => assert_eq!(client.read_outcome(head.as_ref()), expected),
            (expected, Some(first)) => {
                client.send_get();
                assert_eq!((first, client.read_outcome(None)), (Outcome::Whole, expected));
            }
        }
        // Not with a FIN: over TCP that may come from a client that waits for its answer.
        client.conn.reset();
        self.expect(Step::Released);
    }

    fn expect(&self, step: Step) {
        assert_eq!(self.steps.recv_timeout(PATIENCE), Ok(step));
    }
}

impl Client {
    fn send_get(&mut self) {
        let Self { conn, base, host } = self;
        conn.send(format!("GET {base}/pattern/1000 HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap();
    }

    fn send_half_a_post(&mut self) {
        let Self { conn, base, host } = self;
        let head = format!("POST {base}/hash HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000\r\n\r\n");
        conn.send(head + &"x".repeat(500)).unwrap();
    }

    fn read_head(&mut self) -> Message {
        self.conn.read_head().unwrap().expect("an answer")
    }

    /// Reads the rest of an answer, or all of it.
    fn read_outcome(&mut self, head: Option<&Message>) -> Outcome {
        let head = head.cloned().unwrap_or_else(|| self.read_head());
        let mut body = Vec::new();
        let read = self.conn.body(&head, true).read_to_end(&mut body);
        match (head.status(), read, body.len()) {
            (502, Ok(_), _) => Outcome::BadGateway,
            (200, Ok(_), 1000) => Outcome::Whole,
            (200, Err(_), ..1000) => Outcome::Cut,
            other => panic!("{other:?}"),
        }
    }
}

/// Clients that behave, next to those that do not.
struct Others([Client; 2]);

impl Others {
    fn new(world: &World) -> Self {
        Self([Leg::Plain, Leg::Tunnel].map(|leg| world.connect(leg, &world.good)))
    }

    /// Those that are there go on being served, and a new one is.
    fn check(&mut self, world: &World) {
        let mut new = world.connect(Leg::Plain, &world.good);
        for client in self.0.iter_mut().chain([&mut new]) {
            let answer = client.conn.get(&format!("{}/hello", client.base), &client.host);
            assert_eq!(answer.unwrap().1, b"hello");
        }
    }
}

/// Every fault once; how many that were.
fn run_table(world: &World, others: &mut Others) -> usize {
    for leg in [Leg::Plain, Leg::Tunnel] {
        for stage in STAGES {
            for fault in FAULTS {
                // Shown only when the test fails.
                eprintln!("client: {leg:?} {stage:?} {fault:?}");
                world.client_round(leg, stage, fault, others);
                eprintln!("upstream: {leg:?} {stage:?} {fault:?}");
                world.upstream_round(leg, stage, fault, others);
            }
        }
    }
    2 * 2 * STAGES.len() * FAULTS.len()
}

/// Gives the proxy work until it has no more than `descriptors` open: a connection that has just ended may be still
/// there.
fn settle(world: &World, others: &mut Others, descriptors: usize) {
    let begun = Instant::now();
    while world.proxy.descriptors() > descriptors {
        assert!(
            begun.elapsed() < PATIENCE,
            "{} descriptors, {descriptors} before",
            world.proxy.descriptors()
        );
        others.check(world);
    }
}

#[test]
fn clients_and_upstreams_that_fail_harm_nobody_and_leave_nothing() {
    let mut world = World::new();
    let mut others = Others::new(&world);
    let count = |_| {
        others.check(&world);
        world.proxy.descriptors()
    };
    let quiet = (0..20).map(count).min().unwrap();

    run_table(&world, &mut others);
    settle(&world, &mut others, quiet);
    let warm = world.proxy.resident_kib();
    let mut rounds = 0;
    while rounds < 200 {
        rounds += run_table(&world, &mut others);
    }
    settle(&world, &mut others, quiet);
    let resident = world.proxy.resident_kib();
    assert!(resident <= warm + warm / 10, "{resident} KiB after {rounds} rounds, {warm} before them");
    assert!(world.proxy.is_running());
}

#[test]
fn deciders_that_fail_refuse_what_waits_and_end_the_proxy() {
    for stage in STAGES {
        for fault in FAULTS {
            eprintln!("decider: {stage:?} {fault:?}");
            decider::round(stage, fault);
        }
    }
}
