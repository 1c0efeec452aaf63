//! Logs that are imported while the database is away.

use std::fmt::Write as _;
use std::time::Duration;

use super::import;
use crate::support::{Proxy, Tier, World, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_go_on_after_a_short_outage() {
    const CHANNELS: usize = 1500;
    let mut world = World::new(Tier::Server).await;
    let mut hand = world.postgres().await;
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    // Each answer takes so long that the names are still looked up when the first batch is over.
    proxy.slow(Duration::from_millis(2));
    let mut log = "timestamp,channel,sender\n".to_owned();
    (0..20_000).for_each(|n| writeln!(log, "{},9999,1", 100 + n).unwrap());
    (0..CHANNELS).for_each(|n| writeln!(log, "30000,channel {n},{}", 2 + n).unwrap());
    let outage = async {
        eventually("a batch is over", async || {
            let (groups,): (i64,) = sqlx::query_as("select count(*) from chat_groups").fetch_one(&mut hand).await.unwrap();
            groups > 0
        })
        .await;
        proxy.leave();
        tokio::time::sleep(Duration::from_secs(2)).await;
        proxy.come_back().await;
        proxy.slow(Duration::ZERO);
    };
    let (ran, ()) = tokio::join!(import(&world, &log, &[]), outage);
    assert_eq!((ran.status, ran.told("sent"), ran.told("bad")), (Some(0), 21_500, 0), "{}", ran.err);
    assert!(ran.err.contains("a look-up failed; trying again"), "{}", ran.err);
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("channel ")).count(), CHANNELS);
}
