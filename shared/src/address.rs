//! Classes of IP addresses that a name must not lead to, and ranges of addresses.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use ipnet::{IpNet, Ipv4Net};
use thiserror::Error;

/// Why an address may not be dialled. The class is what a refusal names; the address itself is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// 127.0.0.0/8 (RFC 1122 section 3.2.1.3), ::1 (RFC 4291 section 2.5.3).
    Loopback,
    /// 0.0.0.0/8 (RFC 1122 section 3.2.1.3: "this network"), :: (RFC 4291 section 2.5.2).
    Unspecified,
    /// 169.254.0.0/16 (RFC 3927), fe80::/10 (RFC 4291 section 2.5.6).
    LinkLocal,
    /// 224.0.0.0/4 (RFC 5771), ff00::/8 (RFC 4291 section 2.7).
    Multicast,
    /// 255.255.255.255 (RFC 919).
    Broadcast,
    /// Instance metadata and platform endpoints that lie outside link-local.
    CloudMetadata,
    /// 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 (RFC 1918).
    Private,
    /// 100.64.0.0/10, between a provider and its customers (RFC 6598).
    Shared,
    /// fc00::/7 (RFC 4193).
    UniqueLocal,
    /// An address of one of this host's own interfaces; only the caller knows them.
    ThisHost,
    /// An IP literal of the deny list.
    DenyListed,
    /// A range the operator listed.
    Listed,
}

/// The class for which a name may never lead to this address, unless the literal itself is allowed.
///
/// An IPv6 address that carries an IPv4 address is judged by that one too.
pub fn classify(addr: IpAddr) -> Option<AddressClass> {
    match addr {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6).or_else(|| classify_v4(embedded_ipv4(v6)?)),
    }
}

/// The class of an address of a private network, which is denied only where the policy says so.
pub fn classify_private(addr: IpAddr) -> Option<AddressClass> {
    match addr {
        IpAddr::V4(v4) => classify_private_v4(v4),
        // RFC 4193 section 3.1.
        IpAddr::V6(v6) if v6.segments()[0] & 0xfe00 == 0xfc00 => Some(AddressClass::UniqueLocal),
        IpAddr::V6(v6) => classify_private_v4(embedded_ipv4(v6)?),
    }
}

/// The IPv4 address that an IPv6 address carries, in the forms whose layout the address itself shows.
///
/// The local-use NAT64 prefix 64:ff9b:1::/48 is not among them: RFC 6052 section 2.2 lets the IPv4 address
/// stand in several places there.
pub fn embedded_ipv4(addr: Ipv6Addr) -> Option<Ipv4Addr> {
    let last = |a: u16, b: u16| Ipv4Addr::from((u32::from(a) << 16) | u32::from(b));
    match addr.segments() {
        // ::/96 IPv4-compatible (RFC 4291 section 2.5.5.1), but for :: and ::1.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0, a, b] => Some(last(a, b)),
        // ::ffff:0:0/96 IPv4-mapped (RFC 4291 section 2.5.5.2).
        [0, 0, 0, 0, 0, 0xffff, a, b] => Some(last(a, b)),
        // ::ffff:0:0:0/96 IPv4-translated (RFC 2765 section 2.1).
        [0, 0, 0, 0, 0xffff, 0, a, b] => Some(last(a, b)),
        // 64:ff9b::/96, the well-known NAT64 prefix (RFC 6052 section 2.1).
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] => Some(last(a, b)),
        // 2002::/16 6to4 (RFC 3056 section 2).
        [0x2002, a, b, ..] => Some(last(a, b)),
        _ => None,
    }
}

/// A range of addresses in CIDR form, or one address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddrRange(IpNet);

impl AddrRange {
    /// Whether the address lies in the range. What to ask of a range that *allows*.
    pub fn contains(&self, addr: IpAddr) -> bool {
        self.0.contains(&addr)
    }

    /// Whether the address lies in the range, or is an IPv6 address that carries an IPv4 address which does.
    /// What to ask of a range that *denies*. `::/0` matches no IPv4 address.
    pub fn reaches(&self, addr: IpAddr) -> bool {
        self.contains(addr)
            || match addr {
                IpAddr::V6(v6) => embedded_ipv4(v6).is_some_and(|v4| self.contains(v4.into())),
                IpAddr::V4(_) => false,
            }
    }
}

