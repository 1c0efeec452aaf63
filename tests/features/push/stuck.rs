//! What is due and cannot be told.

use headmark::base::clock::UnixMs;
use headmark::features::push::store;
use serde_json::json;

use crate::both_tiers;
use crate::support::{Hand, eventually, eventually_within};

both_tiers! {
    async fn the_age_of_a_job_that_fails_each_time_is_told(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let mut hand = Hand::on(&world).await;
        hand.run("alter table memberships rename to memberships_away").await;
        let an_hour_ago = node.app.state().clock.now().0 - 3_600_000;
        hand.run(&format!("insert into unread_jobs (scope_id, due_at, next_at, after_id) values (9, {an_hour_ago}, 0, 0)")).await;
        eventually("the node has looked", async || client.get("/metrics").await.text.contains("headmark_unread_jobs_oldest_seconds")).await;
        let oldest = async || client.metric("headmark_unread_jobs_oldest_seconds").await;
        eventually_within(30, "its age is told", async || oldest().await >= 3600.0).await;
        hand.run("alter table memberships_away rename to memberships").await;
        eventually_within(30, "none is left", async || oldest().await == 0.0).await;
        assert_eq!(hand.text("select cast(count(*) as text) from unread_jobs").await, "0");
        node.stop().await;
    }

    /// There is no job, then.
    async fn the_time_for_which_events_make_no_jobs_is_told(world: World) {
        let node = world.node().await;
        let client = &node.client;
        eventually("the node has looked", async || client.get("/metrics").await.text.contains("headmark_unread_jobs_oldest_seconds")).await;
        let oldest = async || client.metric("headmark_unread_jobs_oldest_seconds").await;
        let mut hand = Hand::on(&world).await;
        hand.run("alter table unread_progress rename to unread_progress_away").await;
        hand.run("insert into push_users (user_id, due_at) values (2, 0)").await;
        client.post("/v1/broadcasts/system", &json!({"title": "t"})).await.ok();
        eventually_within(30, "the time is told", async || oldest().await >= 1.0).await;
        assert_eq!(hand.text("select cast(count(*) as text) from unread_jobs").await, "0");
        hand.run("alter table unread_progress_away rename to unread_progress").await;
        eventually_within(30, "all is told", async || oldest().await == 0.0).await;
        node.stop().await;
    }

    /// So soon that no job counts as left by a node with a fast clock, and not so soon that it is done.
    async fn what_is_due_first_is_found_among_jobs_and_users(world: World) {
        let node = world.node().await;
        let db = &node.app.state().db;
        let mut hand = Hand::on(&world).await;
        assert_eq!(store::first_due(db).await.unwrap(), None);
        let [first, second, last] = [30_000, 40_000, 50_000].map(|later_ms| node.app.state().clock.now().0 + later_ms);
        hand.run(&format!("insert into push_users (user_id, due_at) values (2, {last}), (3, {second}), (4, 0)")).await;
        assert_eq!(store::first_due(db).await.unwrap(), Some(UnixMs(second)));
        hand.run(&format!("insert into unread_jobs (scope_id, due_at, next_at, after_id) values (9, {first}, 0, 0)")).await;
        assert_eq!(store::first_due(db).await.unwrap(), Some(UnixMs(first)));
        hand.run("delete from push_users").await;
        assert_eq!(store::first_due(db).await.unwrap(), Some(UnixMs(first)));
        node.stop().await;
    }
}
