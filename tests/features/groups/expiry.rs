//! How long messages are kept, and what goes with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::join_all;
use headmark::base::clock::{Clock, DAY_MS};
use headmark::features::groups::expiry::{Walk, sweep};
use headmark::maintenance::recount::Recount;
use headmark::maintenance::scrub::scrub;
use serde_json::{Value, json};

use super::fan_out::{got, make_writing};
use super::{chats, join, leave, make, read, read_one, recall, send, shown};
use crate::both_tiers;
use crate::support::{Client, Hand, Node, Tier, eventually, eventually_within};

const START: i64 = 1_800_000_000_000;
const HOUR_MS: i64 = 3_600_000;
const DAYS: [&str; 2] = ["--group-message-days", "2"];

async fn sweep_all(node: &Node) {
    let mut walk = Walk::default();
    sweep(&node.app.state().contexts.groups, &mut walk).await.unwrap();
    assert_eq!(walk, Walk::default(), "it came to the end");
}

/// The seqs of a group's history from a place on, or where what is kept begins.
async fn history(client: &Client, group: i64, query: &str) -> Result<Vec<i64>, i64> {
    let reply = client.get(&format!("/v1/groups/{group}/messages?limit=100{query}")).await;
    if reply.status != 200 {
        return Err(reply.problem(410, "cursor_expired")["earliest_seq"].as_i64().unwrap());
    }
    let page = reply.ok();
    let seqs: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()).collect();
    let next = page["next_after"].as_i64().unwrap();
    assert!(seqs.last().map_or(next >= page["head"].as_i64().unwrap(), |last| next == *last), "{page}");
    Ok(seqs)
}

/// Rows, numbers and entries agree.
async fn agree(node: &Node, users: std::ops::RangeInclusive<i64>) {
    let state = node.app.state();
    let mut found = Vec::new();
    let recount = Recount { user: None, dry_run: true };
    recount.run(&state.db, |difference| found.push(difference.to_string())).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
    let users: Vec<_> = users.map(|user| user.try_into().unwrap()).collect();
    assert_eq!(scrub(&state.contexts.scrub, &users).await.unwrap(), 0);
}

async fn unread(client: &Client, user: i64) -> i64 {
    let sum = chats(client, user).await["unread"].as_i64().unwrap();
    assert_eq!(shown(client, user).await.values().map(|(unread, _)| unread).sum::<i64>(), sum);
    let terms = client.get(&format!("/v1/users/{user}/badges/explain")).await.ok();
    assert_eq!(terms["chats"]["unread"], sum, "{terms}");
    sum
}

/// Many messages of one sender at once.
async fn send_many(client: &Client, group: i64, sender: i64, ids: std::ops::Range<i64>) {
    let sent = ids.map(|n| async move { send(client, group, sender, &format!("m{n}")).await.ok() });
    join_all(sent).await;
}

