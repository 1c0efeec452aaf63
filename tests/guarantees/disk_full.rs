//! The disk is full: writes are refused, nothing that was acknowledged is lost or counted twice, polls
//! go on, and once there is room again, so do writes, without a restart.
//!
//! A limit on the size of files (`ulimit -f`) makes the system refuse what extends a file, on Linux and
//! macOS, for every account. It says EFBIG; a quota that is reached says EDQUOT, to which engines answer
//! the same. Where this account may mount, SQLite also has a small disk of its own, which says ENOSPC.

use std::process::Command;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::stores::INCREMENT;
use crate::support::{Client, Dice, Hand, Nodes, PostgresServer, Process, Tier, World, eventually, eventually_within};

/// The room that files have in blocks of 512 bytes: more than a new database needs.
const SMALL: usize = 3 << 11;

/// Before it the shell must say that such a write is an error, not the end of the process.
const NO_SIGNAL: &str = "trap '' XFSZ";

/// So long is a message that a few hundred fill what room there is, and cannot be compressed.
const LETTERS: usize = 9000;

/// Of a user for whom nobody writes.
const QUIET: &str = "/v1/users/50/badges";

/// For so long nothing goes through once the disk is full.
const FULL_FOR: Duration = Duration::from_secs(2);

/// How late a write may be refused.
const ANSWERED_WITHIN: Duration = Duration::from_secs(16);

/// Writers who insist, each with one write at a time.
struct Writers {
    tasks: JoinSet<()>,
    shared: Arc<Shared>,
}

struct Shared {
    nodes: Nodes,
    over: CancellationToken,
    /// How many increments were acknowledged, and the contents of the messages that were.
    raised: AtomicI64,
    sent: Mutex<Vec<String>>,
    /// How many writes were refused.
    refused: AtomicUsize,
}

fn letters(dice: &mut Dice) -> String {
    std::iter::repeat_with(|| char::from(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[dice.roll(64)]))
        .take(LETTERS)
        .collect()
}

