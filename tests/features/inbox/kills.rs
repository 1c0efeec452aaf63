//! A node dies at each step of sending: what was acknowledged is there, and sent again it is there
//! once.

use futures_util::future::join_all;
use reqwest::Method;

use super::{inbox, message, send, seqs};
use crate::both_tiers;
use crate::support::{Client, Tier, World};

async fn dies_at(world: World, step: &str) {
    let survivor = if world.tier == Tier::Server { Some(world.node().await) } else { None };
    let mut doomed = world.process(&[], &[("FAILPOINTS", &format!("{step}=2*off->return"))]).await;
    for n in 1..=2 {
        assert_eq!(send(&doomed.client, 1, 2, &format!("early-{n}")).await, n);
    }
    let late = async |client: &Client, n: usize| {
        let request = client.request(Method::POST, "/v1/users/2/inbox").json(&message(1, &format!("late-{n}"), "late"));
        Client::try_send(request).await.is_ok_and(|reply| reply.status == 201)
    };
    let acknowledged = join_all((1..=3).map(|n| late(&doomed.client, n))).await;
    assert!(!doomed.ended().await.success());
    let survivor = match survivor {
        Some(survivor) => survivor,
        None => world.node().await,
    };
    let client = &survivor.client;
    let before = seqs(&inbox(client, 2, "").await);
    let least = 2 + acknowledged.iter().filter(|acknowledged| **acknowledged).count();
    assert!((least..=5).contains(&before.len()) && before == (1..=i64::try_from(before.len()).unwrap()).collect::<Vec<_>>(), "{before:?}");
    for n in 1..=3 {
        client.post("/v1/users/2/inbox", &message(1, &format!("late-{n}"), "late")).await.ok();
    }
    let (theirs, own) = (inbox(client, 2, "").await, inbox(client, 1, "").await);
    assert_eq!((seqs(&theirs), seqs(&own)), ((1..=5).collect(), (1..=5).collect()), "each once, for both");
    assert_eq!((super::sums(&survivor, 2).await, super::chats(client, 2).await), ((5, 1), vec![(1, 5, false)]));
    survivor.stop().await;
}

both_tiers! {
    async fn kill_after_begin_write(world: World) {
        dies_at(world, "lane::after_begin_write").await;
    }

    async fn kill_before_commit(world: World) {
        dies_at(world, "lane::before_commit").await;
    }

    async fn kill_after_commit(world: World) {
        dies_at(world, "lane::after_commit").await;
    }

    async fn kill_after_apply_write(world: World) {
        dies_at(world, "lane::after_apply_write").await;
    }
}
