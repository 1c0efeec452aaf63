//! No poll shows an older state when two things fail at once: a commit that outlives its writer's
//! lease, on a node that cannot reach the cache to renew it.

use serde_json::json;
use sqlx::Executor as _;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::truth::poll;
use crate::support::{Tier, World, ask, connect, eventually, upstream_and_account};

const INCREMENT: &str = "/v1/users/1/badges/mention/increment";

/// Every commit that changes a mark takes eight seconds, longer than the lease.
const SLOW_COMMITS: &str = "
    create function stall() returns trigger language plpgsql as $$ begin perform pg_sleep(8); return null; end $$;
    create constraint trigger stall after update of marks on users deferrable initially deferred for each row execute function stall()";

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_outlives_its_lease_shows_when_it_is_acknowledged() {
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
    world.postgres().await.execute(SLOW_COMMITS).await.unwrap();

    let client = first.client.clone();
    let write = tokio::spawn(async move { client.post(INCREMENT, &json!({})).await.ok() });
    let mut redis = connect(&world.redis_url).await.unwrap();
    let key = format!("{}{{u:1}}", world.prefix);
    let mut has = async |field: &str| {
        deadpool_redis::redis::from_redis_value::<bool>(ask(&mut redis, &["HEXISTS", &key, field]).await.unwrap()).unwrap()
    };
    let mut hand = world.postgres().await;
    // In one message with what it writes.
    let committing = "select count(*) from pg_stat_activity
        where datname = current_database() and state = 'active' and query like '%;commit' and wait_event = 'PgSleep'";
    eventually("the commit is under way", async || {
        let (count,): (i64,) = sqlx::query_as(committing).fetch_one(&mut hand).await.unwrap();
        count == 1
    })
    .await;
    assert!(has("!w").await, "the writer is inside");
    cut.cancel();
    // When the lease is over, the second node fills in what was there before the commit.
    eventually("the entry is clean again", async || poll(&second.client, 1).await.revision == 2 && !has("!d").await).await;
    let written = write.await.unwrap();
    assert_eq!(written["revision"], 3);
    for _ in 0..100 {
        assert_eq!(poll(&second.client, 1).await.revision, 3, "acknowledged, and not shown");
    }
}
