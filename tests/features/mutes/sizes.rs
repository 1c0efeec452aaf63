//! Users who mute many others.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use futures_util::future::join_all;
use serde_json::json;

use super::{START, check, mute, mute_until, muted, numbers, send, time};
use crate::both_tiers;
use crate::features::feed::post;
use crate::support::Client;

const MANY: i64 = 1000;

#[expect(clippy::print_stderr, reason = "how long it took depends on the machine: shown to anyone who asks for the output, and no test")]
fn say(what: &str) {
    eprintln!("{what}");
}

/// How long a poll takes, in microseconds: the least of some rounds.
async fn poll_us(client: &Client, path: &str, tag: &str) -> u128 {
    let mut least = u128::MAX;
    for _ in 0..8 {
        let began = Instant::now();
        for _ in 0..8 {
            let reply = if tag.is_empty() { client.get(path).await } else { client.get_if_changed(path, tag).await };
            assert!([200, 304].contains(&reply.status.as_u16()));
        }
        least = least.min(began.elapsed().as_micros() / 8);
    }
    least
}

both_tiers! {
    /// User 1 mutes nobody, user 2 many for ever, user 3 many until a time. A third of them are
    /// followed and have posted, another third have sent a message.
    async fn many_mutes_make_no_poll_slow(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let others: Vec<_> = (0..MANY).map(|n| 1000 + n).collect();
        for user in 1..=3 {
            client.summary(user).await;
            for chunk in others.chunks(50) {
                join_all(chunk.iter().map(async |other| match other % 3 {
                    0 => drop(client.follow(user, *other).await),
                    1 => send(client, *other, user, &format!("to-{user}")).await,
                    _ => {}
                }))
                .await;
            }
        }
        for chunk in others.chunks(50) {
            join_all(chunk.iter().map(async |other| if other % 3 == 0 { post(client, *other, "p").await.ok() } else { json!({}) })).await;
            join_all(chunk.iter().map(|other| mute(client, 2, *other))).await;
            join_all(chunk.iter().map(|other| mute_until(client, 3, *other, START + 1_000_000 + other))).await;
        }
        client.put("/v1/users/3/mutes/5", &json!({"until": time(START + 9)})).await.problem(409, "too_many");
        mute(client, 3, 5).await;
        let counted = [334, 334, 334, 333];
        assert_eq!(numbers(client, 1).await, counted);
        for user in 2..=3 {
            assert_eq!(numbers(client, user).await, [0; 4]);
        }
        let statements = async || client.metric("headmark_summary_sql_reads_total").await;
        for path in ["badges", "feed", "directs", "mutes/ids"] {
            let mut shown = Vec::new();
            for user in 1..=3 {
                let path = format!("/v1/users/{user}/{path}");
                let tag = client.get(&path).await.header("etag").to_owned();
                let before = statements().await;
                let (again, whole) = (poll_us(client, &path, &tag).await, poll_us(client, &path, "").await);
                assert_eq!(statements().await, before, "{path}: nothing is read of SQL while nothing changes");
                shown.push(format!("{again} / {whole} us"));
            }
            say(&format!("{path}, 304 / 200: nobody muted {}, {MANY} for ever {}, {MANY} until a time {}", shown[0], shown[1], shown[2]));
        }
        check(&node, &[1, 2, 3]).await;
        // Half of them end, and all.
        at.store(START + 1_000_000 + 1499, Ordering::SeqCst);
        assert_eq!((numbers(client, 3).await, muted(client, 3).await.len()), ([167, 167, 167, 166], 501));
        at.store(START + 1_000_000 + 1999, Ordering::SeqCst);
        assert_eq!((numbers(client, 3).await, muted(client, 3).await), (counted, vec![5]));
        // What has ended bounds the rows and the entry until it is swept.
        client.put("/v1/users/3/mutes/6", &json!({"until": time(START + 9_000_000)})).await.problem(409, "too_many");
        assert_eq!(headmark::features::relations::mute_http::sweep_mutes(&node.app.state().contexts.relations).await.unwrap(), 1000);
        assert_eq!((numbers(client, 3).await, muted(client, 3).await), (counted, vec![5]));
        check(&node, &[1, 2, 3]).await;
        mute_until(client, 3, 6, START + 9_000_000).await;
        node.stop().await;
    }
}
