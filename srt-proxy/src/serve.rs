//! Accepting connections, bounded in number, until told to stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::fds::Listener;
use crate::ingress::{self, ClientSocket};
use crate::limits;
use crate::session::Session;

/// Accepts on `listener` and serves each connection, until `stop` is ready; then lets requests in flight finish
/// for `grace` and ends every connection.
pub async fn serve(
    listener: Listener,
    session: Arc<Session>,
    stop: impl Future<Output = ()>,
    grace: Duration,
) -> io::Result<()> {
    let acceptor = Acceptor::new(listener)?;
    let mut connections = JoinSet::new();
    let mut fails = false;
    tokio::pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                // A panic is a bug of ours; it must cost one connection, not all.
                if let Err(e) = ended && e.is_panic() {
                    warn!("a connection ended in a panic");
                }
            }
            accepted = acceptor.accept(), if connections.len() < limits::CONNECTIONS => match accepted {
                Ok(socket) => {
                    fails = false;
                    connections.spawn(ingress::serve(socket, Arc::clone(&session)));
                }
                Err(e) if is_about_one_connection(&e) => debug!("accept: {e}"),
                Err(e) => {
                    // Clients bring this about, so it is told once.
                    if !std::mem::replace(&mut fails, true) {
                        warn!("cannot accept: {e}");
                    }
                    tokio::time::sleep(limits::ACCEPT_BACKOFF).await;
                }
            },
        }
    }
    drop(acceptor);
    drain(&session, grace).await;
    connections.shutdown().await;
    Ok(())
}

/// Answers the clients that wait for a proxy which does not start, for a moment: they learn that it is the decider's
/// fault, where a closed socket would look like a fault of the network.
pub async fn refuse_waiting(listener: Listener) -> io::Result<()> {
    let acceptor = Acceptor::new(listener)?;
    let mut connections = JoinSet::new();
    let refusing = async {
        while connections.len() < limits::CONNECTIONS {
            connections.spawn(ingress::refuse_unserved(acceptor.accept().await?));
        }
        io::Result::Ok(())
    };
    if let Ok(Err(e)) = tokio::time::timeout(limits::REFUSE_WAITING, refusing).await {
        debug!("accept: {e}");
    }
    let _ = tokio::time::timeout(limits::REFUSE_WAITING, connections.join_all()).await;
    Ok(())
}

/// Waits until no request is in flight, `most` at the longest.
async fn drain(session: &Session, most: Duration) {
    let _ = tokio::time::timeout(most, session.in_flight.wait_until_none()).await;
}

enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Acceptor {
    fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    async fn accept(&self) -> io::Result<ClientSocket> {
        match self {
            Self::Tcp(listener) => {
                let (socket, _) = listener.accept().await?;
                // Answers are written whole; waiting for more (Nagle) only adds a delayed ACK's 40 ms.
                socket.set_nodelay(true)?;
                Ok(ClientSocket::Tcp(socket))
            }
            Self::Unix(listener) => Ok(ClientSocket::Unix(listener.accept().await?.0)),
        }
    }
}

/// The client left between its connect and our accept: nothing to wait for.
fn is_about_one_connection(e: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, InvalidInput, NotConnected};
    matches!(e.kind(), ConnectionAborted | ConnectionReset | Interrupted | InvalidInput | NotConnected)
}