impl FromStr for AddrRange {
    type Err = AddrRangeError;

    /// Reads `10.0.0.0/8`, `192.168.1.1`, `fc00::/7`, `2001:db8::1`: no brackets, no port. Bits behind the
    /// prefix are ignored. A range inside ::ffff:0:0/96 is the IPv4 range it spells.
    fn from_str(text: &str) -> Result<Self, AddrRangeError> {
        let net = match text.split_once('/') {
            Some((addr, length)) => {
                let addr: IpAddr = addr.parse().map_err(|_| AddrRangeError::Address)?;
                IpNet::new(addr, parse_length(length)?).map_err(|_| AddrRangeError::Prefix)?
            }
            None => IpNet::from(text.parse::<IpAddr>().map_err(|_| AddrRangeError::Address)?),
        };
        Ok(Self(unmapped(net.trunc())))
    }
}

impl fmt::Display for AddrRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            write!(f, "{}", self.0.addr())
        } else {
            write!(f, "{}", self.0)
        }
    }
}

impl fmt::Debug for AddrRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is wrong with the text of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AddrRangeError {
    /// The part before the slash, or all of it.
    #[error("expected an IP address or a CIDR range without brackets or port, as in 10.0.0.0/8 or fc00::/7")]
    Address,
    /// The part behind the slash.
    #[error("the prefix length must be a number from 0 to 32 for IPv4, to 128 for IPv6")]
    Prefix,
}

/// As a refusal says it, behind "resolved to a … address".
impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Unspecified => "unspecified",
            Self::LinkLocal => "link-local",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::CloudMetadata => "cloud metadata",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::UniqueLocal => "unique-local",
            Self::ThisHost => "this host's",
            Self::DenyListed => "deny-listed",
            Self::Listed => "listed",
        })
    }
}

fn classify_v4(addr: Ipv4Addr) -> Option<AddressClass> {
    match addr.octets() {
        [127, ..] => Some(AddressClass::Loopback),
        [0, ..] => Some(AddressClass::Unspecified),
        [169, 254, ..] => Some(AddressClass::LinkLocal),
        [224..=239, ..] => Some(AddressClass::Multicast),
        [255, 255, 255, 255] => Some(AddressClass::Broadcast),
        // Alibaba, Azure, Oracle.
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => Some(AddressClass::CloudMetadata),
        _ => None,
    }
}

fn classify_v6(addr: Ipv6Addr) -> Option<AddressClass> {
    match addr.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(AddressClass::Loopback),
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(AddressClass::Unspecified),
        [0xfe80..=0xfebf, ..] => Some(AddressClass::LinkLocal),
        [0xff00..=0xffff, ..] => Some(AddressClass::Multicast),
        // AWS, Google, Oracle, Scaleway.
        [0xfd00, 0x0ec2, ..]
        | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254]
        | [0xfd00, 0x00c1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]
        | [0xfd00, 0x0042, 0, 0, 0, 0, 0, 0x0042] => Some(AddressClass::CloudMetadata),
        _ => None,
    }
}

fn classify_private_v4(addr: Ipv4Addr) -> Option<AddressClass> {
    match addr.octets() {
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(AddressClass::Private),
        [100, 64..=127, ..] => Some(AddressClass::Shared),
        _ => None,
    }
}

fn parse_length(digits: &str) -> Result<u8, AddrRangeError> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if !plain {
        return Err(AddrRangeError::Prefix);
    }
    digits.parse().map_err(|_| AddrRangeError::Prefix)
}

/// Who denies ::ffff:10.0.0.0/104 means 10.0.0.0/8, also where the resolver answers with plain IPv4.
fn unmapped(net: IpNet) -> IpNet {
    match net {
        IpNet::V6(v6) if v6.prefix_len() >= 96 => match v6.addr().to_ipv4_mapped() {
            Some(v4) => IpNet::V4(Ipv4Net::new_assert(v4, v6.prefix_len() - 96)),
            None => net,
        },
        _ => net,
    }
}

#[cfg(test)]
mod tests;
