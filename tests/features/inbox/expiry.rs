//! What is kept, for how long, and for whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::base::clock::{Clock, DAY_MS};
use headmark::features::inbox::expiry::{Walk, sweep};
use serde_json::json;

use super::{chats, differences, fan_out, inbox, message, of_group, read, send, seqs, sums};
use crate::both_tiers;
use crate::support::{Hand, Node};

async fn sweep_all(node: &Node) -> u64 {
    let mut walk = Walk::default();
    let removed = sweep(&node.app.state().contexts.inbox, &mut walk).await.unwrap().removed;
    assert_eq!(walk, Walk::default(), "it came to the end");
    removed
}

async fn seen(node: &Node, device: &str, seq: i64) {
    node.client.put(&format!("/v1/users/2/devices/{device}/cursor"), &json!({"seq": seq})).await.ok();
}

/// What of the inbox of user 2 can be fetched: the numbers, or where what is kept begins.
async fn kept(node: &Node, after: i64) -> Result<Vec<i64>, i64> {
    let reply = node.client.get(&format!("/v1/users/2/inbox?after={after}")).await;
    if reply.status == 200 { Ok(seqs(&reply.body)) } else { Err(reply.problem(410, "cursor_expired")["earliest_seq"].as_i64().unwrap()) }
}

