//! Groups that deliver by writing: one row in each member's inbox, in order, once, whatever dies
//! meanwhile.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::features::groups::{make, read, send};
use crate::support::{Client, Hand, Pause, Tier, World, eventually, eventually_within};

pub(crate) async fn make_writing(client: &Client, group: i64, members: &[i64]) {
    client.put(&format!("/v1/groups/{group}"), &json!({"delivery": "write"})).await.ok();
    for members in members.chunks(1000) {
        make_more(client, group, members).await;
    }
}

async fn make_more(client: &Client, group: i64, members: &[i64]) {
    client.post(&format!("/v1/groups/{group}/members"), &json!({"user_ids": members})).await.ok();
}

/// A user's inbox: the items, page by page.
async fn inbox(client: &Client, user: i64) -> Vec<Value> {
    let (mut items, mut after) = (Vec::new(), 0);
    loop {
        let page = client.get(&format!("/v1/users/{user}/inbox?after={after}&limit=100")).await.ok();
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        after = page["next_after"].as_i64().unwrap();
        if page["has_more"] == false {
            return items;
        }
    }
}

/// The messages of a group in a user's inbox, in the order of the inbox; a recall as the negative
/// of its message.
pub(crate) async fn got(client: &Client, user: i64) -> Vec<i64> {
    let items = inbox(client, user).await;
    assert!(items.iter().zip(1..).all(|(item, seq)| item["seq"] == seq), "dense: {items:?}");
    items.iter().map(|item| item["recall"].as_i64().map_or_else(|| item["group_seq"].as_i64().unwrap(), |seq| -seq)).collect()
}

