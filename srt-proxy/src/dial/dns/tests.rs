//! A name server on loopback that notes what it is asked.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use srt_shared::domain::Host;
use tokio::{net::UdpSocket, time::Instant};

use super::*;

const A: u16 = 1;
const AAAA: u16 = 28;

/// What the server says to one question.
pub(crate) enum Reply {
    Addresses(&'static [&'static str]),
    /// The name is another name's alias, and this is that one's address.
    Alias(&'static str, &'static str),
    NoName,
    ServerFailure,
    Silence,
}

/// The questions so far: name with its final dot, and type.
pub(crate) type Questions = Arc<Mutex<Vec<(String, u16)>>>;

/// Answers questions of either family with the given functions. Returns a resolv.conf of sorts: its first line
/// is the port, since only root may have port 53.
pub(crate) async fn serve(
    a: fn(&str) -> Reply,
    aaaa: fn(&str) -> Reply,
    resolv_conf: &str,
) -> (Questions, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    let questions = Questions::default();
    let noted = Arc::clone(&questions);
    tokio::spawn(async move {
        let mut buffer = [0; 1500];
        loop {
            let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
            let (name, kind, end) = read_question(&buffer[..length]);
            let reply = match kind {
                A => a(&name),
                AAAA => aaaa(&name),
                other => panic!("asked for type {other}"),
            };
            noted.lock().unwrap().push((name, kind));
            send(&socket, client, &buffer[..end], reply).await;
        }
    });
    (questions, format!("{port}\nnameserver 127.0.0.1\n{resolv_conf}"))
}

/// RFC 1035 section 4.1.2.
fn read_question(query: &[u8]) -> (String, u16, usize) {
    let mut at = 12;
    let mut name = String::new();
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        name.push_str(std::str::from_utf8(&query[at + 1..end]).unwrap());
        name.push('.');
        at = end;
    }
    (name, u16::from_be_bytes([query[at + 1], query[at + 2]]), at + 5)
}

async fn send(socket: &UdpSocket, client: SocketAddr, question: &[u8], reply: Reply) {
    // The question's name again (RFC 1035 section 4.1.4).
    let same_name = vec![0xc0, 12];
    let (code, records) = match reply {
        Reply::Addresses(addresses) => {
            (0, addresses.iter().map(|text| address_record(&same_name, text)).collect())
        }
        Reply::Alias(name, address) => {
            let name = encode_name(name);
            (0, vec![record(&same_name, 5, &name), address_record(&name, address)])
        }
        Reply::NoName => (3, vec![]),
        Reply::ServerFailure => (2, vec![]),
        Reply::Silence => return,
    };
    let header = [&question[..2], &[0x81, 0x80 | code, 0, 1, 0, records.len() as u8, 0, 0, 0, 0]].concat();
    let message = [&header, &question[12..], &records.concat()[..]].concat();
    socket.send_to(&message, client).await.unwrap();
}

fn encode_name(name: &str) -> Vec<u8> {
    name.split('.').chain([""]).flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect()
}

fn address_record(name: &[u8], text: &str) -> Vec<u8> {
    match text.parse().unwrap() {
        IpAddr::V4(v4) => record(name, A, &v4.octets()),
        IpAddr::V6(v6) => record(name, AAAA, &v6.octets()),
    }
}

fn record(name: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    [name, &kind.to_be_bytes(), &[0, 1, 0, 0, 0, 60], &(data.len() as u16).to_be_bytes(), data].concat()
}

/// A resolver for what [`serve`] returned, in a file.
pub(crate) fn ask_at(path: &Path) -> Dns {
    Dns { resolver: Watched::new(path, limits::RESOLV_CONF, build_with_port) }
}

fn build_with_port(text: &[u8]) -> Result<TokioResolver, ResolveError> {
    let text = std::str::from_utf8(text).unwrap();
    let (port, resolv_conf) = text.split_once('\n').unwrap();
    let (config, options) = read_config(resolv_conf.as_bytes());
    let (domain, search, mut servers) = config.into_parts();
    for connection in servers.iter_mut().flat_map(|server| &mut server.connections) {
        connection.port = port.parse().unwrap();
    }
    start(ResolverConfig::from_parts(domain, search, servers), options)
}

fn name(text: &str) -> DomainName {
    Host::from_bare(text).unwrap().name().unwrap().clone()
}

fn addresses(text: &[&str]) -> Vec<IpAddr> {
    text.iter().map(|address| address.parse().unwrap()).collect()
}

/// What a fresh resolver says of one name, and what the server was asked for.
async fn ask_once(
    text: &str,
    a: fn(&str) -> Reply,
    aaaa: fn(&str) -> Reply,
    resolv_conf: &str,
) -> (Addresses, Vec<(String, u16)>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (questions, config) = serve(a, aaaa, resolv_conf).await;
    std::fs::write(file.path(), config).unwrap();
    let answer = ask_at(file.path()).lookup(&name(text)).await;
    let mut questions = questions.lock().unwrap().clone();
    questions.sort();
    questions.dedup();
    (answer, questions)
}

fn nothing(_: &str) -> Reply {
    Reply::Addresses(&[])
}

fn no_name(_: &str) -> Reply {
    Reply::NoName
}

fn failure(_: &str) -> Reply {
    Reply::ServerFailure
}

fn silence(_: &str) -> Reply {
    Reply::Silence
}

