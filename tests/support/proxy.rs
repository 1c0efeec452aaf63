//! A TCP proxy in front of a store. In front of Postgres it reads the frontend's messages, so that
//! a test can break a connection at a chosen point of a transaction.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedMutexGuard, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// What happens, once, to the next connection that gets so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// Cut off when the commit arrives; Postgres never sees it, nor what goes with it.
    BeforeCommit,
    /// The commit is forwarded and carried out; the connection is cut instead of its answer.
    AfterCommit,
    /// Cut off when the commit arrives; what was on its way reaches Postgres so much later.
    LateCommit(Duration),
    /// The commit's answer comes so much later.
    SlowAnswer(Duration),
    /// Cut off after so many messages of the transaction, which are texts or end in a Sync; the
    /// first has its begin.
    AfterStatements(usize),
}

/// The proxy. Everything that goes through it ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    listening: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    upstream: Mutex<String>,
    /// Whether it is Postgres, whose messages are read.
    reads: bool,
    trap: Mutex<Option<Trap>>,
    sprung: AtomicUsize,
    /// Whether springing the trap also takes the whole database away.
    then_leave: AtomicBool,
    away: AtomicBool,
    /// Whether answers are held back: the database seems to stand still.
    paused: watch::Sender<bool>,
    /// By how many milliseconds every answer is held back.
    slow_ms: AtomicU64,
    /// How many bytes of requests a connection takes in a second; 0: any number.
    bytes_per_s: AtomicU64,
    connections: Mutex<CancellationToken>,
    /// Until it is cancelled, the path does not swallow what goes over those that are there.
    passes: Mutex<CancellationToken>,
    /// How many milliseconds later than its client a server is told that a connection is cut.
    notice_ms: AtomicU64,
}

impl Proxy {
    /// In front of the database of this URL; returns the URL that leads through the proxy too.
    pub async fn start(database_url: &str) -> (Self, String) {
        let (before, rest) = database_url.split_once('@').expect("postgres://user@host:port/database");
        let (host, database) = rest.split_once('/').unwrap();
        let upstream = if host.contains(':') { host.to_owned() } else { format!("{host}:5432") };
        let this = Self::before(upstream, true).await;
        // Without TLS, or the messages could not be read.
        let url = format!("{before}@127.0.0.1:{}/{database}?sslmode=disable", this.port);
        (this, url)
    }

    /// In front of the Redis of this URL; it sets no traps.
    pub async fn start_redis(redis_url: &str) -> (Self, String) {
        let (upstream, account) = upstream_and_account(redis_url);
        let this = Self::before(upstream, false).await;
        let url = format!("{account}127.0.0.1:{}", this.port);
        (this, url)
    }

