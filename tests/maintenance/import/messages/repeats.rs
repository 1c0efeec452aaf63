//! Logs that are imported again after a kill, or while the database is away.

use std::fmt::Write as _;
use std::time::Duration;

use super::{counts, import, members};
use crate::both_tiers;
use crate::maintenance::import::headmark;
use crate::support::{Proxy, Tier, World, eventually};

/// More joins than one batch may have, and then messages.
fn joins_first(channel: &str) -> String {
    let mut log = "timestamp,channel,sender,event\n".to_owned();
    (1..=2500).for_each(|user| writeln!(log, "100,{channel},{user},join").unwrap());
    (1..=150).for_each(|user| writeln!(log, "{},{channel},{user},", 200 + user).unwrap());
    log
}

both_tiers! {
    async fn a_log_whose_first_batch_was_joins_alone_is_known_again(world: World) {
        let log = joins_first("general");
        let died = headmark(&world, &["import", "messages", "-"], true, &[("FAILPOINTS", "lane::after_commit=return")], log.clone().into()).await;
        assert_eq!(died.status, None, "{died:?}");
        let ran = import(&world, &log, &[]).await;
        assert_eq!((ran.status, counts(&ran)), (Some(0), [150, 500, 0, 2000, 0, 0]), "{ran:?}");
        // One that has grown, after a run that came to its end.
        let (joins, grown) = (joins_first("random"), joins_first("random") + "400,random,1,\n");
        let joins: String = joins.split_inclusive('\n').take(11).collect();
        assert_eq!(counts(&import(&world, &joins, &[]).await), [0, 10, 0, 0, 0, 0]);
        let ran = import(&world, &grown, &[]).await;
        assert_eq!((ran.status, counts(&ran)), (Some(0), [151, 2490, 0, 10, 0, 0]), "{ran:?}");
        let node = world.node().await;
        assert_eq!((members(&node.client, 1).await.len(), members(&node.client, 2).await.len()), (2500, 2500));
        node.stop().await;
    }
}

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
