//! A tunnel nobody looks into: host and address were checked, then bytes pass as they are.

use std::io;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};

use super::ClientSocket;
use crate::dial::Upstream;
use crate::limits;
use crate::pipeline::record::Record;
use crate::timer::Timer;
use crate::wire::Wire;

/// Passes bytes both ways until both sides have ended, and tells how much it was.
pub async fn pass(mut client: Wire<ClientSocket>, mut upstream: Wire<Upstream>, mut record: Record<'_>) {
    record.allowed(200);
    let (mut there, mut back) = (Direction::default(), Direction::default());
    let end = relay(&mut client, &mut upstream, &mut there, &mut back).await;
    (record.bytes_in, record.bytes_out) = (there.bytes, back.bytes);
    record.cut_short(end.unwrap_or("the tunnel was cut"));
}

/// The end of one side is passed on as such, so that a client may end its sending and go on reading.
///
/// There is no idle limit, an SSH session may be quiet for a day; but one side's end may be all that is seen of a peer
/// that has gone, so behind it the other has [`limits::IDLE`] between its bytes.
async fn relay(
    client: &mut Wire<ClientSocket>,
    upstream: &mut Wire<Upstream>,
    there: &mut Direction,
    back: &mut Direction,
) -> io::Result<&'static str> {
    let mut timer = Timer::new(limits::IDLE);
    std::future::poll_fn(|cx| {
        let before = (*there, *back);
        let there_ended = there.poll(cx, client, upstream)?.is_ready();
        let back_ended = back.poll(cx, upstream, client)?.is_ready();
        if there_ended && back_ended {
            return Poll::Ready(Ok("the tunnel ended"));
        }
        if before != (*there, *back) {
            timer.set(limits::IDLE);
        }
        if there_ended || back_ended {
            return timer.poll_expired(cx).map(|()| Ok("one side ended, and nothing came from the other"));
        }
        Poll::Pending
    })
    .await
}

/// What went one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Direction {
    bytes: u64,
    ended: bool,
}

impl Direction {
    /// Moves what there is; ready when the end was passed on.
    fn poll<F, T>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Wire<F>,
        to: &mut Wire<T>,
    ) -> io::Result<Poll<()>>
    where
        F: AsyncRead + AsyncWrite + Unpin,
        T: AsyncRead + AsyncWrite + Unpin,
    {
        while !self.ended {
            if !to.is_drained() && to.poll_drain(cx)?.is_pending() {
                return Ok(Poll::Pending);
            }
            if !from.input.is_empty() {
                let data = from.input.split().freeze();
                self.bytes += data.len() as u64;
                to.output().pass(data);
            } else if from.at_eof() {
                if to.poll_shutdown(cx)?.is_pending() {
                    return Ok(Poll::Pending);
                }
                self.ended = true;
            } else if from.poll_fill(cx, limits::TUNNEL_BUFFER)?.is_pending() {
                return Ok(Poll::Pending);
            }
        }
        Ok(Poll::Ready(()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;

    use bytes::BytesMut;
    use tokio::time::Instant;

    use super::*;
    use crate::ingress::testing::connection;

    /// How a tunnel ends, and what went through it.
    async fn run(
        client: tokio::net::TcpStream,
        early: &[u8],
        upstream: tokio::net::TcpStream,
    ) -> (&'static str, u64, u64) {
        let mut client = Wire::new(ClientSocket::Tcp(client), BytesMut::from(early));
        let mut upstream = Wire::new(Upstream::Plain(upstream), BytesMut::new());
        client.output().front().extend_from_slice(b"200 ");
        let (mut there, mut back) = (Direction::default(), Direction::default());
        let end = relay(&mut client, &mut upstream, &mut there, &mut back).await.unwrap_or("cut");
        (end, there.bytes, back.bytes)
    }

    #[tokio::test]
    async fn bytes_go_both_ways_past_the_end_of_one() {
        let (client, mut theirs) = connection();
        let (upstream, mut server) = connection();
        let peers = tokio::task::spawn_blocking(move || {
            theirs.write_all(&[b'x'; 1 << 20]).unwrap();
            theirs.shutdown(Shutdown::Write).unwrap();
            let mut request = Vec::new();
            server.read_to_end(&mut request).unwrap();
            server.write_all(&[b'y'; 1 << 20]).unwrap();
            drop(server);
            let mut answer = Vec::new();
            theirs.read_to_end(&mut answer).unwrap();
            (request, answer)
        });
        let (end, there, back) = run(client, b"early", upstream).await;
        let (request, answer) = peers.await.unwrap();
        assert_eq!((end, there, back), ("the tunnel ended", (1 << 20) + 5, 1 << 20));
        assert!(request[..6] == *b"earlyx" && request.len() as u64 == there);
        assert!(answer[..5] == *b"200 y" && answer.len() as u64 == back + 4);
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_side_of_one_that_ended_has_minutes() {
        for client_ends in [true, false] {
            let (client, theirs) = connection();
            let (upstream, server) = connection();
            if client_ends { &theirs } else { &server }.shutdown(Shutdown::Write).unwrap();
            let begun = Instant::now();
            let (end, ..) = run(client, b"", upstream).await;
            assert!(end.starts_with("one side ended"), "{end}");
            assert!(begun.elapsed() >= limits::IDLE);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_sides_that_are_there_may_be_quiet_for_days() {
        let (client, _theirs) = connection();
        let (upstream, _server) = connection();
        let days = std::time::Duration::from_secs(3 * 24 * 3600);
        assert!(tokio::time::timeout(days, run(client, b"", upstream)).await.is_err());
    }

    #[tokio::test]
    async fn what_went_before_a_cut_is_counted() {
        let (client, theirs) = connection();
        let (upstream, mut server) = connection();
        nix::sys::socket::setsockopt(
            &theirs,
            nix::sys::socket::sockopt::Linger,
            &libc::linger { l_onoff: 1, l_linger: 0 },
        )
        .unwrap();
        let peers = std::thread::spawn(move || {
            server.read_exact(&mut [0; 5]).unwrap();
            drop(theirs);
            server
        });
        assert_eq!(run(client, b"early", upstream).await, ("cut", 5, 0));
        drop(peers.join());
    }
}