both_tiers! {
    /// A node whose clock was a year ahead put it there.
    async fn a_row_of_a_fast_clock_keeps_no_others(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        for n in 0..3 {
            send(&node.client, 1, 2, &format!("a{n}")).await;
        }
        at.fetch_add(20 * DAY_MS, Ordering::SeqCst);
        send(&node.client, 1, 2, "a3").await;
        Hand::on(&world).await.run("update inbox set put_at = put_at + 31536000000 where seq in (1, 4)").await;
        at.fetch_add(11 * DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((kept(&node, 3).await, kept(&node, 2).await), (Ok(vec![4]), Err(4)));
        node.stop().await;
    }

    async fn old_rows_go_but_not_those_that_a_living_device_has_yet_to_fetch(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        // In the inbox of 2: 1 at 1, 3, 5, 7; 3 at 2, 4, 6, 8; the last two are young.
        seen(&node, "dead", 0).await;
        for n in 0..3 {
            send(client, 1, 2, &format!("a{n}")).await;
            send(client, 3, 2, &format!("b{n}")).await;
        }
        at.fetch_add(20 * DAY_MS, Ordering::SeqCst);
        send(client, 1, 2, "a3").await;
        send(client, 3, 2, "b3").await;
        assert_eq!(sweep_all(&node).await, 0, "nothing is old");
        at.fetch_add(5 * DAY_MS, Ordering::SeqCst);
        seen(&node, "alive", 2).await;
        at.fetch_add(6 * DAY_MS, Ordering::SeqCst);
        let revision = client.summary(2).await["revision"].clone();
        sweep_all(&node).await;
        assert_eq!((kept(&node, 2).await, kept(&node, 1).await, kept(&node, 0).await), (Ok((3..=8).collect()), Err(3), Err(3)));
        assert_eq!(seqs(&inbox(client, 2, "").await), (3..=8).collect::<Vec<_>>(), "without `after`, from the first that is kept");
        seen(&node, "alive", 5).await;
        sweep_all(&node).await;
        assert_eq!((kept(&node, 5).await, kept(&node, 4).await), (Ok(vec![6, 7, 8]), Err(6)));
        client.delete("/v1/users/2/devices/alive").await;
        sweep_all(&node).await;
        assert_eq!((kept(&node, 6).await, kept(&node, 5).await), (Ok(vec![7, 8]), Err(7)), "the dead one keeps nothing");
        assert_eq!(sweep_all(&node).await, 0);

        // What expired counts until it is read, and is read by where it was.
        assert_eq!((sums(&node, 2).await, chats(client, 2).await), ((8, 2), vec![(3, 4, false), (1, 4, false)]));
        let later = client.summary(2).await["revision"].clone();
        assert!(later.as_i64() > revision.as_i64(), "the first unread message is another");
        assert_eq!((read(client, 2, 1, &json!({"up_to": 3})).await, read(client, 2, 1, &json!({"up_to": 4})).await), (2, 2));
        assert_eq!((read(client, 2, 3, &json!({"up_to": 1})).await, read(client, 2, 3, &json!({"up_to": 7})).await), (4, 1));
        assert_eq!((read(client, 2, 1, &json!({"up_to": 6})).await, read(client, 2, 1, &json!({})).await, sums(&node, 2).await), (1, 0, (1, 1)));

        // All of it goes, and the numbers go on.
        at.fetch_add(40 * DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((kept(&node, 8).await, kept(&node, 7).await), (Ok(vec![]), Err(9)));
        let found = inbox(client, 2, "").await;
        assert_eq!((&found["head"], &found["next_after"], seqs(&found)), (&json!(8), &json!(8), vec![]));
        assert_eq!((read(client, 2, 3, &json!({"up_to": 7})).await, read(client, 2, 3, &json!({"up_to": 8})).await), (1, 0));
        assert_eq!(send(client, 1, 2, "a4").await, 9);
        assert_eq!(client.post("/v1/users/2/inbox", &message(1, "a0", "again")).await.body["seq"], 10, "the id went with its row");
        assert_eq!((kept(&node, 8).await, sums(&node, 2).await), (Ok(vec![9, 10]), (2, 1)));
        node.stop().await;
    }

    async fn of_many_scattered_messages_that_expired_the_lowest_are_cleared_together(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        // Those of 1 are at 1, 3, … 239: each a run of its own, of which 100 are kept, from 41 on.
        for n in 0..120 {
            send(client, 1, 2, &format!("a{n}")).await;
            send(client, 3, 2, &format!("b{n}")).await;
        }
        assert_eq!(read(client, 2, 3, &json!({"up_to": 100})).await, 70);
        at.fetch_add(31 * DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((kept(&node, 240).await, sums(&node, 2).await), (Ok(vec![]), (190, 2)));
        assert_eq!((read(client, 2, 1, &json!({"up_to": 1})).await, read(client, 2, 1, &json!({"up_to": 42})).await), (100, 99));
        assert_eq!((read(client, 2, 3, &json!({"up_to": 101})).await, read(client, 2, 3, &json!({"up_to": 102})).await), (70, 69));
        assert_eq!((read(client, 2, 1, &json!({"up_to": 239})).await, read(client, 2, 3, &json!({"up_to": 239})).await, sums(&node, 2).await), (0, 1, (1, 1)));
        node.stop().await;
    }

    /// Also where it was left out of the runs, so that its place is not kept.
    async fn a_recalled_message_is_unread_no_longer_wherever_it_was_when_it_expired(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        // Those of 1 are at 1, 3, … 239, of which the lowest 20 are in no run.
        for n in 0..120 {
            send(client, 1, 2, &format!("a{n}")).await;
            send(client, 3, 2, &format!("b{n}")).await;
        }
        at.fetch_add(29 * DAY_MS, Ordering::SeqCst);
        // What a device of the sender has yet to fetch is kept.
        client.put("/v1/users/1/devices/d/cursor", &json!({"seq": 0})).await.ok();
        at.fetch_add(2 * DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((kept(&node, 240).await, sums(&node, 2).await), (Ok(vec![]), (240, 2)));
        let recall = async |seq: i64| {
            assert_eq!(client.delete(&format!("/v1/users/1/directs/2/messages/{seq}")).await.status, 204);
            sums(&node, 2).await.0
        };
        assert_eq!((recall(5).await, recall(60).await, recall(5).await), (239, 238, 238));
        assert_eq!((read(client, 2, 1, &json!({"up_to": 1})).await, recall(6).await), (99, 219), "those in no run are read together");
        assert_eq!((read(client, 2, 1, &json!({})).await, sums(&node, 2).await), (0, (120, 1)));
        assert_eq!(differences(&node).await, Vec::<String>::new());
        node.stop().await;
    }

    async fn the_days_are_a_setting(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &["--inbox-days", "2"]).await;
        send(&node.client, 1, 2, "a").await;
        at.fetch_add(2 * DAY_MS, Ordering::SeqCst);
        assert_eq!(sweep_all(&node).await, 0);
        at.fetch_add(1, Ordering::SeqCst);
        // The node's own sweep may have come first.
        sweep_all(&node).await;
        for user in [1, 2] {
            let inbox = node.client.get(&format!("/v1/users/{user}/inbox")).await.ok();
            assert_eq!((&inbox["items"], &inbox["head"]), (&json!([]), &json!(1)), "the receiver's and the sender's");
        }
        node.stop().await;
        for days in ["0", "3651", "x"] {
            assert!(world.try_node(&["--inbox-days", days], Clock::System).await.is_err());
        }
    }

    async fn one_sweep_takes_all_of_an_inbox_with_very_many_rows(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        send(&node.client, 1, 5, "first").await;
        let mut hand = Hand::on(&world).await;
        hand.run(&format!(
            "with recursive n (seq) as (select 2 union all select seq + 1 from n where seq < 12001)
            insert into inbox (user_id, seq, sender_id, peer_id, peer_seq, group_id, group_seq, own, recall, client_id, content, put_at,
                sent_at, other_seq, recalled)
            select 5, seq, 0, 0, 0, 9, seq, 0, 0, '', '', {}, 0, 0, 0 from n",
            at.load(Ordering::SeqCst)
        ))
        .await;
        hand.run("update users set inbox_seq = 12001 where user_id = 5").await;
        at.fetch_add(31 * DAY_MS, Ordering::SeqCst);
        // The node's own sweep may have begun before.
        sweep_all(&node).await;
        assert_eq!(hand.text("select cast(count(*) as text) from inbox where user_id = 5").await, "0");
        node.stop().await;
    }

    async fn a_sweep_passes_by_what_is_kept_and_takes_all_of_the_rest(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        // More than a round looks at, all of one moment, of which the first thousands are to be
        // kept.
        fan_out(&node, (10..2710).map(|user| (user, of_group(9, 1, false))).collect()).await;
        fan_out(&node, (0..2500).map(|n| (5, of_group(9, n + 1, false))).collect()).await;
        at.fetch_add(31 * DAY_MS, Ordering::SeqCst);
        let insert = match world.tier {
            crate::support::Tier::Server => "insert into devices select user_id, 'd', 0, SEEN, 0 from users where user_id >= 10 and user_id < 2510",
            crate::support::Tier::Embedded => "insert into devices (user_id, device_id, seq, seen_at, created_at) select user_id, 'd', 0, SEEN, 0 from users where user_id >= 10 and user_id < 2510",
        };
        Hand::on(&world).await.run(&insert.replace("SEEN", &at.load(Ordering::SeqCst).to_string())).await;
        // The node's own sweep may have come first.
        assert!(sweep_all(&node).await <= 2500 + 200);
        assert_eq!(sweep_all(&node).await, 0);
        assert_eq!(inbox(&node.client, 5, "").await["head"], 2500);
        for (user, rows) in [(5, 0), (10, 1), (2509, 1), (2510, 0), (2709, 0)] {
            assert_eq!(seqs(&inbox(&node.client, user, "").await).len(), rows, "{user}");
        }
        node.stop().await;
    }
}
