//! Where a name may lead.
//!
//! The lists match by name, but whoever controls a permitted name's DNS controls what it resolves to. So the
//! addresses are checked, and what passed is what is dialled: there is no second lookup.

use std::{
    cell::LazyCell,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use srt_shared::{
    address::{AddrRange, AddressClass, classify, classify_private, embedded_ipv4},
    domain::Host,
    lists::Lists,
};
use thiserror::Error;

use super::interfaces;

/// An address that passed the check, with its port. Only [`Guard::check`] makes one, and only one can be
/// connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedAddr(SocketAddr);

impl CheckedAddr {
    /// Where to connect.
    pub(super) fn socket_addr(&self) -> SocketAddr {
        self.0
    }
}

/// What a session says about addresses.
#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    /// Address literals of the allow list exempt themselves for their port; those of the deny list are
    /// denied to names too, and win.
    pub lists: Arc<Lists>,
    /// Whether names may not lead into private networks either: yes under a decider, no under settings,
    /// where listing an intranet name is legitimate.
    pub deny_private: bool,
    /// Ranges that names may lead to although their class is denied.
    pub allowed: Vec<AddrRange>,
    /// More ranges that names may not lead to. They win over `allowed`.
    pub denied: Vec<AddrRange>,
}

/// Checks the addresses that a host resolved to.
#[derive(Debug, Clone)]
pub struct Guard {
    policy: AddressPolicy,
    interfaces: fn() -> io::Result<Vec<IpAddr>>,
}

impl Guard {
    /// A guard for one session's policy, on this machine.
    pub fn new(policy: AddressPolicy) -> Self {
        Self { policy, interfaces: interfaces::list }
    }

    /// The addresses of `host` that may be dialled at `port`, in the order given, at least one.
    ///
    /// `localhost` and names below it lead to loopback or to a literal of the allow list, and nowhere else.
    ///
    /// # Errors
    /// Why the first address may not be dialled, when none may.
    pub fn check(
        &self,
        host: &Host,
        port: u16,
        addresses: &[IpAddr],
    ) -> Result<Vec<CheckedAddr>, AddressRefused> {
        let check = Check {
            policy: &self.policy,
            // Read at each check that gets so far: interfaces come and go while the proxy runs.
            own: LazyCell::new(self.interfaces),
            localhost: host.name().is_some_and(|name| name.is_localhost()),
            port,
        };
        let mut refused = None;
        let mut checked = Vec::with_capacity(addresses.len());
        for &address in addresses {
            match check.judge(address) {
                Ok(()) => checked.push(CheckedAddr(SocketAddr::new(address, port))),
                Err(reason) => {
                    tracing::debug!(%host, port, %address, %reason, "address refused");
                    refused.get_or_insert(reason);
                }
            }
        }
        if checked.is_empty() { Err(refused.unwrap_or(AddressRefused::None)) } else { Ok(checked) }
    }
}

/// Why a host may not be dialled at the addresses it has. Names the class; the address itself is for the debug
/// log only, since it would tell the client about the network here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AddressRefused {
    /// The address belongs to a class that names must not lead to.
    #[error("resolved to a {0} address")]
    Class(AddressClass),
    /// `localhost` means this machine (RFC 6761 section 6.3).
    #[error("a localhost name resolved to an address that is not loopback")]
    NotLoopback,
    /// Without the list of this host's own addresses nothing can be checked.
    #[error("this host's own addresses cannot be listed")]
    OwnAddressesUnknown,
    /// There was no address to check.
    #[error("resolved to no address")]
    None,
}

struct Check<'a> {
    policy: &'a AddressPolicy,
    own: LazyCell<io::Result<Vec<IpAddr>>>,
    localhost: bool,
    port: u16,
}

impl Check<'_> {
    fn judge(&self, address: IpAddr) -> Result<(), AddressRefused> {
        let AddressPolicy { lists, deny_private, allowed, denied } = self.policy;
        if lists.denies_addr(address, self.port).is_some() {
            return Err(AddressRefused::Class(AddressClass::DenyListed));
        }
        // Reaching it by name grants nothing that the literal on the list does not.
        if lists.exempts(address, self.port).is_some() {
            return Ok(());
        }
        if denied.iter().any(|range| range.reaches(address)) {
            return Err(AddressRefused::Class(AddressClass::Listed));
        }
        let class = classify(address);
        if self.localhost {
            let loopback = class == Some(AddressClass::Loopback);
            return if loopback { Ok(()) } else { Err(AddressRefused::NotLoopback) };
        }
        if allowed.iter().any(|range| range.contains(address)) {
            return Ok(());
        }
        let class = match class {
            Some(class) => Some(class),
            None if self.is_own(address)? => Some(AddressClass::ThisHost),
            None if *deny_private => classify_private(address),
            None => None,
        };
        class.map_or(Ok(()), |class| Err(AddressRefused::Class(class)))
    }

    fn is_own(&self, address: IpAddr) -> Result<bool, AddressRefused> {
        let own = self.own.as_ref().map_err(|_| AddressRefused::OwnAddressesUnknown)?;
        let embedded = match address {
            IpAddr::V6(v6) => embedded_ipv4(v6).map(IpAddr::V4),
            IpAddr::V4(_) => None,
        };
        Ok(own.contains(&address) || embedded.is_some_and(|v4| own.contains(&v4)))
    }
}

#[cfg(test)]
mod tests;
