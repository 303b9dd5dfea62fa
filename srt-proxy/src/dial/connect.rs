//! TCP to the first of several checked addresses that answers (RFC 8305, "happy eyeballs").

use std::{io, net::SocketAddr};

use thiserror::Error;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::guard::CheckedAddr;
use crate::limits;

/// Connects to the first address that answers. Each has a head start of [`limits::CONNECT_STAGGER`] over the
/// next, and gives way at once when it fails.
///
/// # Errors
/// [`ConnectError`] of the addresses' failures the one that says most, after at most [`limits::CONNECT`].
pub(super) async fn connect(addresses: &[CheckedAddr]) -> Result<TcpStream, ConnectError> {
    let race = async {
        match interleave(addresses).as_slice() {
            [] => Err(ConnectError::Unreachable),
            [only] => attempt(*only).await,
            several => race(several).await,
        }
    };
    timeout(limits::CONNECT, race).await.map_err(|_| ConnectError::Timeout)?
}

/// Why no connection was made. Of several reasons the greatest is told: the nearest to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum ConnectError {
    /// This machine has no socket or no port left, or is not allowed to.
    #[error("this host cannot open a connection")]
    Local,
    /// No route.
    #[error("the upstream cannot be reached from this host")]
    Unreachable,
    /// No answer.
    #[error("the upstream did not accept the connection in time")]
    Timeout,
    /// The connection ended while it was being made.
    #[error("the upstream reset the connection")]
    Reset,
    /// Nothing listens there.
    #[error("the upstream refused the connection")]
    Refused,
}

impl ConnectError {
    /// Whether waiting was what failed: 504 instead of 502.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout)
    }

    fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Self::Reset,
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            // EADDRNOTAVAIL: no address of this host's own in that family.
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::Unsupported => Self::Unreachable,
            _ => {
                tracing::debug!(%error, "connect");
                Self::Local
            }
        }
    }
}

async fn race(addresses: &[SocketAddr]) -> Result<TcpStream, ConnectError> {
    let mut waiting = addresses.iter();
    // Dropping it ends the attempts that lost.
    let mut running = JoinSet::new();
    let mut worst = ConnectError::Local;
    let mut next_at = Instant::now();
    loop {
        if (running.is_empty() || next_at <= Instant::now())
            && let Some(&address) = waiting.next()
        {
            running.spawn(attempt(address));
            next_at = Instant::now() + limits::CONNECT_STAGGER;
        }
        tokio::select! {
            finished = running.join_next() => match finished {
                None => return Err(worst),
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => {
                    worst = worst.max(error);
                    next_at = Instant::now();
                }
                Some(Err(_)) => {}
            },
            () = sleep_until(next_at), if waiting.len() > 0 => {}
        }
    }
}

async fn attempt(address: SocketAddr) -> Result<TcpStream, ConnectError> {
    let stream = TcpStream::connect(address).await.map_err(|error| ConnectError::from_io(&error))?;
    // Requests are written whole; waiting for more would only delay them.
    stream.set_nodelay(true).map_err(|error| ConnectError::from_io(&error))?;
    Ok(stream)
}

/// Alternates between the families, beginning with that of the first address (RFC 8305 section 4), so that one
/// broken family costs one head start.
fn interleave(addresses: &[CheckedAddr]) -> Vec<SocketAddr> {
    let addresses = || addresses.iter().map(CheckedAddr::socket_addr);
    let Some(first) = addresses().next() else { return Vec::new() };
    let mut same = addresses().filter(|address| address.is_ipv4() == first.is_ipv4());
    let mut other = addresses().filter(|address| address.is_ipv4() != first.is_ipv4());
    let mut order = Vec::new();
    loop {
        match (same.next(), other.next()) {
            (None, None) => return order,
            (one, two) => order.extend(one.into_iter().chain(two)),
        }
    }
}

#[cfg(test)]
mod tests;
