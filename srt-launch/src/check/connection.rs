//! The ways through the proxy: each must lead to what is allowed, and to nothing else.

use std::ffi::OsString;
use std::fmt;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::{GOT_OUT, NOT_REACHED, REFUSED};
use crate::proxy::PROXY_PORT;

/// Longer than a connection to this machine takes under any load.
const PATIENCE: Duration = Duration::from_secs(10);

/// One way to ask the proxy for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A request for a whole URL.
    Http,
    /// A tunnel through HTTP.
    Connect,
    /// SOCKS5.
    Socks,
}

/// Two servers of this machine, of which the settings allow one. Their threads end with the program.
#[derive(Debug)]
pub struct Servers {
    /// The port of the one that may be reached.
    pub allowed: u16,
    /// The port of the other.
    pub denied: u16,
}

impl Servers {
    /// Starts both.
    pub fn start() -> Result<Self> {
        Ok(Self { allowed: serve()?, denied: serve()? })
    }
}

fn serve() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.set_read_timeout(Some(PATIENCE));
            let _ = client.read(&mut [0; 1024]);
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    Ok(port)
}

impl Way {
    /// Every one, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Http, Self::Connect, Self::Socks];

    /// For the command line of the one inside.
    pub fn arguments(self, servers: &Servers) -> [OsString; 3] {
        [format!("{self:?}").into(), servers.allowed.to_string().into(), servers.denied.to_string().into()]
    }

    /// Goes both ways. `None` if the words are not about a way; else what became of it as an exit status.
    pub fn run_inside(words: &[OsString]) -> Option<i32> {
        let [name, allowed, denied] = words else { return None };
        let way = Self::ALL.into_iter().find(|way| *format!("{way:?}") == **name)?;
        let port = |word: &OsString| word.to_str()?.parse::<u16>().ok();
        let (allowed, denied) = (port(allowed)?, port(denied)?);
        Some(match (way.leads_to(allowed), way.leads_to(denied)) {
            (Ok(()), Err(_)) => REFUSED,
            (_, Ok(())) => GOT_OUT,
            (Err(_), Err(_)) => NOT_REACHED,
        })
    }

    fn leads_to(self, port: u16) -> Result<()> {
        let proxy = SocketAddr::from((Ipv4Addr::LOCALHOST, PROXY_PORT));
        let mut proxy = TcpStream::connect_timeout(&proxy, PATIENCE)?;
        proxy.set_read_timeout(Some(PATIENCE))?;
        let refused = || Error::from(ErrorKind::ConnectionRefused);
        if self == Self::Socks {
            // One method, no authentication; then CONNECT to an IPv4 address.
            let [high, low] = port.to_be_bytes();
            proxy.write_all(&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, high, low])?;
            let mut answer = [0; 4];
            proxy.read_exact(&mut answer)?;
            return if answer == [5, 0, 5, 0] { Ok(()) } else { Err(refused()) };
        }
        let host = format!("127.0.0.1:{port}");
        match self {
            Self::Http => write!(proxy, "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")?,
            _ => write!(proxy, "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n")?,
        }
        let mut answer = [0; 12];
        proxy.read_exact(&mut answer)?;
        if &answer == b"HTTP/1.1 200" { Ok(()) } else { Err(refused()) }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self {
            Self::Http => "an HTTP request",
            Self::Connect => "an HTTP tunnel",
            Self::Socks => "SOCKS",
        };
        write!(f, "by {by} an allowed server is reached and another one is not")
    }
}
