//! A connection for one command, `HGETALL`: all reads of a turn of the runtime go out in one write,
//! and what comes back becomes entries straight from the bytes.
//!
//! A turn is what a worker does between two looks at its sockets. With the redis crate a read costs
//! two channels, two tasks and a tree of values more. The crate still makes all other connections,
//! and these too where they speak TLS or to a cluster (`wire.rs`, `reads.rs`).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use deadpool_redis::redis::{Cmd, ConnectionAddr, ConnectionInfo, RedisError, cmd};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::read::{Read, Replied};
use super::resp::{self, Malformed, Reply};
use super::shared::{Shared, unexpected_reply};
use super::wire::{self, away};
use crate::cache::CacheError;

/// Reads that may be under way on one connection; what comes then waits in the queue.
const READS_IN_FLIGHT: usize = 512;

/// Room for replies that came in together, to begin with. It grows for a reply that is larger, up
/// to …
const INPUT_BYTES: usize = 64 * 1024;

/// … this, far beyond any entry of ours.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// The longest reply to a command that sets a connection up.
const GREETING_BYTES: usize = 1024;

/// A socket.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects when there is something to read, again after every end, until the queue is dropped.
pub(super) async fn run(shared: Arc<Shared>, node: ConnectionInfo, mut queue: mpsc::Receiver<Read>) {
    let mut fresh = Vec::with_capacity(READS_IN_FLIGHT);
    while !fresh.is_empty() || queue.recv_many(&mut fresh, READS_IN_FLIGHT).await > 0 {
        match pipe_of(&shared, &node, &fresh).await {
            Ok(mut pipe) => {
                let Err(error) = pipe.serve(&shared, &mut queue, &mut fresh).await else { return };
                // One that did its work and was closed while nobody waited, as all are when Redis
                // stops, is no failure: the next is tried at once.
                if !pipe.sent.is_empty() || !pipe.has_served {
                    shared.failed(&error.to_string());
                    refuse(pipe.sent.drain(..).chain(fresh.drain(..)), &error);
                }
            }
            Err(error) => refuse(fresh.drain(..), &error),
        }
    }
}

/// Connects in time for these reads.
async fn pipe_of(shared: &Shared, node: &ConnectionInfo, reads: &[Read]) -> Result<Pipe, CacheError> {
    shared.breaker.check()?;
    let deadline = reads.first().map_or_else(|| shared.deadline(), |read| read.deadline);
    let error = match tokio::time::timeout_at(deadline, connect(node)).await {
        Ok(Ok(stream)) => return Ok(Pipe::new(stream, deadline)),
        Ok(Err(error)) if !wire::is_outage(&error) => return Err(away(&error)),
        Ok(Err(error)) => away(&error),
        Err(_) => CacheError::Away("no connection in time".to_owned()),
    };
    shared.failed(&error.to_string());
    Err(error)
}

fn refuse(reads: impl Iterator<Item = Read>, error: &CacheError) {
    reads.for_each(|read| read.answer(Err(error.clone())));
}

async fn connect(node: &ConnectionInfo) -> Result<Box<dyn Stream>, RedisError> {
    let mut stream: Box<dyn Stream> = match node.addr() {
        ConnectionAddr::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        ConnectionAddr::Unix(path) => Box::new(UnixStream::connect(path).await?),
        _ => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
    };
    let settings = node.redis_settings();
    if let Some(password) = settings.password() {
        let mut auth = cmd("AUTH");
        auth.arg(settings.username()).arg(password);
        greet(&mut stream, &auth).await?;
    }
    if settings.db() != 0 {
        greet(&mut stream, cmd("SELECT").arg(settings.db())).await?;
    }
    Ok(stream)
}

/// Sends a command that is answered with a line.
async fn greet(stream: &mut Box<dyn Stream>, command: &Cmd) -> Result<(), RedisError> {
    stream.write_all(&command.get_packed_command()).await?;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(stream.read_u8().await?);
        if line.len() > GREETING_BYTES {
            return Err(io::Error::from(io::ErrorKind::InvalidData).into());
        }
    }
    resp::refusal(&line).map_or(Ok(()), Err)
}

/// An open connection.
struct Pipe {
    stream: Box<dyn Stream>,
    /// Commands, of which so many bytes are written.
    output: Vec<u8>,
    written: usize,
    /// What was received: up to `filled`, of which what is before `parsed` is done with.
    input: Vec<u8>,
    filled: usize,
    parsed: usize,
    /// What is under way, in the order in which Redis answers.
    sent: VecDeque<Read>,
    /// Whether it has brought any answer.
    has_served: bool,
    /// Fires no later than the oldest of them is due. A timer for each would cost more than its
    /// share of a write.
    timer: Pin<Box<Sleep>>,
}

impl Pipe {
    fn new(stream: Box<dyn Stream>, deadline: Instant) -> Self {
        Self {
            stream,
            output: Vec::new(),
            written: 0,
            input: vec![0; INPUT_BYTES],
            filled: 0,
            parsed: 0,
            sent: VecDeque::with_capacity(READS_IN_FLIGHT),
            has_served: false,
            timer: Box::pin(tokio::time::sleep_until(deadline)),
        }
    }

