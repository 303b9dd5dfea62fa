use std::net::{IpAddr, TcpListener};

use srt_shared::domain::Host;
use tokio::net::TcpSocket;

use super::*;
use crate::dial::{AddressPolicy, Guard};

fn checked(addresses: &[IpAddr], port: u16) -> Vec<CheckedAddr> {
    let allowed = ["0.0.0.0/0", "::/0"].map(|range| range.parse().unwrap()).into();
    let policy = AddressPolicy { allowed, ..AddressPolicy::default() };
    Guard::new(policy).check(&Host::from_bare("a.example").unwrap(), port, addresses).unwrap()
}

fn loopback(last: u8) -> IpAddr {
    [127, 0, 0, last].into()
}

/// A port at which nothing listens on any loopback address.
fn closed_port() -> u16 {
    TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
}

/// A listener whose queue is full: the kernel drops what else knocks, like a firewall.
async fn blackhole(address: SocketAddr) -> (tokio::net::TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    let listener = socket.listen(0).unwrap();
    let mut queued = Vec::new();
    let wait = std::time::Duration::from_millis(100);
    while let Ok(stream) = timeout(wait, TcpStream::connect(listener.local_addr().unwrap())).await {
        queued.push(stream.unwrap());
    }
    (listener, queued)
}

#[tokio::test]
async fn a_connection_has_no_delay() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stream = connect(&checked(&[loopback(1)], port)).await.unwrap();
    assert!(stream.nodelay().unwrap());
    assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
}

#[tokio::test(start_paused = true)]
async fn refusals_are_passed_over_at_once() {
    let port = closed_port();
    let begin = Instant::now();
    for count in [1, 2, 9] {
        let addresses: Vec<_> = (1..=count).map(loopback).collect();
        assert_eq!(connect(&checked(&addresses, port)).await.err(), Some(ConnectError::Refused));
    }
    let listener = TcpListener::bind("127.0.0.7:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stream = connect(&checked(&[1, 2, 3, 7, 8].map(loopback), port)).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap().ip(), loopback(7));
    assert!(begin.elapsed() < limits::CONNECT_STAGGER, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_silent_address_costs_one_head_start() {
    let listener = TcpListener::bind("127.0.0.3:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _silent = blackhole(SocketAddr::new(loopback(2), port)).await;
    let begin = Instant::now();
    let stream = connect(&checked(&[loopback(2), loopback(3)], port)).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap().ip(), loopback(3));
    assert!(begin.elapsed() >= limits::CONNECT_STAGGER);
    assert!(begin.elapsed() < limits::CONNECT / 2, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn silence_everywhere_ends_in_time() {
    let silent = blackhole("127.0.0.4:0".parse().unwrap()).await;
    let port = silent.0.local_addr().unwrap().port();
    tokio::time::pause();
    let begin = Instant::now();
    let error = connect(&checked(&[loopback(4)], port)).await.unwrap_err();
    assert!(error.is_timeout());
    assert!(begin.elapsed() >= limits::CONNECT && begin.elapsed() < limits::CONNECT * 2);
    // One that refuses says more than one that is silent, but there is still hope for the silent one.
    let error = connect(&checked(&[loopback(4), loopback(5)], port)).await.unwrap_err();
    assert!(error.is_timeout());
}

#[tokio::test]
async fn no_address_is_no_connection() {
    assert_eq!(connect(&[]).await.err(), Some(ConnectError::Unreachable));
}

#[test]
fn families_take_turns_beginning_with_the_first() {
    for (addresses, expected) in [
        (&["127.0.0.1"][..], &["127.0.0.1"][..]),
        (&["::1", "127.0.0.1", "127.0.0.2"], &["::1", "127.0.0.1", "127.0.0.2"]),
        (&["127.0.0.1", "127.0.0.2", "127.0.0.3", "::1"], &["127.0.0.1", "::1", "127.0.0.2", "127.0.0.3"]),
        (
            &["2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1", "192.0.2.2"],
            &["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "2001:db8::3"],
        ),
    ] {
        let parse =
            |addresses: &[&str]| addresses.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        let order: Vec<_> = interleave(&checked(&parse(addresses), 1)).iter().map(SocketAddr::ip).collect();
        assert_eq!(order, parse(expected));
    }
}

#[test]
fn the_reason_nearest_to_the_upstream_is_told() {
    use io::ErrorKind::*;
    for (kind, expected) in [
        (ConnectionRefused, ConnectError::Refused),
        (ConnectionReset, ConnectError::Reset),
        (TimedOut, ConnectError::Timeout),
        (NetworkUnreachable, ConnectError::Unreachable),
        (HostUnreachable, ConnectError::Unreachable),
        (AddrNotAvailable, ConnectError::Unreachable),
        (PermissionDenied, ConnectError::Local),
        (Other, ConnectError::Local),
    ] {
        assert_eq!(ConnectError::from_io(&kind.into()), expected, "{kind}");
    }
    assert_eq!(ConnectError::Refused.max(ConnectError::Unreachable), ConnectError::Refused);
    assert_eq!(ConnectError::Timeout.max(ConnectError::Unreachable), ConnectError::Timeout);
}
