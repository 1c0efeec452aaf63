//! How long the ids of things in views are known; no number depends on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::base::clock::{Clock, DAY_MS, UnixMs};
use headmark::db::Statement;
use headmark::features::views::expiry::{Walk, look, remove, sweep};

use super::{access, delete, numbers, put, put_in_order};
use crate::both_tiers;
use crate::support::Node;

static ROWS: Statement = Statement::new("select count(*) from view_items", &[]);

const TTL: [&str; 2] = ["--view-item-ttl-days", "2"];

/// Sweeps to the end. The node's own sweep may have come first, so what is left tells more than
/// what was removed.
async fn rows_after_sweep(node: &Node) -> i64 {
    let mut walk = Walk::default();
    sweep(&node.app.state().contexts.views, &mut walk).await.unwrap();
    assert_eq!(walk, Walk::default(), "it came to the end");
    let rows: Vec<(i64,)> = node.app.state().db.fetch(&ROWS, &[]).await.unwrap();
    rows[0].0
}

both_tiers! {
    async fn ids_are_forgotten_and_numbers_stay(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &TTL).await;
        let client = &node.client;
        access(client, 1, "home/1", None).await;
        access(client, 3, "home/1", None).await;
        // By nobody, by one who was never there, by one who was there before, and one that is
        // deleted.
        for (item, actor) in [("a", None), ("b", Some(2)), ("c", Some(3)), ("d", None)] {
            assert_eq!(put(client, "home/1", item, actor).await.status, 201);
        }
        assert_eq!(delete(client, "home/1", "d").await, 204);
        at.fetch_add(2 * DAY_MS, Ordering::SeqCst);
        assert_eq!(rows_after_sweep(&node).await, 4, "nothing is old");
        at.fetch_add(1, Ordering::SeqCst);
        let before = (numbers(client, 1, "home/1").await, numbers(client, 3, "home/1").await);
        assert_eq!(before, ((3, 4), (2, 4)));
        let revision = client.summary(1).await["revision"].clone();
        assert_eq!(rows_after_sweep(&node).await, 2, "what 3 has made and not passed, and what was deleted");
        assert_eq!((numbers(client, 1, "home/1").await, numbers(client, 3, "home/1").await), before);
        assert_eq!(client.summary(1).await["revision"], revision);
        assert_eq!((put(client, "home/1", "c", None).await.status.as_u16(), put(client, "home/1", "d", None).await.status.as_u16()), (200, 410));
        assert_eq!((delete(client, "home/1", "b").await, put(client, "home/1", "a", None).await.status.as_u16()), (404, 201));
        assert_eq!((numbers(client, 1, "home/1").await, numbers(client, 3, "home/1").await), ((4, 5), (3, 5)), "another thing");

        access(client, 3, "home/1", None).await;
        assert_eq!(rows_after_sweep(&node).await, 2, "what was deleted, and what is young");
        assert_eq!((numbers(client, 1, "home/1").await, numbers(client, 3, "home/1").await), ((4, 5), (0, 5)));
        node.stop().await;
    }

    async fn an_id_that_is_put_again_is_not_removed_for_the_old_one(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        // It removes nothing by itself.
        let node = world.node_at(&at, &[]).await;
        put(&node.client, "home/1", "a", None).await;
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        let old = look(&node.app.state().db, &Walk::default(), UnixMs(at.load(Ordering::SeqCst) - DAY_MS)).await.unwrap();
        assert_eq!(old.len(), 1);
        node.stop().await;
        // What this sweep has found, another one removes first.
        let node = world.node_at(&at, &TTL).await;
        assert_eq!(rows_after_sweep(&node).await, 0);
        assert_eq!(put(&node.client, "home/1", "a", None).await.status, 201);
        assert_eq!(remove(&node.app.state().db, &old).await.unwrap(), 0);
        assert_eq!(delete(&node.client, "home/1", "a").await, 204, "it is there");
        node.stop().await;
    }

    async fn what_only_rows_tell_stays_until_its_maker_has_been_there(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &TTL).await;
        let client = &node.client;
        access(client, 1, "home/1", None).await;
        // Turn by turn, so each of one's own is a run, and they are more than a mark holds; more,
        // too, than a round looks at.
        put_in_order(&node, "home:1", (0..2400).map(|n| (n % 2 == 1).then_some(1))).await;
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        assert_eq!(numbers(client, 1, "home/1").await, (1200, 2400));
        assert_eq!(rows_after_sweep(&node).await, 1200);
        for (up_to, unread, rows) in [(1, 1199, 1200), (3, 1198, 1199), (300, 1050, 1050), (2389, 5, 5), (2400, 0, 0)] {
            assert_eq!(access(client, 1, "home/1", Some(up_to)).await["unread"], unread, "up to {up_to}");
            assert_eq!(rows_after_sweep(&node).await, rows, "up to {up_to}");
            assert_eq!(numbers(client, 1, "home/1").await, (unread, 2400));
        }
        node.stop().await;
    }

    async fn without_the_setting_they_are_known_for_ever(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        put(&node.client, "home/1", "a", None).await;
        at.fetch_add(4000 * DAY_MS, Ordering::SeqCst);
        assert_eq!(rows_after_sweep(&node).await, 1);
        node.stop().await;
        for days in ["36501", "-1", "x"] {
            assert!(world.try_node(&["--view-item-ttl-days", days], Clock::System).await.is_err());
        }
    }
}
