use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};

/// How long a peer in a test waits before it says that nothing came. Longer than every deadline of the proxy
/// that a test runs into.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One connection, of a client or an upstream, with or without TLS: HTTP messages at leisure, and all the ways to
/// misbehave.
#[derive(Debug)]
pub struct Conn {
    io: Io,
    /// Read and not yet used.
    input: Vec<u8>,
}

#[derive(Debug)]
enum Io {
    Plain(TcpStream),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
}

/// The head of a request or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The request line or status line.
    pub start: String,
    /// Names and values, as they came.
    pub fields: Vec<(String, String)>,
}

impl Conn {
    /// A connection without TLS.
    pub fn plain(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        let conn = Self { io: Io::Plain(socket), input: Vec::new() };
        conn.set_patience(PATIENCE)?;
        Ok(conn)
    }

    /// How long a read or a write waits for the peer.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        // Both for either: with TLS, a write that is held back also tries to read.
        self.socket().set_read_timeout(Some(patience))?;
        self.socket().set_write_timeout(Some(patience))
    }

    /// The client's side of TLS. Does the handshake.
    pub fn into_tls_client(self, config: &Arc<ClientConfig>, name: &str) -> io::Result<Self> {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        let mut stream = Box::new(StreamOwned::new(tls, self.into_socket()));
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(Self { io: Io::Client(stream), input: Vec::new() })
    }

    /// The server's side of TLS. Does the handshake.
    pub fn into_tls_server(self, config: &Arc<ServerConfig>) -> io::Result<Self> {
        let tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let mut stream = Box::new(StreamOwned::new(tls, self.into_socket()));
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(Self { io: Io::Server(stream), input: Vec::new() })
    }

    /// The socket beneath.
    pub fn socket(&self) -> &TcpStream {
        match &self.io {
            Io::Plain(socket) => socket,
            Io::Client(stream) => &stream.sock,
            Io::Server(stream) => &stream.sock,
        }
    }

    fn into_socket(self) -> TcpStream {
        assert!(
            self.input.is_empty(),
            "bytes before the handshake: {:?}",
            self.input.escape_ascii().to_string()
        );
        match self.io {
            Io::Plain(socket) => socket,
            Io::Client(_) | Io::Server(_) => panic!("TLS inside TLS"),
        }
    }

    /// Writes all of it.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.write_all(bytes.as_ref())?;
        self.flush()
    }

    /// Writes to the socket, beneath the TLS if there is any.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket().write_all(bytes)
    }

    /// Ends the sending side and keeps reading: with TLS a close_notify, and then a FIN.
    pub fn end_sending(&mut self) -> io::Result<()> {
        match &mut self.io {
            Io::Plain(_) => {}
            Io::Client(stream) => {
                stream.conn.send_close_notify();
                stream.flush()?;
            }
            Io::Server(stream) => {
                stream.conn.send_close_notify();
                stream.flush()?;
            }
        }
        self.socket().shutdown(Shutdown::Write)
    }

    /// Makes the close a reset.
    pub fn reset(self) {
        let now = libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(self.socket(), sockopt::Linger, &now).unwrap();
    }

    /// The next head; `None` when the peer ended its side before it.
    pub fn read_head(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(end) = self.input.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.input.drain(..end + 4).collect();
                return Message::parse(&head[..end]).map(Some);
            }
            if self.fill()? == 0 {
                return match self.input.is_empty() {
                    true => Ok(None),
                    false => Err(ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// The body of the message with this head, read as it is asked for. `until_close`: it is an answer whose end
    /// may be that of the connection.
    pub fn body(&mut self, head: &Message, until_close: bool) -> Body<'_> {
        let left = if head.field("transfer-encoding").is_some() {
            Left::Chunks(0)
        } else if let Some(length) = head.field("content-length") {
            Left::Bytes(length.parse().expect("a content length"))
        } else if until_close {
            Left::UntilClose
        } else {
            Left::Bytes(0)
        };
        Body { conn: self, left }
    }

    /// The next answer, whole: its head and its body.
    pub fn read_answer(&mut self) -> io::Result<(Message, Vec<u8>)> {
        let head = self.read_head()?.ok_or(ErrorKind::UnexpectedEof)?;
        let mut body = Vec::new();
        self.body(&head, true).read_to_end(&mut body)?;
        Ok((head, body))
    }

    /// Sends a request without a body on a connection that stays open, and reads its answer.
    pub fn get(&mut self, target: &str, host: &str) -> io::Result<(Message, Vec<u8>)> {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))?;
        self.read_answer()
    }

    /// Reads whatever still comes, until the peer ends its side or resets; gives back how much that was.
    ///
    /// # Errors
    /// When it does neither for [`PATIENCE`].
    pub fn read_to_close(&mut self) -> io::Result<usize> {
        let mut sum = self.input.len();
        self.input.clear();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => return Ok(sum),
                Ok(n) => sum += n,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Err(e),
                // However it ends, it is over.
                Err(_) => return Ok(sum),
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        let n = read_io(&mut self.io, &mut buffer)?;
        self.input.extend_from_slice(&buffer[..n]);
        Ok(n)
    }

    fn read_line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.input.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.input.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.fill()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Read for Conn {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.input.is_empty() {
            return read_io(&mut self.io, buf);
        }
        let n = buf.len().min(self.input.len());
        buf[..n].copy_from_slice(&self.input[..n]);
        self.input.drain(..n);
        Ok(n)
    }
}

