//! The socket of one connection, with the bounds that hyper leaves open.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::http::watch::Watch;

/// With what an HTTP/2 connection begins; until so much came it is not known what the client
/// speaks.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long a closed connection still takes what its client sends: while nothing comes, and in all. What
/// crosses the close (a request, or the rest of a body that was refused unread) would otherwise be
/// answered with a reset, which also takes away what the client has not read yet.
const LINGER_QUIET: Duration = Duration::from_secs(1);
const LINGER: Duration = Duration::from_secs(2);
/// How much of it is read at once.
const LINGER_PIECE: usize = 16 * 1024;
/// How long the first bytes of a connection that is to end may take to be seen.
const FIRST_READ: Duration = Duration::from_millis(50);

/// A connection whose first bytes must come in time, whose writes are watched, and which is closed
/// without a reset.
///
/// The header timeout does not run until it is known which HTTP the client speaks, so a client that
/// sends nothing, or `P` alone, would keep its place for ever.
pub(super) struct Socket {
    stream: TcpStream,
    watch: Arc<Watch>,
    waiting: Option<FirstBytes>,
    /// How much is taken of what the client sends after the close.
    linger_bytes: usize,
    lingering: Option<Lingering>,
}

/// The wait for as many bytes as HTTP/2's preface has.
struct FirstBytes {
    timer: Pin<Box<Sleep>>,
    seen: usize,
    is_preface: bool,
    /// How long a connection that is to end may yet show that it has something.
    grace: Option<Pin<Box<Sleep>>>,
}

struct Lingering {
    timer: Pin<Box<Sleep>>,
    ends: Instant,
    left_bytes: usize,
}

impl Lingering {
    fn begin(left_bytes: usize) -> Self {
        Self { timer: Box::pin(tokio::time::sleep(LINGER_QUIET)), ends: Instant::now() + LINGER, left_bytes }
    }

    /// The client has sent so much.
    fn take(&mut self, bytes: usize) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        self.timer.as_mut().reset(self.ends.min(Instant::now() + LINGER_QUIET));
    }
}

impl Socket {
    pub(super) fn new(stream: TcpStream, timeout: Duration, linger_bytes: usize, watch: Arc<Watch>) -> Self {
        let waiting = FirstBytes { timer: Box::pin(tokio::time::sleep(timeout)), seen: 0, is_preface: true, grace: None };
        Self { stream, watch, waiting: Some(waiting), linger_bytes, lingering: None }
    }

    fn watch_write(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.watch.blocked(),
            Poll::Ready(Ok(bytes)) => self.watch.written(*bytes),
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl FirstBytes {
    /// Takes these bytes in; whether they were all that it waits for.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let expected = PREFACE.get(self.seen..).unwrap_or_default();
        self.is_preface &= bytes.iter().zip(expected).all(|(byte, expected)| byte == expected);
        self.seen += bytes.len();
        self.seen >= PREFACE.len()
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        let Some(waiting) = &mut this.waiting else { return read };
        if read.is_pending() {
            // As if the client had closed: then hyper closes too, and in order. What the system has taken
            // already shows a moment after the first look.
            if waiting.is_preface && this.watch.ends_unbegun() {
                let grace = waiting.grace.get_or_insert_with(|| Box::pin(tokio::time::sleep(FIRST_READ)));
                return grace.as_mut().poll(cx).map(Ok);
            }
            return waiting.timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        if waiting.take(buf.filled().get(before..).unwrap_or_default()) {
            if waiting.is_preface {
                this.watch.begins_http2();
            }
            this.watch.begins();
            this.waiting = None;
        } else if !waiting.is_preface {
            this.watch.begins();
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.watch_write(&written);
        written
    }

    /// hyper flushes when the socket has taken all that it was given.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.watch.flushed();
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    /// Says that no more comes, then takes what the client sends until it closes too.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        let lingering = this.lingering.get_or_insert_with(|| Lingering::begin(this.linger_bytes));
        let mut bytes = [0; LINGER_PIECE];
        while lingering.left_bytes > 0 && Instant::now() < lingering.ends {
            let mut buf = ReadBuf::new(&mut bytes);
            match Pin::new(&mut this.stream).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => lingering.take(buf.filled().len()),
                // The client has closed too.
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return lingering.timer.as_mut().poll(cx).map(Ok),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.watch_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
