//! A removal that does not end, and one that a node with a fast clock has left.

use headmark::base::clock::UnixMs;
use headmark::features::removals::{Place, store};

use super::{STEP, begun_by_a_newer_version, erase, erased, node};
use crate::both_tiers;
use crate::support::{Hand, eventually, eventually_within};

both_tiers! {
    async fn a_removal_that_fails_every_time_is_told(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.get("/v1/users/2/badges").await.ok();
        let mut hand = Hand::on(&world).await;
        hand.run("alter table marks rename to marks_away").await;
        let location = erase(client, 2).await;
        let day = "update removals set created_at = created_at - 86400000";
        hand.run(day).await;
        eventually("the node has looked", async || client.get("/metrics").await.text.contains("headmark_removal_oldest_seconds")).await;
        let oldest = async || client.metric("headmark_removal_oldest_seconds").await;
        eventually_within(30, "its age is told", async || oldest().await >= 86_400.0).await;
        hand.run("alter table marks_away rename to marks").await;
        erased(client, &location).await;
        eventually_within(30, "none is left", async || oldest().await == 0.0).await;
        node.stop().await;
    }

    /// Of these the other side was lost. One of the others has no row of its own, either.
    async fn an_erasure_ends_where_only_its_side_of_a_relation_is_there(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.follow(5, 2).await;
        for other in 6..=8 {
            client.get(&format!("/v1/users/{other}/badges")).await.ok();
        }
        let mut hand = Hand::on(&world).await;
        for rows in ["followers", "secret_followers", "follow_requests"] {
            hand.run(&format!("insert into {rows} (followee_id, since, follower_id) values (2, 1, 6), (2, 2, 7), (2, 3, 9)")).await;
        }
        let location = erase(client, 2).await;
        erased(client, &location).await;
        for table in ["following", "followers", "secret_followers", "follow_requests"] {
            assert_eq!(hand.text(&format!("select cast(count(*) as text) from {table}")).await, "0", "{table}");
        }
        node.stop().await;
    }

    /// A node of a newer version has died, and none runs that knows what it began.
    async fn removals_that_only_a_newer_version_knows_keep_no_others(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.get("/v1/users/2/badges").await.ok();
        let mut hand = Hand::on(&world).await;
        let row = |n: i64, kind, step: &str| format!("('0190163d8694739b3d5c2a7f0011223{n}', {kind}, 7, 'open', '{step}', 0, 0, '', {n}, 1, 0)");
        let rows = |from, kind, step: &str| (from..from + 4).map(|n| row(n, kind, step)).collect::<Vec<_>>().join(", ");
        for rows in [rows(0, 99, ""), rows(4, 1, "of_a_newer_version")] {
            hand.run(&format!("insert into removals
                (operation_id, kind, subject_id, caller, step, after_id, after_seq, after_name, due_at, created_at, finished_at)
                values {rows}")).await;
        }
        let location = erase(client, 2).await;
        erased(client, &location).await;
        let theirs = "select cast(sum(due_at) as text) || ':' || cast(count(*) as text) from removals where finished_at = 0";
        assert_eq!(hand.text(theirs).await, "28:8", "they are left as they are");
        node.stop().await;
    }

    /// Who has one gives it up before its lease is over, so that others go first and none waits for the lease.
    async fn a_removal_is_given_up_early_and_who_knows_an_earlier_place_has_it_no_more(world: World) {
        let node = node(&world).await;
        let db = &node.app.state().db;
        let begun = begun_by_a_newer_version(&world).await;
        let leased = store::move_on(db, &begun, STEP, Place::id(4), UnixMs(9000)).await.unwrap().unwrap();
        assert_eq!(store::move_on(db, &begun, STEP, Place::id(4), UnixMs(9000)).await.unwrap(), None);
        let given_up = store::move_on(db, &leased, STEP, Place::id(4), UnixMs(5000)).await.unwrap().unwrap();
        assert_eq!(given_up.due_at, UnixMs(5000));
        assert_eq!(store::move_on(db, &begun, STEP, Place::id(4), UnixMs(9000)).await.unwrap(), None, "the same time, another place");
        let taken = store::move_on(db, &given_up, STEP, Place::id(4), UnixMs(5000)).await.unwrap().unwrap();
        assert_eq!(taken.due_at, UnixMs(5001), "else another node would take it, too");
        node.stop().await;
    }

    /// A node whose clock was a year ahead has died with the removal in hand.
    async fn a_lease_far_in_the_future_ends(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        fail::cfg("removal::before_relations", "pause").unwrap();
        let location = erase(client, 2).await;
        let mut hand = Hand::on(&world).await;
        hand.run("update removals set due_at = due_at + 31536000000").await;
        fail::remove("removal::before_relations");
        erased(client, &location).await;
        node.stop().await;
    }
}