fn two_v4(_: &str) -> Reply {
    Reply::Addresses(&["192.0.2.1", "10.0.0.1"])
}

fn one_v6(_: &str) -> Reply {
    Reply::Addresses(&["2001:db8::1"])
}

#[tokio::test]
async fn both_families_are_asked_for_and_nothing_is_dropped() {
    let (answer, questions) = ask_once("api.example.com", two_v4, one_v6, "").await;
    let mut answer = answer.unwrap();
    assert_eq!(answer[0], addresses(&["2001:db8::1"])[0]);
    answer.sort();
    assert_eq!(answer, addresses(&["10.0.0.1", "192.0.2.1", "2001:db8::1"]));
    assert_eq!(questions, [("api.example.com.".to_owned(), A), ("api.example.com.".to_owned(), AAAA)]);
}

#[tokio::test]
async fn the_search_list_is_never_used() {
    /// Only the search domain has the name.
    fn internal(name: &str) -> Reply {
        if name.ends_with("corp.lan.") { Reply::Addresses(&["10.0.0.66"]) } else { Reply::NoName }
    }
    let resolv_conf = "search corp.lan sub.corp.lan\ndomain corp.lan\noptions ndots:5\n";
    for text in ["api.example.com", "foo", "exa_mple.com", "-x.example", "a.b.c.d.e.f.example"] {
        let (answer, questions) = ask_once(text, internal, no_name, resolv_conf).await;
        assert_eq!(answer, Err(ResolveError::NoSuchName), "{text}");
        assert!(questions.iter().all(|(asked, _)| *asked == format!("{text}.")), "{questions:?}");
    }
}

#[tokio::test]
async fn one_family_is_enough() {
    for (a, aaaa, expected) in [
        (two_v4 as fn(&str) -> Reply, nothing as fn(&str) -> Reply, 2),
        (two_v4, failure, 2),
        (two_v4, no_name, 2),
        (nothing, one_v6, 1),
        (failure, one_v6, 1),
    ] {
        let (answer, _) = ask_once("a.example", a, aaaa, "").await;
        assert_eq!(answer.map(|addresses| addresses.len()), Ok(expected));
    }
}

#[tokio::test]
async fn failures_are_told_apart() {
    for (a, aaaa, expected) in [
        (no_name as fn(&str) -> Reply, no_name as fn(&str) -> Reply, ResolveError::NoSuchName),
        (nothing, nothing, ResolveError::NoAddress),
        (failure, failure, ResolveError::Server),
        (nothing, failure, ResolveError::Server),
    ] {
        let (answer, _) = ask_once("a.example", a, aaaa, "").await;
        assert_eq!(answer, Err(expected));
    }
}

#[tokio::test]
async fn an_alias_leads_to_the_address_of_the_other_name() {
    fn alias(_: &str) -> Reply {
        Reply::Alias("cdn.example.net", "192.0.2.9")
    }
    let (answer, _) = ask_once("a.example", alias, nothing, "").await;
    assert_eq!(answer, Ok(addresses(&["192.0.2.9"])));
}

#[tokio::test(start_paused = true)]
async fn a_family_that_is_never_answered_holds_nothing_up() {
    for (a, aaaa, expected) in
        [(two_v4 as fn(&str) -> Reply, silence as fn(&str) -> Reply, 2), (silence, one_v6, 1)]
    {
        let begin = Instant::now();
        let (answer, _) = ask_once("a.example", a, aaaa, "").await;
        assert_eq!(answer.map(|addresses| addresses.len()), Ok(expected));
        assert!(begin.elapsed() < limits::RESOLVE_LAG + Duration::from_millis(50), "{:?}", begin.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_timeout() {
    let (answer, _) = ask_once("a.example", silence, silence, "options timeout:1 attempts:1\n").await;
    assert_eq!(answer, Err(ResolveError::Timeout));
}

#[tokio::test]
async fn another_server_is_asked_once_the_file_names_it() {
    fn other(_: &str) -> Reply {
        Reply::Addresses(&["192.0.2.2"])
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let dns = ask_at(file.path());
    let (first_asked, config) = serve(two_v4, nothing, "").await;
    std::fs::write(file.path(), config).unwrap();
    assert_eq!(dns.lookup(&name("a.example")).await.unwrap().len(), 2);
    let (_, config) = serve(other, nothing, "").await;
    std::fs::write(file.path(), config).unwrap();
    let asked = first_asked.lock().unwrap().len();
    assert_eq!(dns.lookup(&name("a.example")).await, Ok(addresses(&["192.0.2.2"])));
    assert_eq!(first_asked.lock().unwrap().len(), asked);
}

#[test]
fn without_a_server_this_machine_is_asked() {
    for text in ["", "search corp.lan\n", "nameserver\n", "nameserver not-an-address\n"] {
        let (config, options) = read_config(text.as_bytes());
        let servers: Vec<_> = config.name_servers().iter().map(|server| server.ip).collect();
        assert_eq!(servers, addresses(&["127.0.0.1"]), "{text:?}");
        assert!(config.search().is_empty() && config.domain().is_none());
        assert_eq!(options.use_hosts_file, ResolveHosts::Never);
    }
    let (config, options) =
        read_config(b"nameserver 192.0.2.53\nnameserver ::1\nsearch x\noptions timeout:3\n");
    assert_eq!(config.name_servers().len(), 2);
    assert!(config.search().is_empty());
    assert_eq!(options.timeout, Duration::from_secs(3));
}