impl Write for Conn {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.io {
            Io::Plain(socket) => socket.write(buf),
            Io::Client(stream) => stream.write(buf),
            Io::Server(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.io {
            Io::Plain(socket) => socket.flush(),
            Io::Client(stream) => stream.flush(),
            Io::Server(stream) => stream.flush(),
        }
    }
}

fn read_io(io: &mut Io, buf: &mut [u8]) -> io::Result<usize> {
    match io {
        Io::Plain(socket) => socket.read(buf),
        Io::Client(stream) => stream.read(buf),
        Io::Server(stream) => stream.read(buf),
    }
}

impl Message {
    fn parse(head: &[u8]) -> io::Result<Self> {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let fields = lines
            .map(|line| line.split_once(':').ok_or(ErrorKind::InvalidData))
            .map(|field| field.map(|(name, value)| (name.to_owned(), value.trim().to_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Self { start, fields })
    }

    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The status of an answer.
    ///
    /// # Panics
    /// When it is none.
    pub fn status(&self) -> u16 {
        let code = self.start.split(' ').nth(1).and_then(|code| code.parse().ok());
        code.unwrap_or_else(|| panic!("no status line: {}", self.start))
    }

    /// The method of a request.
    pub fn method(&self) -> &str {
        self.start.split(' ').next().unwrap_or_default()
    }

    /// The target of a request.
    pub fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }
}

/// The body of one message.
#[derive(Debug)]
pub struct Body<'a> {
    conn: &'a mut Conn,
    left: Left,
}

#[derive(Debug)]
enum Left {
    Bytes(u64),
    /// Bytes left of the chunk that is being read.
    Chunks(u64),
    UntilClose,
}

impl Read for Body<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.left {
            Left::UntilClose => self.conn.read(buf),
            Left::Bytes(left) => read_some(self.conn, buf, left),
            Left::Chunks(left) => {
                if *left == 0 {
                    let line = self.conn.read_line()?;
                    *left = u64::from_str_radix(&line, 16).map_err(|_| ErrorKind::InvalidData)?;
                    if *left == 0 {
                        while !self.conn.read_line()?.is_empty() {}
                        self.left = Left::Bytes(0);
                        return Ok(0);
                    }
                }
                let n = read_some(self.conn, buf, left)?;
                if *left == 0 {
                    self.conn.read_line()?;
                }
                Ok(n)
            }
        }
    }
}

fn read_some(conn: &mut Conn, buf: &mut [u8], left: &mut u64) -> io::Result<usize> {
    let most = buf.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    if most == 0 {
        return Ok(0);
    }
    let n = conn.read(&mut buf[..most])?;
    if n == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    *left -= n as u64;
    Ok(n)
}