    async fn before(upstream: String, reads: bool) -> Self {
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream),
            reads,
            trap: Mutex::new(None),
            sprung: AtomicUsize::new(0),
            then_leave: AtomicBool::new(false),
            away: AtomicBool::new(false),
            paused: watch::Sender::default(),
            slow_ms: AtomicU64::new(0),
            bytes_per_s: AtomicU64::new(0),
            connections: Mutex::new(CancellationToken::new()),
            passes: Mutex::new(CancellationToken::new()),
            notice_ms: AtomicU64::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let listening = Mutex::new(Some(AbortOnDropHandle::new(tokio::spawn(accept(listener, Arc::clone(&shared))))));
        Self { shared, port, listening }
    }

    /// Sets the trap.
    pub fn arm(&self, trap: Trap) {
        self.shared.then_leave.store(false, Ordering::SeqCst);
        *self.shared.trap.lock().unwrap() = Some(trap);
    }

    /// The same, and from then on the database is away.
    pub fn arm_and_leave(&self, trap: Trap) {
        self.arm(trap);
        self.shared.then_leave.store(true, Ordering::SeqCst);
    }

    /// How many traps have sprung.
    pub fn sprung(&self) -> usize {
        self.shared.sprung.load(Ordering::SeqCst)
    }

    /// The database is away: every connection is cut, and new ones are refused.
    pub fn leave(&self) {
        self.shared.leave();
        self.listening.lock().unwrap().take();
    }

    /// From here on it leads to another server, as a name that follows the primary does. Every
    /// connection is cut.
    pub async fn lead_to(&self, url: &str) {
        let (address, _) = upstream_and_account(url.strip_suffix("/postgres").unwrap_or(url));
        self.leave();
        *self.shared.upstream.lock().unwrap() = address;
        self.come_back().await;
    }

    /// From here on new connections lead to another server, as a name does that follows the primary.
    /// Those that are there stay.
    pub fn lead_new_to(&self, url: &str) {
        *self.shared.upstream.lock().unwrap() = upstream_and_account(url.strip_suffix("/postgres").unwrap_or(url)).0;
    }

    /// The path to the database forgets every connection: they are cut for the node, and the
    /// database hears of it so much later. New ones go through.
    pub fn forget(&self, notice: Duration) {
        self.shared.notice_ms.store(notice.as_millis().try_into().unwrap(), Ordering::SeqCst);
        self.shared.cut_all();
    }

    /// The path to the database swallows what goes over the connections that are there, in both directions, and
    /// tells the node nothing; the database hears of their end so much later. New ones go through.
    pub fn swallow(&self, notice: Duration) {
        self.shared.notice_ms.store(notice.as_millis().try_into().unwrap(), Ordering::SeqCst);
        std::mem::take(&mut *self.shared.passes.lock().unwrap()).cancel();
    }

    /// The database stands still, or goes on: what was asked meanwhile is answered then.
    pub fn pause(&self, paused: bool) {
        self.shared.paused.send_replace(paused);
    }

    /// From here on every answer comes so much later.
    pub fn slow(&self, by: Duration) {
        self.shared.slow_ms.store(by.as_millis().try_into().unwrap(), Ordering::SeqCst);
    }

    /// From here on each connection to Redis takes so many bytes in a second.
    pub fn narrow(&self, bytes_per_s: u64) {
        self.shared.bytes_per_s.store(bytes_per_s, Ordering::SeqCst);
    }

    /// The database is back, on the same port.
    pub async fn come_back(&self) {
        self.listening.lock().unwrap().take();
        self.shared.away.store(false, Ordering::SeqCst);
        let mut listener = TcpListener::bind(("127.0.0.1", self.port)).await;
        while listener.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            listener = TcpListener::bind(("127.0.0.1", self.port)).await;
        }
        let accepting = tokio::spawn(accept(listener.unwrap(), Arc::clone(&self.shared)));
        *self.listening.lock().unwrap() = Some(AbortOnDropHandle::new(accepting));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Shared {
    fn leave(&self) {
        self.away.store(true, Ordering::SeqCst);
        self.notice_ms.store(0, Ordering::SeqCst);
        self.cut_all();
    }

    fn cut_all(&self) {
        std::mem::take(&mut *self.connections.lock().unwrap()).cancel();
    }

    /// Takes the trap, if this is what it waits for.
    fn spring(&self, is_it: impl Fn(Trap) -> bool) -> Option<Trap> {
        let mut trap = self.trap.lock().unwrap();
        let sprung = trap.take_if(|trap| is_it(*trap));
        if sprung.is_some() {
            self.sprung.fetch_add(1, Ordering::SeqCst);
        }
        sprung
    }

    fn cut(&self, connection: &CancellationToken) {
        connection.cancel();
        if self.then_leave.load(Ordering::SeqCst) {
            self.leave();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        if shared.away.load(Ordering::SeqCst) {
            continue;
        }
        let all = shared.connections.lock().unwrap().clone();
        tokio::spawn(serve(client, Arc::clone(&shared), all.child_token()));
    }
}

/// Of the URL of a Redis: the address, and what stands before it.
pub fn upstream_and_account(redis_url: &str) -> (String, String) {
    let at = redis_url.rfind(['@', '/']).expect("redis://:password@host:port");
    let (account, address) = redis_url.split_at(at + 1);
    (address.to_owned(), account.to_owned())
}

/// What the two directions of a connection tell each other.
#[derive(Default)]
struct Answers {
    /// The next answer ends the connection instead of being passed on.
    swallow: AtomicBool,
    /// The next answer comes so many milliseconds later.
    delay_ms: AtomicUsize,
}

async fn serve(client: TcpStream, shared: Arc<Shared>, cut: CancellationToken) {
    let upstream = shared.upstream.lock().unwrap().clone();
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let answers = Answers::default();
    if !shared.reads {
        tokio::select! {
            () = cut.cancelled() => {}
            _ = pass_on(&mut from_client, &mut to_server, &shared) => {}
            _ = replies(from_server, &mut to_client, &shared, &cut, &answers) => {}
        }
        return;
    }
    // The server's side is closed once nobody holds this.
    let to_server = Arc::new(tokio::sync::Mutex::new(to_server));
    let passes = shared.passes.lock().unwrap().clone();
    let is_swallowed = tokio::select! {
        () = cut.cancelled() => false,
        () = passes.cancelled() => true,
        _ = requests(&mut from_client, Arc::clone(&to_server).lock_owned().await, &shared, &cut, &answers) => return,
        _ = replies(from_server, &mut to_client, &shared, &cut, &answers) => return,
    };
    let notice = Duration::from_millis(shared.notice_ms.load(Ordering::SeqCst));
    if is_swallowed {
        let mut nowhere = tokio::io::sink();
        tokio::select! {
            () = cut.cancelled() => {}
            _ = tokio::io::copy(&mut from_client, &mut nowhere) => {}
            () = async {
                tokio::time::sleep(notice).await;
                drop(to_server);
                std::future::pending::<()>().await;
            } => {}
        }
        return;
    }
    drop((from_client, to_client));
    tokio::time::sleep(notice).await;
}

/// Requests to Redis, as fast as the line is.
async fn pass_on(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, shared: &Shared) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read]).await?;
        let ms = (u64::try_from(read).unwrap() * 1000).checked_div(shared.bytes_per_s.load(Ordering::SeqCst));
        if let Some(ms) = ms {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
}

