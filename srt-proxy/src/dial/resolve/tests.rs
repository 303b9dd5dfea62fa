use tempfile::NamedTempFile;

use super::*;
use crate::dial::dns::tests::{Questions, Reply, ask_at, serve};

fn host(text: &str) -> Host {
    Host::from_bare(text).unwrap()
}

fn addresses(text: &[&str]) -> Vec<IpAddr> {
    text.iter().map(|address| address.parse().unwrap()).collect()
}

/// A resolver with overrides and a hosts file, and a name server that knows every name at 192.0.2.53.
async fn resolver(overrides: &[&str], hosts: &str) -> (Resolver, Questions, [NamedTempFile; 2]) {
    let files = [NamedTempFile::new().unwrap(), NamedTempFile::new().unwrap()];
    let (questions, resolv_conf) = serve(
        |_| Reply::Addresses(&["192.0.2.53"]),
        |_| Reply::Addresses(&["2001:db8::53"]),
        "search corp.lan\n",
    )
    .await;
    std::fs::write(files[0].path(), hosts).unwrap();
    std::fs::write(files[1].path(), resolv_conf).unwrap();
    let overrides = overrides.iter().map(|text| text.parse().unwrap());
    let mut resolver = Resolver::with_files(overrides, files[0].path(), "/nonexistent");
    resolver.dns = ask_at(files[1].path());
    (resolver, questions, files)
}

#[tokio::test]
async fn the_first_that_knows_the_host_is_the_whole_answer() {
    let (resolver, questions, _files) = resolver(
        &["over.example=203.0.113.1", "OVER.example.=2001:db8::9", "both.example=203.0.113.2", "x.localhost=203.0.113.3"],
        "10.0.0.1 both.example hosts.example\n10.0.0.2 hosts.example\n10.0.0.3 localhost y.localhost 127.0.0.1\n",
    )
    .await;
    for (name, expected) in [
        ("192.0.2.1", &["192.0.2.1"][..]),
        ("127.0.0.1", &["127.0.0.1"]),
        ("::1", &["::1"]),
        ("over.example", &["203.0.113.1", "2001:db8::9"]),
        ("both.example", &["203.0.113.2"]),
        ("x.localhost", &["203.0.113.3"]),
        ("localhost", &["127.0.0.1", "::1"]),
        ("y.localhost", &["127.0.0.1", "::1"]),
        ("HOSTS.example", &["10.0.0.1", "10.0.0.2"]),
    ] {
        assert_eq!(resolver.resolve(&host(name)).await, Ok(addresses(expected)), "{name}");
    }
    assert_eq!(*questions.lock().unwrap(), [], "DNS was asked");
    for name in ["dns.example", "sub.over.example", "example"] {
        assert_eq!(
            resolver.resolve(&host(name)).await,
            Ok(addresses(&["2001:db8::53", "192.0.2.53"])),
            "{name}"
        );
    }
    let asked = questions.lock().unwrap().clone();
    assert!(asked.iter().all(|(name, _)| !name.contains("corp.lan")), "{asked:?}");
}

#[tokio::test]
async fn the_number_of_addresses_has_a_bound() {
    let hosts: String = (0..100).map(|n| format!("10.0.0.{n} many.example\n")).collect();
    let (resolver, _, _files) = resolver(&[], &hosts).await;
    assert_eq!(resolver.resolve(&host("many.example")).await.unwrap().len(), limits::ADDRESSES);
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_is_given_up_in_time() {
    let file = NamedTempFile::new().unwrap();
    let (_, resolv_conf) =
        serve(|_| Reply::Silence, |_| Reply::Silence, "options timeout:5 attempts:5\n").await;
    std::fs::write(file.path(), resolv_conf).unwrap();
    let mut resolver = Resolver::with_files([], "/nonexistent", "/nonexistent");
    resolver.dns = ask_at(file.path());
    let begin = tokio::time::Instant::now();
    let error = resolver.resolve(&host("a.example")).await.unwrap_err();
    assert!(error.is_timeout());
    assert!(
        begin.elapsed() <= limits::RESOLVE + std::time::Duration::from_millis(10),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn an_override_is_a_name_and_an_address() {
    for (text, name, address) in [
        ("a.example=192.0.2.1", "a.example", "192.0.2.1"),
        ("A.Example.=2001:db8::1", "a.example", "2001:db8::1"),
        ("a.example=[2001:db8::1]", "a.example", "2001:db8::1"),
        ("localhost=10.0.0.1", "localhost", "10.0.0.1"),
    ] {
        let read: Override = text.parse().unwrap();
        assert_eq!((read.name.as_str(), read.address), (name, address.parse().unwrap()), "{text}");
    }
    for text in [
        "",
        "=",
        "a.example",
        "a.example=",
        "=192.0.2.1",
        "a.example=b.example",
        "192.0.2.1=192.0.2.2",
        "*.example=192.0.2.1",
        "a.example:443=192.0.2.1",
        "a.example=192.0.2.1:443",
        "a.example=127.1",
        "a.example=[192.0.2.1]",
        "a.example=[::1",
        "a.example=::1%eth0",
        "a b=192.0.2.1",
        "a.example= 192.0.2.1",
    ] {
        assert_eq!(text.parse::<Override>(), Err(OverrideError), "{text:?}");
    }
}
