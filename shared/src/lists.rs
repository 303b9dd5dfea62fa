//! Allow and deny lists: one function, one answer.

use std::{collections::HashMap, net::IpAddr};

use crate::{
    address::embedded_ipv4,
    domain::{DomainName, DomainPattern, Host, HostPattern},
};

/// An allow list and a deny list, indexed so that a question costs the same whatever their length.
///
/// Denying is wide and allowing is narrow: a denied IPv4 literal also denies the IPv6 forms that carry it, an
/// allowed one allows only itself.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    allowed: Index,
    denied: Index,
}

/// What the lists say about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListAnswer<'a> {
    /// On the allow list by this entry, and on no denied one.
    Allowed(&'a DomainPattern),
    /// On the deny list by this entry, which wins.
    Denied(&'a DomainPattern),
    /// On neither list.
    NotListed,
}

impl Lists {
    /// Indexes both lists. Repeated entries are harmless.
    pub fn new(allowed: Vec<DomainPattern>, denied: Vec<DomainPattern>) -> Self {
        Self { allowed: Index::new(allowed), denied: Index::new(denied) }
    }

    /// What the lists say about a target. Of several entries that match, the first one configured is named.
    pub fn check(&self, host: &Host, port: u16) -> ListAnswer<'_> {
        if let Some(entry) = self.denied.find(host, port, Reach::Embedded) {
            return ListAnswer::Denied(entry);
        }
        match self.allowed.find(host, port, Reach::Exact) {
            Some(entry) => ListAnswer::Allowed(entry),
            None => ListAnswer::NotListed,
        }
    }

    /// The allowed IP literal for exactly this address and port, which exempts it from the address check:
    /// reaching it by name grants nothing that the literal does not. Ask [`Lists::denies_addr`] first.
    pub fn exempts(&self, addr: IpAddr, port: u16) -> Option<&DomainPattern> {
        self.allowed.find_addr(addr, port, Reach::Exact)
    }

    /// The denied IP literal that covers this address, which a name may then not resolve to either.
    pub fn denies_addr(&self, addr: IpAddr, port: u16) -> Option<&DomainPattern> {
        self.denied.find_addr(addr, port, Reach::Embedded)
    }

    /// The entries of the allow list, in the order given.
    pub fn allowed(&self) -> &[DomainPattern] {
        &self.allowed.entries
    }

    /// The entries of the deny list, in the order given.
    pub fn denied(&self) -> &[DomainPattern] {
        &self.denied.entries
    }
}

/// Whether an IPv4 entry reaches into IPv6 addresses that carry its address.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Exact,
    Embedded,
}

#[derive(Clone, Debug, Default)]
struct Index {
    entries: Vec<DomainPattern>,
    names: HashMap<DomainName, Ports>,
    subdomains: HashMap<DomainName, Ports>,
    addrs: HashMap<IpAddr, Ports>,
    any: Ports,
}

impl Index {
    fn new(entries: Vec<DomainPattern>) -> Self {
        let mut index = Self::default();
        for (at, entry) in entries.iter().enumerate() {
            let ports = match entry.host() {
                HostPattern::Name(name) => index.names.entry(name.clone()).or_default(),
                HostPattern::Subdomains(base) => index.subdomains.entry(base.clone()).or_default(),
                HostPattern::Addr(addr) => index.addrs.entry(*addr).or_default(),
                HostPattern::Any => &mut index.any,
            };
            ports.add(entry.port().map(u16::from), at);
        }
        index.entries = entries;
        index
    }

    fn find(&self, host: &Host, port: u16, reach: Reach) -> Option<&DomainPattern> {
        let specific = match host {
            Host::Name(name) => self.first_for_name(name, port),
            Host::Addr(addr) => self.first_for_addr(*addr, port, reach),
        };
        self.entry(earlier(specific, self.any.first(port)))
    }

    fn find_addr(&self, addr: IpAddr, port: u16, reach: Reach) -> Option<&DomainPattern> {
        self.entry(self.first_for_addr(addr, port, reach))
    }

    fn first_for_name(&self, name: &DomainName, port: u16) -> Option<usize> {
        let exact = self.names.get(name).and_then(|ports| ports.first(port));
        if self.subdomains.is_empty() {
            return exact;
        }
        name.parents()
            .filter_map(|base| self.subdomains.get(base)?.first(port))
            .fold(exact, |first, at| earlier(first, Some(at)))
    }

    fn first_for_addr(&self, addr: IpAddr, port: u16, reach: Reach) -> Option<usize> {
        let lookup = |addr: IpAddr| self.addrs.get(&addr).and_then(|ports| ports.first(port));
        match addr {
            IpAddr::V6(v6) if reach == Reach::Embedded => {
                earlier(lookup(addr), embedded_ipv4(v6).and_then(|v4| lookup(v4.into())))
            }
            _ => lookup(addr),
        }
    }

    fn entry(&self, at: Option<usize>) -> Option<&DomainPattern> {
        at.map(|at| &self.entries[at])
    }
}

/// The entries for one host pattern: at most one for every port, and one for each port named.
#[derive(Clone, Debug, Default)]
struct Ports {
    every: Option<usize>,
    one: HashMap<u16, usize>,
}

impl Ports {
    fn add(&mut self, port: Option<u16>, at: usize) {
        match port {
            Some(port) => {
                self.one.entry(port).or_insert(at);
            }
            None => {
                self.every.get_or_insert(at);
            }
        }
    }

    fn first(&self, port: u16) -> Option<usize> {
        if self.one.is_empty() {
            return self.every;
        }
        earlier(self.every, self.one.get(&port).copied())
    }
}

fn earlier(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