both_tiers! {
    async fn each_member_gets_a_row_and_one_more_unread(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make_writing(client, 9, &[1, 2, 3]).await;
        send(client, 9, 1, "a").await.ok();
        send(client, 9, 2, "b").await.ok();
        for user in [1, 2, 3] {
            eventually("they arrive", async || got(client, user).await == [1, 2]).await;
        }
        let mut items = inbox(client, 2).await;
        for item in &mut items {
            item.as_object_mut().unwrap().remove("sent_at");
        }
        assert_eq!(
            json!(items),
            json!([
                {"seq": 1, "sender_id": "1", "group_id": "9", "group_seq": 1, "content": "it is a"},
                {"seq": 2, "sender_id": "2", "group_id": "9", "group_seq": 2, "own": true, "content": "it is b"},
            ])
        );
        let summary = client.summary(3).await;
        assert_eq!((&summary["chats"], &summary["total"]), (&json!({"unread": 2, "mentions": 0, "groups": 1, "directs": 0}), &json!(2)));
        read(client, 3, 9, None).await.ok();
        assert_eq!(client.summary(3).await["chats"]["unread"], 0);
        // Anyone who leaves stays a recipient of what was sent before; who joins gets what comes.
        send(client, 9, 1, "c").await.ok();
        client.delete("/v1/groups/9/members/3").await;
        make_more(client, 9, &[4]).await;
        send(client, 9, 1, "d").await.ok();
        client.delete("/v1/groups/9/messages/2").await;
        for (user, wanted) in [(1, vec![1, 2, 3, 4, -2]), (2, vec![1, 2, 3, 4, -2]), (3, vec![1, 2, 3, -2]), (4, vec![4])] {
            eventually("in the order in which it happened", async || got(client, user).await == wanted).await;
        }
        assert_eq!(inbox(client, 1).await[1]["recalled"], true, "what was recalled says nothing any more");
        // By reading from now on: nothing more is written.
        client.put("/v1/groups/9", &json!({"delivery": "read"})).await.ok();
        send(client, 9, 1, "e").await.ok();
        client.put("/v1/groups/9", &json!({"delivery": "write"})).await.ok();
        send(client, 9, 1, "f").await.ok();
        eventually("only what was sent while it writes", async || got(client, 4).await == [4, 6]).await;
        node.stop().await;
    }

    async fn a_device_that_waits_is_woken(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (nodes[0].client.clone(), nodes.last().unwrap().client.clone());
        make_writing(&client, 9, &[1, 2]).await;
        let waiting = tokio::spawn(async move { other.get("/v1/users/2/inbox?wait=30").await.ok() });
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        send(&client, 9, 1, "a").await.ok();
        let page = tokio::time::timeout(std::time::Duration::from_secs(4), waiting).await.expect("it is woken").unwrap();
        assert_eq!(page["items"][0]["group_seq"], 1);
        crate::support::Node::stop_all(nodes).await;
    }

    async fn many_messages_through_several_nodes_keep_their_order(world: World) {
        let nodes = world.nodes().await;
        let members: Vec<i64> = (1..=300).collect();
        make_writing(&nodes[0].client, 9, &members).await;
        make_writing(&nodes[0].client, 8, &members).await;
        join_all((1..=6).map(|sender| {
            let client = nodes[usize::try_from(sender).unwrap() % nodes.len()].client.clone();
            async move {
                for n in 0..10 {
                    send(&client, 8 + sender % 2, sender, &format!("m{n}")).await.ok();
                }
            }
        }))
        .await;
        for user in [1, 150, 300] {
            let by_group = async |group: &str| {
                let items = inbox(&nodes[0].client, user).await;
                let of_group = items.iter().filter(|item| item["group_id"] == group);
                of_group.map(|item| item["group_seq"].as_i64().unwrap()).collect::<Vec<_>>()
            };
            for group in ["8", "9"] {
                eventually_within(60, "all arrive, each once and in order", async || by_group(group).await == (1..=30).collect::<Vec<_>>()).await;
            }
        }
        crate::support::Node::stop_all(nodes).await;
    }

    async fn ten_thousand_members(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        let client = &node.client;
        let members: Vec<i64> = (1..=10_000).collect();
        make_writing(client, 9, &members).await;
        send(client, 9, 1, "a").await.ok();
        send(client, 9, 10_000, "b").await.ok();
        for user in [10_000, 1, 5_000] {
            eventually_within(90, "both arrive", async || got(client, user).await == [1, 2]).await;
        }
        read(client, 7, 9, None).await.ok();
        let receipts = client.get("/v1/groups/9/messages/1/receipts").await.ok();
        assert_eq!((&receipts["recipients"], &receipts["read_count"]), (&json!(9999), &json!(2)));
        let bitmap = client.get("/v1/groups/9/messages/1/receipts?format=bitmap").await.ok();
        assert_eq!(bitmap["max_ordinal"], 10_000);
        assert_eq!(client.walk("/v1/groups/9/members", 100).await.len(), 10_000);
        node.stop().await;
    }

    async fn kill_between_two_steps(world: World) {
        dies(&world, "fan_out::after_step=1*off->return").await;
    }

    async fn kill_before_the_commit_of_a_step(world: World) {
        dies(&world, "lane::before_commit=10*off->return").await;
    }

    async fn kill_after_the_commit_of_a_step(world: World) {
        dies(&world, "lane::after_commit=10*off->return").await;
    }

    /// Its clock was a year ahead.
    async fn what_a_node_with_a_fast_clock_has_left_is_taken_up(world: World) {
        let members: Vec<i64> = (1..=1500).collect();
        let mut doomed = world.process(&["--scrub-users", "0"], &[("FAILPOINTS", "fan_out::after_step=return")]).await;
        make_writing(&doomed.client, 9, &members).await;
        let request = doomed.client.request(reqwest::Method::POST, "/v1/groups/9/messages");
        let _ = Client::try_send(request.json(&json!({"sender_id": 1, "client_id": "a", "content": "x"}))).await;
        assert!(!doomed.ended().await.success());
        Hand::on(&world).await.run("update group_deliveries set at = at + 31536000000").await;
        let node = world.node_with(&["--scrub-users", "0"]).await;
        eventually_within(30, "the others get it", async || got(&node.client, 1500).await == [1]).await;
        node.stop().await;
    }
}

