//! No poll shows an older state when two things fail at once: a commit that outlives its writer's
//! lease, on a node that cannot reach the cache to renew it.

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::from_redis_value;
use serde_json::json;
use sqlx::Executor as _;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::truth::poll;
use crate::support::{Client, Node, Tier, World, ask, connect, eventually, eventually_within, upstream_and_account};

const INCREMENT: &str = "/v1/users/1/badges/mention/increment";

/// Every commit that changes a mark takes eight seconds, longer than the lease.
const SLOW_COMMITS: &str = "
    create function stall() returns trigger language plpgsql as $$ begin perform pg_sleep(8); return null; end $$;
    create constraint trigger stall after update of marks on users deferrable initially deferred for each row execute function stall()";

/// A commit of a follow takes longer than its outcome is asked for, as one does that waits for a
/// standby.
const STUCK_COMMITS: &str = "
    create function stall() returns trigger language plpgsql as $$ begin perform pg_sleep(22); return null; end $$;
    create constraint trigger stall after insert on following deferrable initially deferred for each row execute function stall()";

/// A wire to a server that can be cut for good; returns its port.
async fn wire(server: String, cut: CancellationToken) -> (u16, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepting = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (server, cut) = (server.clone(), cut.clone());
            tokio::spawn(cut.run_until_cancelled_owned(async move {
                let mut upstream = TcpStream::connect(server).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut upstream).await;
            }));
        }
    });
    (port, AbortOnDropHandle::new(accepting))
}

/// Two nodes, of which the first can be cut off from Redis. User 1 has one increment, and was polled.
struct Scene {
    world: World,
    first: Node,
    second: Node,
    cut: CancellationToken,
    _wire: AbortOnDropHandle<()>,
}

impl Scene {
    async fn new() -> Self {
        let mut world = World::new(Tier::Server).await;
        let redis_url = world.redis_url.clone();
        let (server, account) = upstream_and_account(&redis_url);
        let cut = CancellationToken::new();
        let (port, _wire) = wire(server, cut.clone()).await;
        world.redis_url = format!("{account}127.0.0.1:{port}");
        let first = world.node().await;
        world.redis_url = redis_url;
        let second = world.node().await;
        first.client.post(INCREMENT, &json!({})).await.ok();
        assert_eq!(poll(&second.client, 1).await.revision, 2);
        Self { world, first, second, cut, _wire }
    }
}

/// User 1's entry in Redis.
struct Entry {
    redis: MultiplexedConnection,
    key: String,
}

impl Entry {
    async fn of(world: &World) -> Self {
        Self { redis: connect(&world.redis_url).await.unwrap(), key: format!("{}{{u:1}}", world.prefix) }
    }

    async fn has(&mut self, field: &str) -> bool {
        from_redis_value(ask(&mut self.redis, &["HEXISTS", &self.key, field]).await.unwrap()).unwrap()
    }

    async fn evict(&mut self) {
        ask(&mut self.redis, &["DEL", &self.key]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_outlives_its_lease_shows_when_it_is_acknowledged() {
    let Scene { world, first, second, cut, .. } = &Scene::new().await;
    world.postgres().await.execute(SLOW_COMMITS).await.unwrap();

    let client = first.client.clone();
    let write = tokio::spawn(async move { client.post(INCREMENT, &json!({})).await.ok() });
    let mut entry = Entry::of(world).await;
    let mut hand = world.postgres().await;
    // In one message with what it writes.
    let committing = "select count(*) from pg_stat_activity
        where datname = current_database() and state = 'active' and query like '%;commit' and wait_event = 'PgSleep'";
    eventually("the commit is under way", async || {
        let (count,): (i64,) = sqlx::query_as(committing).fetch_one(&mut hand).await.unwrap();
        count == 1
    })
    .await;
    assert!(entry.has("!w").await, "the writer is inside");
    cut.cancel();
    // When the lease is over, the second node fills in what was there before the commit.
    eventually("the entry is clean again", async || poll(&second.client, 1).await.revision == 2 && !entry.has("!d").await).await;
    let written = write.await.unwrap();
    assert_eq!(written["revision"], 3);
    for _ in 0..100 {
        assert_eq!(poll(&second.client, 1).await.revision, 3, "acknowledged, and not shown");
    }
}

/// Redis evicts an entry while its writer is inside, a reader fills in what is there before the commit,
/// and after it the writer cannot reach Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_filled_in_after_an_eviction_does_not_outlive_the_commit() {
    let Scene { world, first, second, cut, .. } = &Scene::new().await;
    // From here on the first node knows the row as it is.
    first.client.post(INCREMENT, &json!({})).await.ok();
    assert_eq!(poll(&second.client, 1).await.revision, 3);

    fail::cfg("lane::before_commit", "1*sleep(2000)->off").unwrap();
    let client = first.client.clone();
    let write = tokio::spawn(async move { client.post(INCREMENT, &json!({})).await.ok() });
    let mut entry = Entry::of(world).await;
    eventually("the writer is inside", async || entry.has("!w").await).await;
    entry.evict().await;
    eventually("the entry is clean again", async || {
        poll(&second.client, 1).await.revision == 3 && entry.has("!r").await && !entry.has("!d").await
    })
    .await;
    cut.cancel();
    let written = write.await.unwrap();
    assert_eq!(written["revision"], 4);
    for _ in 0..100 {
        assert_eq!(poll(&second.client, 1).await.revision, 4, "acknowledged, and not shown");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_nobody_waits_for_any_more_shows_soon_after_it() {
    let world = World::new(Tier::Server).await;
    let (first, second) = (world.node().await, world.node().await);
    let follows = async |client: &Client| client.get("/v1/users/1/relations?ids=2").await.ok()["items"][0]["following"] == true;
    assert!(!follows(&second.client).await);
    world.postgres().await.execute(STUCK_COMMITS).await.unwrap();

    first.client.put("/v1/users/1/following/2", &json!({})).await.problem(503, "outcome_unknown");
    let mut hand = world.postgres().await;
    let mut is_over = async || {
        // A reader fills in what it finds, as it may: nothing was acknowledged.
        let shown = follows(&second.client).await;
        // Afterwards, as the commit may end in between.
        let (rows,): (i64,) = sqlx::query_as("select count(*) from following").fetch_one(&mut hand).await.unwrap();
        assert!(rows == 1 || !shown);
        rows == 1
    };
    eventually_within(30, "the commit is over", async || is_over().await).await;
    eventually("it shows", async || follows(&second.client).await).await;
    let again = first.client.put("/v1/users/1/following/2", &json!({})).await.ok();
    assert_eq!(again["following"], true);
    assert!(follows(&second.client).await && follows(&first.client).await);
}