impl Shared {
    /// Sends the same write until it is acknowledged; false where it is over before.
    async fn insist(&self, dice: &mut Dice, path: &str, key: &str, body: &Value) -> bool {
        while !self.over.is_cancelled() {
            let began = Instant::now();
            let reply = self.nodes.any(dice).await.post_once(path, key, body).await;
            if reply.status.is_success() {
                return true;
            }
            let code = reply.body["code"].as_str().unwrap_or_default().to_owned();
            assert!(["store_unavailable", "outcome_unknown", "idempotency_in_progress"].contains(&code.as_str()), "{}", reply.text);
            if reply.status == 503 {
                reply.problem(503, &code);
            }
            assert!(began.elapsed() < ANSWERED_WITHIN, "{code} after {:?}", began.elapsed());
            self.refused.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    async fn write(self: Arc<Self>, seed: usize) {
        let mut dice = Dice::new(seed + 1);
        for n in 0.. {
            let key = format!("{seed}-{n}");
            if !self.insist(&mut dice, INCREMENT, &key, &json!({})).await {
                return;
            }
            self.raised.fetch_add(1, Ordering::Relaxed);
            let content = letters(&mut dice);
            let message = json!({"sender_id": 2, "client_id": key, "content": content});
            if !self.insist(&mut dice, "/v1/users/1/inbox", &format!("m-{key}"), &message).await {
                return;
            }
            self.sent.lock().unwrap().push(content);
        }
    }
}

impl Writers {
    fn start(nodes: impl IntoIterator<Item = Client>) -> Self {
        let shared = Arc::new(Shared {
            nodes: Nodes::of(nodes),
            over: CancellationToken::new(),
            raised: AtomicI64::default(),
            sent: Mutex::default(),
            refused: AtomicUsize::default(),
        });
        let mut tasks = JoinSet::new();
        for seed in 0..4 {
            tasks.spawn(Arc::clone(&shared).write(seed));
        }
        Self { tasks, shared }
    }

    fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    fn sent(&self) -> usize {
        self.shared.sent.lock().unwrap().len()
    }

    /// Waits until nothing goes through any more: for a while each write was refused, several times. Lanes
    /// that connect again also refuse writes, but only for a moment.
    async fn until_full(&mut self) {
        let (mut sent, mut refused, mut since) = (self.sent(), self.refused(), Instant::now());
        eventually_within(40, "the disk is full", async || {
            self.check();
            if self.sent() > sent {
                (sent, refused, since) = (self.sent(), self.refused(), Instant::now());
            }
            self.refused() > refused + 6 && since.elapsed() > FULL_FOR
        })
        .await;
    }

    /// Waits until as many more messages go through.
    async fn until_sent(&mut self, more: usize) {
        let enough = self.sent() + more;
        eventually_within(30, "writes go through", async || {
            self.check();
            self.sent() >= enough
        })
        .await;
    }

    /// A writer ends early only by a failed check.
    fn check(&mut self) {
        if let Some(ended) = self.tasks.try_join_next() {
            ended.unwrap();
        }
    }

    /// Ends them. All that was acknowledged is there once; what was not may be there, too.
    async fn settle(self) {
        self.shared.over.cancel();
        self.tasks.join_all().await;
        let Some(client) = self.shared.nodes.up().pop() else { return };
        let raised = self.shared.raised.load(Ordering::Relaxed);
        let head = client.summary(1).await["counters"]["mention"]["head"].as_i64().unwrap();
        assert!((raised..=raised + 4).contains(&head), "{raised} acknowledged, {head} there");
        let mut there: Vec<String> = Vec::new();
        loop {
            let page = client.get(&format!("/v1/users/1/inbox?limit=100&after={}", there.len())).await.ok();
            there.extend(page["items"].as_array().unwrap().iter().map(|item| item["content"].as_str().unwrap().to_owned()));
            if page["has_more"] == false {
                break;
            }
        }
        let sent = self.shared.sent.lock().unwrap().clone();
        assert!(there.len() <= sent.len() + 4, "{} acknowledged, {} there", sent.len(), there.len());
        for content in &sent {
            assert_eq!(there.iter().filter(|there| *there == content).count(), 1, "once");
        }
        for other in self.shared.nodes.up() {
            assert_eq!(other.summary(1).await, client.summary(1).await);
        }
    }
}

/// Whether this account may mount a disk of its own.
fn may_mount() -> bool {
    let tried = Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
    tried.is_ok_and(|tried| tried.status.success())
}

/// Polls while writes are refused.
async fn polls_go_on(client: &Client, writers: &Writers) {
    let refused = writers.refused();
    let raised = writers.shared.raised.load(Ordering::Relaxed);
    let body = client.summary(1).await;
    assert!(body["degraded"] == false && body["counters"]["mention"]["head"].as_i64().unwrap() >= raised, "{body}");
    let known = client.get(QUIET).await;
    assert_eq!(client.get_if_changed(QUIET, known.header("etag")).await.status, 304);
    assert_eq!(client.get("/v1/users/1/inbox?limit=1").await.ok()["items"].as_array().unwrap().len(), 1);
    // Whom nobody has seen before; that is not noted yet.
    assert_eq!(client.summary(77).await["degraded"], false);
    assert_eq!(client.get("/readyz").await.status, 200);
    assert!(writers.refused() >= refused);
}

/// A node on SQLite that is started after this command; `make_room` makes room for its files.
async fn sqlite_is_full(world: &World, command: &str, make_room: impl AsyncFnOnce(&Process)) {
    let args: Vec<String> = world.args().into_iter().skip(1).collect();
    let node = Process::start_after(command, &args, &[], &world.dir.with_extension("log")).await;
    let mut writers = Writers::start([node.client.clone()]);
    writers.until_sent(10).await;
    writers.until_full().await;
    polls_go_on(&node.client, &writers).await;
    make_room(&node).await;
    writers.until_sent(10).await;
    writers.settle().await;
    std::fs::remove_file(world.dir.with_extension("log")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_sqlite_may_not_extend_its_files() {
    let world = World::new(Tier::Embedded).await;
    sqlite_is_full(&world, &format!("{NO_SIGNAL}; ulimit -f {SMALL}"), async |_| {
        // This connection has no such limit. The node's readers may be in the way for a moment.
        let mut hand = Hand::on(&world).await;
        let Hand::Sqlite(conn) = &mut hand else { panic!("SQLite") };
        eventually("the log is in the file", async || {
            let (busy, _, _): (i64, i64, i64) = sqlx::query_as("pragma wal_checkpoint(truncate)").fetch_one(&mut *conn).await.unwrap();
            busy == 0
        })
        .await;
    })
    .await;
    if !may_mount() {
        return;
    }
    let world = World::new(Tier::Embedded).await;
    let dir = world.dir.to_str().unwrap();
    let disk = format!("mount -t tmpfs -o size=6m tmpfs {dir} && head -c 2097152 /dev/zero >{dir}/ballast && exec \"$0\" \"$@\"");
    sqlite_is_full(&world, &format!("exec unshare --mount sh -c '{disk}' \"$0\" \"$@\""), async |node| {
        std::fs::remove_file(format!("/proc/{}/root{dir}/ballast", node.id())).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_postgres_may_not_extend_its_tables() {
    let mut world = World::new(Tier::Server).await;
    // Files of its log are smaller than the limit.
    let postgres = PostgresServer::make(&world.dir, &["--wal-segsize=1"]);
    postgres.begin_after(&format!("ulimit -f {SMALL}"));
    (world.database_url, world.partitions) = (postgres.url(), 1);
    let nodes = [world.node().await, world.node().await];
    // What makes room when it is gone.
    let mut dice = Dice::new(1000);
    for n in 0..60 {
        let message = json!({"sender_id": 998, "client_id": format!("{n}"), "content": letters(&mut dice)});
        nodes[0].client.post("/v1/users/999/inbox", &message).await.ok();
    }
    let mut writers = Writers::start(nodes.iter().map(|node| node.client.clone()));
    writers.until_sent(10).await;
    writers.until_full().await;
    assert!(postgres.log().contains("could not extend file"), "{}", postgres.log());
    polls_go_on(&nodes[1].client, &writers).await;
    let mut hand = PgConnection::connect(&postgres.url()).await.unwrap();
    hand.execute("delete from inbox where user_id in (998, 999)").await.unwrap();
    let enough = writers.sent() + 10;
    eventually_within(30, "writes go through", async || {
        // Again and again: it passes over rows that a transaction under way may still see.
        hand.execute("vacuum inbox").await.unwrap();
        writers.check();
        writers.sent() >= enough
    })
    .await;
    writers.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_postgres_has_no_room_for_its_log() {
    let mut world = World::new(Tier::Server).await;
    let postgres = PostgresServer::start(&world.dir);
    (world.database_url, world.partitions) = (postgres.url(), 1);
    let nodes = [world.node().await, world.node().await];
    for node in &nodes {
        node.client.get(QUIET).await.ok();
    }
    // The files of its log are larger than what it may write. It goes on at the beginning of one, and
    // half of the room is taken: so the log meets the limit before tables do, which have it, too.
    // Nobody writes yet: a slow machine would find no room at all.
    let mut hand = PgConnection::connect(&postgres.url()).await.unwrap();
    hand.execute("select pg_switch_wal()").await.unwrap();
    hand.execute("checkpoint").await.unwrap();
    hand.execute(AssertSqlSafe(format!("select pg_logical_emit_message(false, 'test', repeat('x', {}))", SMALL << 8))).await.unwrap();
    postgres.end();
    postgres.begin_after(&format!("ulimit -f {SMALL}"));
    let mut writers = Writers::start(nodes.iter().map(|node| node.client.clone()));
    writers.until_sent(10).await;
    writers.until_full().await;
    assert!(postgres.log().contains("PANIC"), "{}", postgres.log());
    for node in &nodes {
        let shown = node.client.get(QUIET).await.ok();
        assert!(shown["degraded"] == true && shown.get("total").is_some(), "what the cache holds: {shown}");
        assert_eq!(node.client.get("/readyz").await.status, 200);
    }
    postgres.end();
    postgres.begin();
    writers.until_sent(10).await;
    writers.settle().await;
}