    /// Sends what is in `fresh` and in the queue, and answers it, until the queue is dropped or the
    /// connection fails.
    async fn serve(&mut self, shared: &Shared, queue: &mut mpsc::Receiver<Read>, fresh: &mut Vec<Read>) -> Result<(), CacheError> {
        loop {
            // First of all, for nothing should be sent over a connection that has ended meanwhile.
            poll_fn(|cx| Poll::Ready(self.receive(cx, shared))).await?;
            self.send(shared, fresh);
            if poll_fn(|cx| self.poll(cx, shared, queue, fresh)).await? == 0 {
                return Ok(());
            }
            // The worker first does what else it has to do, and looks at its sockets: the reads
            // that come of it go out together with this one.
            tokio::task::yield_now().await;
            let room = READS_IN_FLIGHT.saturating_sub(self.sent.len());
            while fresh.len() < room
                && let Ok(read) = queue.try_recv()
            {
                fresh.push(read);
            }
        }
    }

    /// Puts the commands of these reads into the output.
    fn send(&mut self, shared: &Shared, fresh: &mut Vec<Read>) {
        // One with less time left would tell nothing about Redis, should it not be answered.
        let latest = Instant::now() + shared.redis.timeout / 2;
        for read in fresh.drain(..) {
            if read.deadline < latest {
                read.answer(Err(CacheError::Away("no turn in time".to_owned())));
            } else if !read.is_abandoned() {
                shared.meters.commands(1);
                resp::hgetall(&mut self.output, &shared.key(read.user));
                self.sent.push_back(read);
            }
        }
        if let Some(oldest) = self.sent.front()
            && self.timer.is_elapsed()
        {
            self.timer.as_mut().reset(oldest.deadline);
        }
    }

    /// Goes on with everything; ready when there are new reads (how many), or none will come any
    /// more (0).
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        shared: &Shared,
        queue: &mut mpsc::Receiver<Read>,
        fresh: &mut Vec<Read>,
    ) -> Poll<Result<usize, CacheError>> {
        let outcome = self.write(cx).and_then(|()| self.receive(cx, shared)).and_then(|()| self.watch(cx));
        if let Err(error) = outcome {
            return Poll::Ready(Err(error));
        }
        match READS_IN_FLIGHT.saturating_sub(self.sent.len()) {
            // Replies make room, and are looked for before this.
            0 => Poll::Pending,
            room => queue.poll_recv_many(cx, fresh, room).map(Ok),
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), CacheError> {
        while let Some(rest) = self.output.get(self.written..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Err(closed()),
                Poll::Ready(Ok(bytes)) => self.written += bytes,
                Poll::Ready(Err(error)) => return Err(away(&error.into())),
                Poll::Pending => return Ok(()),
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(())
    }

    fn receive(&mut self, cx: &mut Context<'_>, shared: &Shared) -> Result<(), CacheError> {
        loop {
            self.make_room()?;
            let mut room = ReadBuf::new(self.input.get_mut(self.filled..).unwrap_or_default());
            match Pin::new(&mut self.stream).poll_read(cx, &mut room) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Err(away(&error.into())),
                Poll::Pending => return Ok(()),
            }
            let bytes = room.filled().len();
            if bytes == 0 {
                return Err(closed());
            }
            self.filled += bytes;
            self.answer(shared)?;
        }
    }

    fn make_room(&mut self) -> Result<(), CacheError> {
        if self.parsed == self.filled {
            (self.parsed, self.filled) = (0, 0);
        }
        if self.filled < self.input.len() {
            return Ok(());
        }
        if self.parsed > 0 {
            self.input.copy_within(self.parsed..self.filled, 0);
            self.filled -= self.parsed;
            self.parsed = 0;
        } else if self.input.len() < MAX_REPLY_BYTES {
            self.input.resize(self.input.len() * 2, 0);
        } else {
            return Err(unexpected_reply());
        }
        Ok(())
    }

    /// Hands out the replies that have arrived whole.
    fn answer(&mut self, shared: &Shared) -> Result<(), CacheError> {
        let received = self.input.get(..self.filled).unwrap_or_default();
        loop {
            let rest = received.get(self.parsed..).unwrap_or_default();
            let known = self.sent.front().and_then(|read| read.known.as_ref());
            if let Some(bytes) = known.and_then(|known| known.replied(rest)) {
                self.parsed += bytes;
                self.has_served = true;
                shared.breaker.succeeded();
                if let Some(read) = self.sent.pop_front() {
                    read.answer(Ok(Replied::AsKnown));
                }
                continue;
            }
            let Some((reply, bytes)) = resp::reply(rest).map_err(|Malformed| unexpected_reply())? else { return Ok(()) };
            self.parsed += bytes;
            let read = self.sent.pop_front().ok_or_else(unexpected_reply)?;
            self.has_served = true;
            match reply {
                Reply::Hash(found) => {
                    shared.breaker.succeeded();
                    read.answer(Ok(Replied::Hash(found, rest.get(..bytes).map(Box::from))));
                }
                Reply::Refused(error) => {
                    if wire::is_outage(&error) {
                        shared.failed(&error.to_string());
                    }
                    read.answer(Err(away(&error)));
                }
            }
        }
    }

    /// Whether the oldest read is still in time.
    fn watch(&mut self, cx: &mut Context<'_>) -> Result<(), CacheError> {
        while self.timer.as_mut().poll(cx).is_ready() {
            // Set again with the next read.
            let Some(oldest) = self.sent.front() else { return Ok(()) };
            if oldest.deadline <= Instant::now() {
                return Err(CacheError::Away("no answer in time".to_owned()));
            }
            self.timer.as_mut().reset(oldest.deadline);
        }
        Ok(())
    }
}

fn closed() -> CacheError {
    CacheError::Away("the connection was closed".to_owned())
}