both_tiers! {
    /// A node whose clock was a year ahead took it.
    async fn a_message_of_a_fast_clock_keeps_no_others(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &DAYS).await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        for id in ["a", "b", "c"] { send(client, 9, 1, id).await.ok(); }
        at.fetch_add(DAY_MS, Ordering::SeqCst);
        for id in ["d", "e"] { send(client, 9, 1, id).await.ok(); }
        let mut hand = Hand::on(&world).await;
        hand.run("update group_messages set sent_at = sent_at + 31536000000 where seq in (1, 2, 4)").await;
        at.fetch_add(DAY_MS + HOUR_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!(history(client, 9, "").await, Ok(vec![4, 5]), "what came before an old one is old");
        at.fetch_add(DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!(history(client, 9, "").await, Ok(vec![]));
        node.stop().await;
    }

    async fn old_messages_go_and_are_unread_no_longer(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &DAYS).await;
        let client = &node.client;
        make(client, 9, &[1, 2, 3]).await;
        // 1 to 4 are old; 4 was recalled, 3 read alone; 5 joins after 2 and 6 after 5.
        for id in ["a", "b"] { send(client, 9, 1, id).await.ok(); }
        join(client, 9, 5).await;
        for id in ["c", "d"] { send(client, 9, 1, id).await.ok(); }
        recall(client, 9, 4).await;
        read_one(client, 3, 9, 3).await.ok();
        at.fetch_add(DAY_MS, Ordering::SeqCst);
        send(client, 9, 1, "e").await.ok();
        join(client, 9, 6).await;
        send(client, 9, 1, "f").await.ok();
        at.store(START + 2 * DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!(history(client, 9, "&after=0").await, Ok((1..=6).collect()), "nothing is old");
        assert_eq!((unread(client, 2).await, unread(client, 3).await, unread(client, 5).await, unread(client, 6).await), (5, 4, 3, 1));
        let (tag, revision) = {
            let reply = client.get("/v1/users/2/badges").await;
            (reply.header("etag").to_owned(), reply.ok()["revision"].clone())
        };

        at.fetch_add(HOUR_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((unread(client, 2).await, unread(client, 3).await, unread(client, 5).await, unread(client, 6).await), (2, 2, 2, 1));
        let changed = client.get_if_changed("/v1/users/2/badges", &tag).await.ok();
        assert_eq!((&changed["chats"]["unread"], &changed["revision"]), (&json!(2), &revision), "the tag is another; no row of a user was written");
        assert_eq!((history(client, 9, "").await, history(client, 9, "&after=4").await), (Ok(vec![5, 6]), Ok(vec![5, 6])));
        assert_eq!((history(client, 9, "&after=0").await, history(client, 9, "&after=3").await, history(client, 9, "&after=7").await.is_ok()), (Err(5), Err(5), true));
        assert_eq!(client.get("/v1/groups/9").await.ok()["head"], 6, "the head stays");
        agree(&node, 1..=6).await;

        // What is asked about a message that has expired.
        for seq in [1, 4] {
            client.get(&format!("/v1/groups/9/messages/{seq}/receipts")).await.problem(410, "cursor_expired");
            recall(client, 9, seq).await.problem(410, "gone");
            read_one(client, 2, 9, seq).await.problem(410, "gone");
            read_one(client, 6, 9, seq).await.problem(404, "not_found");
        }
        assert_eq!(client.get("/v1/groups/9/receipts?from=4&to=9").await.problem(410, "cursor_expired")["earliest_seq"], 5);
        assert_eq!(client.get("/v1/groups/9/receipts?from=5&to=9").await.ok()["items"].as_array().unwrap().len(), 2);
        client.get("/v1/groups/9/messages/7/receipts").await.problem(404, "not_found");
        recall(client, 9, 7).await.problem(404, "not_found");
        read_one(client, 2, 9, 7).await.problem(404, "not_found");

        // Marks stand where they are, also below what is kept, and go on.
        let marked = read(client, 2, 9, Some(3)).await.ok();
        assert_eq!((&marked["unread"], &marked["read_seq"]), (&json!(2), &json!(3)));
        assert_eq!(read(client, 2, 9, Some(5)).await.ok()["unread"], 1);
        assert_eq!(read_one(client, 3, 9, 6).await.ok()["unread"], 1);
        recall(client, 9, 5).await;
        assert_eq!((unread(client, 2).await, unread(client, 3).await), (1, 0));
        leave(client, 9, 3).await;
        join(client, 9, 3).await;

        // The id went with its message; numbers go on.
        let again = send(client, 9, 1, "a").await;
        assert_eq!((again.status.as_u16(), &again.body["seq"]), (201, &json!(7)));
        assert_eq!(send(client, 9, 1, "f").await.body["seq"], 6, "this one is kept");
        send(client, 9, 1, "e").await.problem(410, "gone");
        assert_eq!((unread(client, 2).await, unread(client, 3).await, history(client, 9, "&after=4").await), (2, 1, Ok(vec![5, 6, 7])));
        agree(&node, 1..=6).await;

        // All of it goes.
        at.fetch_add(9 * DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((unread(client, 2).await, history(client, 9, "").await), (0, Ok(vec![])));
        assert_eq!((history(client, 9, "&after=6").await, history(client, 9, "&after=7").await), (Err(8), Ok(vec![])));
        assert_eq!(send(client, 9, 1, "a").await.body["seq"], 8);
        assert_eq!((unread(client, 2).await, unread(client, 6).await, history(client, 9, "&after=7").await), (1, 1, Ok(vec![8])));
        agree(&node, 1..=6).await;
        node.stop().await;
    }

    async fn what_was_recalled_far_back_is_counted_with_what_expired(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &DAYS).await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        // 220 runs were taken back, of which 200 are at hand: below 40 only the rows tell.
        send_many(client, 9, 1, 0..20).await;
        at.fetch_add(HOUR_MS, Ordering::SeqCst);
        send_many(client, 9, 1, 20..100).await;
        at.fetch_add(HOUR_MS, Ordering::SeqCst);
        send_many(client, 9, 1, 100..450).await;
        for seq in 1..=220 { recall(client, 9, 2 * seq).await; }
        assert_eq!(unread(client, 2).await, 230);
        at.store(START + 2 * DAY_MS + HOUR_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((history(client, 9, "&after=0").await, unread(client, 2).await), (Err(21), 220));
        node.app.state().heads.forget_all();
        assert_eq!(unread(client, 2).await, 220);
        assert_eq!(read(client, 2, 9, Some(30)).await.ok()["unread"], 215);
        agree(&node, 1..=2).await;
        at.fetch_add(HOUR_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((history(client, 9, "&after=99").await, unread(client, 2).await), (Err(101), 180));
        assert_eq!(read(client, 2, 9, Some(40)).await.ok()["unread"], 180);
        agree(&node, 1..=2).await;
        node.stop().await;
    }

    async fn devices_find_no_text_of_what_expired_and_hear_of_recalls(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &DAYS).await;
        let client = &node.client;
        make_writing(client, 9, &[1, 2]).await;
        for id in ["a", "b", "c"] { send(client, 9, 1, id).await.ok(); }
        for user in [1, 2] { eventually("they arrive", async || got(client, user).await == [1, 2, 3]).await; }
        // A recall that is yet to reach the inboxes keeps its message, and those after it.
        let mut hand = Hand::on(&world).await;
        hand.run("insert into delivery_jobs (group_id, job, seq, recall) values (9, 100, 2, 1)").await;
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!(history(client, 9, "&after=0").await, Err(2));
        hand.run("delete from delivery_jobs where group_id = 9").await;
        sweep_all(&node).await;
        assert_eq!(history(client, 9, "").await, Ok(vec![]));
        let items = client.get("/v1/users/2/inbox").await.ok()["items"].clone();
        let items: Vec<&Value> = items.as_array().unwrap().iter().collect();
        assert!(items.len() == 3 && items.iter().all(|item| item["recalled"] == true && item.get("content").is_none()), "{items:?}");
        assert_eq!(unread(client, 2).await, 0);
        agree(&node, 1..=2).await;
        node.stop().await;
    }

    async fn many_go_in_bounded_steps_on_every_node_at_once(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let mut nodes = vec![world.node_at(&at, &DAYS).await];
        if world.tier == Tier::Server { nodes.push(world.node_at(&at, &DAYS).await); }
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        for group in [8, 9] { make(client, group, &[1, 2]).await; }
        for group in 10..40 { make(client, group, &[1, 2]).await; }
        send_many(client, 9, 1, 0..1300).await;
        send_many(client, 8, 1, 0..600).await;
        for group in 10..40 { send_many(client, group, 1, 0..2).await; }
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        send(client, 9, 1, "young").await.ok();
        let all = 1300 + 600 + 60 + 1;
        eventually("both nodes have all", async || chats(other, 2).await["unread"] == all).await;
        join_all(nodes.iter().map(sweep_all)).await;
        for node in &nodes {
            assert_eq!(history(&node.client, 9, "&after=1300").await, Ok(vec![1301]));
            assert_eq!((history(&node.client, 9, "&after=0").await, history(&node.client, 8, "&after=0").await), (Err(1301), Err(601)));
            eventually("each node hears of it", async || chats(&node.client, 2).await["unread"] == 1).await;
            assert_eq!(unread(&node.client, 2).await, 1);
        }
        agree(&nodes[0], 1..=2).await;
        assert!(client.metric("headmark_lane_commands_total").await > 0.0);
        Node::stop_all(nodes).await;
    }

    async fn an_older_message_behind_a_younger_one_waits_for_it(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &DAYS).await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        for id in ["a", "b", "c"] { send(client, 9, 1, id).await.ok(); }
        // As an import of a log adds it.
        Hand::on(&world).await.run("update group_messages set sent_at = 1000 where group_id = 9 and seq in (1, 3)").await;
        sweep_all(&node).await;
        assert_eq!((history(client, 9, "").await, unread(client, 2).await), (Ok(vec![2, 3]), 2));
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((history(client, 9, "").await, unread(client, 2).await), (Ok(vec![]), 0));
        agree(&node, 1..=2).await;
        node.stop().await;
    }

    async fn kill_in_the_midst_of_an_expiry(world: World) {
        let mut first = world.process(&[], &[]).await;
        for group in [8, 9] {
            make(&first.client, group, &[1, 2]).await;
            send_many(&first.client, group, 1, 0..1200).await;
        }
        first.kill().await;
        Hand::on(&world).await.run("update group_messages set sent_at = 1000").await;
        // The sweep begins with the node; two of its batches are committed, or three.
        for step in ["lane::before_commit", "lane::after_commit"] {
            let mut doomed = world.process(&DAYS, &[("FAILPOINTS", &format!("{step}=1*off->return"))]).await;
            assert!(!doomed.ended().await.success());
        }
        let node = world.node_with(&DAYS).await;
        for group in [8, 9] {
            eventually_within(20, "the next one goes on", async || history(&node.client, group, "&after=0").await == Err(1201)).await;
        }
        assert_eq!((unread(&node.client, 2).await, send(&node.client, 9, 1, "next").await.body["seq"].clone()), (0, json!(1201)));
        agree(&node, 1..=2).await;
        node.stop().await;
    }

    async fn without_the_setting_they_are_kept_for_ever(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &[]).await;
        make(&node.client, 9, &[1, 2]).await;
        send(&node.client, 9, 1, "a").await.ok();
        at.fetch_add(4000 * DAY_MS, Ordering::SeqCst);
        sweep_all(&node).await;
        assert_eq!((history(&node.client, 9, "&after=0").await, unread(&node.client, 2).await), (Ok(vec![1]), 1));
        node.stop().await;
        for days in ["36501", "-1", "x"] {
            assert!(world.try_node(&["--group-message-days", days], Clock::System).await.is_err());
        }
    }
}