both_tiers! {
    async fn who_rejoins_often_misses_nothing(world: World) {
        // What is not fanned out before the kill is fanned out together after it: a round of many
        // messages, and many memberships of one member.
        let mut doomed = world.process(&["--scrub-users", "0"], &[("FAILPOINTS", "fan_out::before_step=pause")]).await;
        let client = &doomed.client;
        let members: Vec<i64> = (1..=60).collect();
        make_writing(client, 9, &members).await;
        let (mut there, mut wanted) = (true, Vec::new());
        for seq in 1..=120 {
            send(client, 9, 60, &format!("m{seq}")).await.ok();
            if there {
                wanted.push(seq);
                client.delete("/v1/groups/9/members/7").await;
            } else {
                make_more(client, 9, &[7]).await;
            }
            there = !there;
        }
        // Of the first message, so that the round spans all memberships.
        client.delete("/v1/groups/9/messages/1").await;
        wanted.push(-1);
        doomed.kill().await;
        let survivor = world.node_with(&["--scrub-users", "0"]).await;
        let all: Vec<i64> = (1..=120).chain([-1]).collect();
        for user in [1, 6, 8, 59, 60] {
            eventually_within(60, "who stayed has all", async || got(&survivor.client, user).await == all).await;
        }
        assert_eq!(got(&survivor.client, 7).await, wanted, "who was there when a message was sent has it");
        survivor.stop().await;
    }

    /// Those who left after a message are more than are looked at for each page, and come after a stretch of others.
    async fn many_who_have_left_hear_of_a_recall(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make_writing(client, 9, &[1, 2, 3]).await;
        send(client, 9, 1, "a").await.ok();
        eventually("it arrives", async || got(client, 3).await == [1]).await;
        Hand::on(&world).await.run(
            "insert into memberships
                (group_id, ordinal, span, user_id, from_seq, to_seq, read_seq, extra, level, joined_at, at, level_until, unread_from, again, mentions, hidden)
            with recursive t (n) as (select 4 union all select n + 1 from t where n < 24503)
            select 9, t.n, m.span, 1000000 + t.n, 0, case when t.n < 23004 then 0 else 1 end, 0, m.extra, m.level, m.joined_at, m.at, m.level_until,
                m.unread_from, m.again, m.mentions, m.hidden
            from t, memberships m
            where m.user_id = 3 and m.group_id = 9;
            update chat_groups set ordinals = 24503 where group_id = 9",
        ).await;
        client.delete("/v1/groups/9/messages/1").await;
        for user in [1_023_004, 1_024_503] {
            eventually_within(60, "who has left hears of it", async || got(client, user).await == [-1]).await;
        }
        assert_eq!(got(client, 1_023_003).await, [0_i64; 0], "not who had left before");
        send(client, 9, 1, "b").await.ok();
        for user in [1, 2, 3] {
            eventually("who is there gets the next one", async || got(client, user).await == [1, -1, 2]).await;
        }
        assert_eq!(got(client, 1_024_503).await, [-1]);
        node.stop().await;
    }

    async fn a_small_group_does_not_wait_for_large_ones(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        let client = &node.client;
        let members: Vec<i64> = (1..=2000).collect();
        for group in [1, 2] {
            make_writing(client, group, &members).await;
        }
        make_writing(client, 99, &[5001, 5002]).await;
        join_all((0..200).map(|n| async move { send(client, 1 + n % 2, 1, &format!("m{n}")).await.ok() })).await;
        send(client, 99, 5001, "a").await.ok();
        eventually_within(60, "it arrives", async || got(client, 5002).await == [1]).await;
        assert!(client.metric("headmark_fan_out_oldest_seconds").await > 0.0, "the large ones are not done");
        let arrived = inbox(client, 2000).await;
        for group in ["1", "2"] {
            let of_group = arrived.iter().filter(|item| item["group_id"] == group).count();
            assert!(of_group < 100, "group {group} was served to its end first");
        }
        node.stop().await;
    }

    async fn who_holds_a_row_hears_of_its_recall_after_a_switch(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make_writing(client, 9, &[1, 2, 3]).await;
        for id in ["a", "b"] {
            send(client, 9, 1, id).await.ok();
        }
        client.delete("/v1/groups/9/members/3").await;
        client.put("/v1/groups/9", &json!({"delivery": "read"})).await.ok();
        make_more(client, 9, &[4]).await;
        for id in ["c", "d"] {
            send(client, 9, 1, id).await.ok();
        }
        for seq in [3, 2] {
            assert_eq!(client.delete(&format!("/v1/groups/9/messages/{seq}")).await.status, 204);
        }
        for user in [1, 2, 3] {
            eventually("it hears of the one that it has", async || got(client, user).await == [1, 2, -2]).await;
        }
        assert!(got(client, 4).await.is_empty(), "it has none");
        eventually("nothing is left to do", async || client.metric("headmark_fan_out_oldest_seconds").await == 0.0).await;
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_of_a_page_beside_another() {
    dies(&World::new(Tier::Server).await, "pages::beside=1*off->return").await;
}

/// The second of two pages has written its rows, and is to move the progress, when the group is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_overtaken_writes_nothing() {
    let world = World::new(Tier::Server).await;
    let second = Pause::at("pages::beside");
    let node = world.node_with(&["--scrub-users", "0"]).await;
    let client = &node.client;
    let members: Vec<i64> = (1..=1500).collect();
    make_writing(client, 9, &members).await;
    let mut hand = Hand::on(&world).await;
    send(client, 9, 1, "a").await.ok();
    second.reached().await;
    // The first page has a thousand members less one.
    eventually("the first page is done", async || got(client, 999).await == [1]).await;
    let last = i64::MAX;
    hand.run(&format!("update group_deliveries set up_to_job = {last}, up_to_ordinal = {last}, at = at + 30000 where group_id = 9")).await;
    let stale = client.metric("headmark_lane_stale_batches_total").await;
    second.go_on().await;
    eventually("it is undone", async || client.metric("headmark_lane_stale_batches_total").await == stale + 1.0).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    for user in [1000, 1001, 1499, 1500] {
        assert!(got(client, user).await.is_empty(), "user {user} has a row");
    }
    assert_eq!(hand.text("select count(*) || ' ' || max(up_to_ordinal) from group_deliveries").await, format!("1 {last}"));
    node.stop().await;
}

/// The node dies while it puts three messages into the inboxes of 5,000 members, five steps each
/// at least, of which two or three are under way at once.
async fn dies(world: &World, failpoint: &str) {
    let members: Vec<i64> = (1..=5000).collect();
    let mut doomed = world.process(&["--scrub-users", "0"], &[("FAILPOINTS", failpoint)]).await;
    make_writing(&doomed.client, 9, &members).await;
    let sent = join_all((1..=3).map(|n| {
        let request = doomed.client.request(reqwest::Method::POST, "/v1/groups/9/messages");
        Client::try_send(request.json(&json!({"sender_id": 1, "client_id": format!("m{n}"), "content": "x"})))
    }))
    .await;
    assert!(!doomed.ended().await.success());
    let acknowledged = sent.iter().filter(|reply| reply.as_ref().is_ok_and(|reply| reply.status == 201)).count();
    let survivor = world.node_with(&["--scrub-users", "0"]).await;
    let client = &survivor.client;
    for n in 1..=3 {
        send(client, 9, 1, &format!("m{n}")).await.ok();
    }
    assert!(acknowledged <= 3);
    for user in [1, 2, 999, 1000, 1001, 2500, 4996, 4999, 5000] {
        eventually_within(60, "each message once, in order, for everybody", async || got(client, user).await == [1, 2, 3]).await;
    }
    // Nothing comes twice later.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let total: f64 = client.metric("headmark_fan_out_rows_total").await;
    assert!(total <= 15_000.0);
    for user in [1, 1000, 5000] {
        assert_eq!(got(client, user).await, [1, 2, 3]);
    }
    survivor.stop().await;
}

both_tiers! {
    async fn a_group_for_reading_is_not_fanned_out(world: World) {
        let node = world.node().await;
        make(&node.client, 9, &[1, 2]).await;
        send(&node.client, 9, 1, "a").await.ok();
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        assert!(inbox(&node.client, 2).await.is_empty());
        node.stop().await;
    }
}
