//! Everybody comes at once: the numbers are exact, and no poll shows an older state.

use std::time::Duration;

use super::storm::Storm;
use super::truth::{Truth, poll};
use crate::both_tiers;
use crate::support::{Nodes, Tier, ask, connect};

both_tiers! {
    async fn a_crowd_on_few_users_loses_and_doubles_nothing(world: World) {
        let nodes = world.nodes().await;
        let storm = Storm::new(Nodes::of(nodes.iter().map(|node| node.client.clone())));
        storm.rage(std::future::pending()).await;
        storm.settle(&mut Truth::of(&world).await).await;
    }

    async fn a_cache_that_evicts_all_the_time_is_exact(world: World) {
        let nodes = world.nodes().await;
        let storm = Storm::new(Nodes::of(nodes.iter().map(|node| node.client.clone())));
        let evict = async {
            match world.tier {
                Tier::Embedded => loop {
                    nodes[0].app.state().cache.clear();
                    tokio::time::sleep(Duration::from_millis(1)).await;
                },
                Tier::Server => {
                    let mut redis = connect(&world.redis_url).await.unwrap();
                    for user in storm.users.iter().cycle() {
                        ask(&mut redis, &["DEL", &format!("{}{{u:{user}}}", world.prefix)]).await.unwrap();
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
        };
        storm.rage(evict).await;
        storm.settle(&mut Truth::of(&world).await).await;
    }

    async fn dawdling_at_any_step_does_not_kill_a_promise(world: World) {
        let steps = ["after_begin_write", "before_commit", "after_commit"].map(|step| format!("lane::{step}=25%sleep(25)")).join(";");
        let mut processes = vec![world.process(&[], &[("FAILPOINTS", &steps)]).await];
        if world.tier == Tier::Server {
            processes.push(world.process(&[], &[("FAILPOINTS", &steps)]).await);
        }
        let mut storm = Storm::new(Nodes::of(processes.iter().map(|process| process.client.clone())));
        storm.pollers = 8;
        storm.rage(std::future::pending()).await;
        storm.settle(&mut Truth::of(&world).await).await;
    }

    async fn an_increment_during_a_reset_stays_unread(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        for round in 1..=30 {
            let path = format!("/v1/users/{round}/badges/mention");
            first.post(&format!("{path}/increment"), &serde_json::json!({"by": 5})).await.ok();
            let (up, reset) = (serde_json::json!({"by": 2}), serde_json::json!({"up_to": 5}));
            let (raise, read) = (format!("{path}/increment"), format!("{path}/reset"));
            let (raised, cleared) = tokio::join!(first.post(&raise, &up), last.post(&read, &reset));
            assert_eq!(raised.ok()["head"], 7);
            cleared.ok();
            for node in &nodes {
                let summary = poll(&node.client, round).await;
                assert_eq!(summary.counters["mention"], (2, 7));
            }
        }
    }
}