async fn requests(
    from: &mut OwnedReadHalf,
    mut to: OwnedMutexGuard<OwnedWriteHalf>,
    shared: &Shared,
    cut: &CancellationToken,
    answers: &Answers,
) -> std::io::Result<()> {
    // The first message has no type: its length, and the rest.
    let length = from.read_u32().await?;
    let mut rest = vec![0; usize::try_from(length).unwrap() - 4];
    from.read_exact(&mut rest).await?;
    to.write_all(&length.to_be_bytes()).await?;
    to.write_all(&rest).await?;
    let mut statements = None;
    loop {
        let kind = from.read_u8().await?;
        let length = from.read_u32().await?;
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        from.read_exact(&mut body).await?;
        let query =
            if kind == b'Q' { std::str::from_utf8(&body).unwrap_or_default().trim_end_matches('\0').to_lowercase() } else { String::new() };
        if query == "begin" || query.starts_with("begin;") {
            statements = Some(0);
        }
        if query == "commit" || query.ends_with(";commit") {
            statements = None;
            match shared.spring(|trap| !matches!(trap, Trap::AfterStatements(_))) {
                Some(Trap::AfterCommit) => answers.swallow.store(true, Ordering::SeqCst),
                Some(Trap::SlowAnswer(delay)) => {
                    answers.delay_ms.store(usize::try_from(delay.as_millis()).unwrap(), Ordering::SeqCst);
                }
                Some(Trap::LateCommit(delay)) => {
                    let message = [&[kind][..], &length.to_be_bytes(), &body].concat();
                    tokio::spawn(async move {
                        tokio::time::sleep(delay).await;
                        to.write_all(&message).await.unwrap();
                        tokio::time::sleep(delay).await;
                    });
                    shared.cut(cut);
                    return std::future::pending().await;
                }
                Some(_) => {
                    shared.cut(cut);
                    std::future::pending::<()>().await;
                }
                None => {}
            }
        }
        to.write_all(&[kind]).await?;
        to.write_all(&length.to_be_bytes()).await?;
        to.write_all(&body).await?;
        if let (b'S' | b'Q', Some(done)) = (kind, statements.as_mut()) {
            *done += 1;
            if shared.spring(|trap| trap == Trap::AfterStatements(*done)).is_some() {
                shared.cut(cut);
                std::future::pending::<()>().await;
            }
        }
    }
}

async fn replies(
    mut from: OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    shared: &Shared,
    cut: &CancellationToken,
    answers: &Answers,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        if answers.swallow.load(Ordering::SeqCst) {
            shared.cut(cut);
            std::future::pending::<()>().await;
        }
        // An error would mean that the proxy is gone, and the connection with it.
        let _ = shared.paused.subscribe().wait_for(|paused| !paused).await;
        let delay = answers.delay_ms.swap(0, Ordering::SeqCst);
        let slow = Duration::from_millis(shared.slow_ms.load(Ordering::SeqCst));
        tokio::time::sleep(slow + Duration::from_millis(delay.try_into().unwrap())).await;
        to.write_all(&buffer[..read]).await?;
    }
}
