//! Users who do not share receipts.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::share;
use crate::both_tiers;
use crate::features::groups::{make, read, read_one, send};
use crate::support::{CREDENTIALS, Client, Node, eventually};

/// How many have read each of these messages.
async fn read_counts(client: &Client, group: i64, to: i64) -> Vec<i64> {
    let screenful = client.get(&format!("/v1/groups/{group}/receipts?from=1&to={to}")).await.ok();
    let counts = screenful["items"].as_array().unwrap().iter().map(|item| {
        let [read, unread] = ["read_count", "unread_count"].map(|field| item[field].as_i64().unwrap());
        (read, read + unread)
    });
    let (read, recipients): (Vec<_>, Vec<_>) = counts.unzip();
    assert!(recipients.windows(2).all(|pair| pair[0] == pair[1]), "recipients stay the same: {recipients:?}");
    read
}

async fn receipts(client: &Client, group: i64, seq: i64, query: &str) -> Value {
    client.get(&format!("/v1/groups/{group}/messages/{seq}/receipts{query}")).await.ok()
}

both_tiers! {
    async fn what_a_user_reads_meanwhile_is_hidden_for_ever(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2, 3]).await;
        for n in 1..=3 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        read(client, 2, 9, Some(1)).await.ok();
        read_one(client, 2, 9, 3).await.ok();
        assert_eq!(read_counts(client, 9, 3).await, [1, 0, 1]);
        share(client, 2, false).await.ok();
        assert_eq!(read_counts(client, 9, 3).await, [1, 0, 0], "from the first message that was unread on");
        for n in 4..=5 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        assert_eq!(read(client, 2, 9, None).await.ok()["unread"], 0, "for the user, they are read");
        assert_eq!(read_counts(client, 9, 5).await, [1, 0, 0, 0, 0]);
        send(client, 9, 1, "m6").await.ok();
        share(client, 2, true).await.ok();
        send(client, 9, 1, "m7").await.ok();
        read(client, 2, 9, None).await.ok();
        assert_eq!(read_counts(client, 9, 7).await, [1, 0, 0, 0, 0, 0, 1], "up to the last message that there was");

        // Counts, lists and bitmaps say the same.
        assert_eq!((receipts(client, 9, 4, "").await["read_count"].clone(), receipts(client, 9, 4, "").await["recipients"].clone()), (json!(0), json!(2)));
        let unread = receipts(client, 9, 4, "?members=unread").await;
        assert_eq!(unread["items"][0], json!({"user_id": "2", "ordinal": 2, "left": false}));
        assert_eq!(receipts(client, 9, 4, "?members=read").await["items"], json!([]));
        assert_eq!(receipts(client, 9, 4, "?format=bitmap").await["read_bits"], "AA==");
        assert_eq!(receipts(client, 9, 7, "?format=bitmap").await["read_bits"], "Ag==");
        node.stop().await;
    }

    async fn hiding_begins_at_what_is_unread_and_not_at_what_was_recalled(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        for n in 1..=5 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        read(client, 2, 9, Some(1)).await.ok();
        for seq in [3, 5] { read_one(client, 2, 9, seq).await.ok(); }
        client.delete("/v1/groups/9/messages/2").await;
        share(client, 2, false).await.ok();
        assert_eq!(read_counts(client, 9, 5).await, [1, 1, 0, 0], "1, 3, 4 and 5");
        share(client, 2, true).await.ok();
        client.delete("/v1/groups/9/messages/4").await;
        share(client, 2, false).await.ok();
        send(client, 9, 1, "m6").await.ok();
        read(client, 2, 9, None).await.ok();
        assert_eq!(read_counts(client, 9, 6).await, [1, 1, 0, 0], "1, 3, 5 and 6");
        node.stop().await;
    }

    async fn each_group_and_membership_is_hidden_on_its_own(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for group in 1..=3 { make(client, group, &[1, 2]).await; }
        for group in 1..=2 { send(client, group, 1, "a").await.ok(); }
        read(client, 2, 1, None).await.ok();
        client.delete("/v1/groups/3/members/2").await;
        share(client, 2, false).await.ok();
        // One joined meanwhile, also again, is hidden from its beginning.
        make(client, 4, &[1, 2]).await;
        make(client, 3, &[2]).await;
        for group in 1..=4 { send(client, group, 1, "b").await.ok(); read(client, 2, group, None).await.ok(); }
        assert_eq!((read_counts(client, 1, 2).await, read_counts(client, 2, 2).await), (vec![1, 0], vec![0, 0]));
        assert_eq!((read_counts(client, 3, 1).await, read_counts(client, 4, 1).await), (vec![0], vec![0]));
        // One that was left meanwhile stays hidden.
        client.delete("/v1/groups/4/members/2").await;
        share(client, 2, true).await.ok();
        make(client, 4, &[2]).await;
        for group in 1..=4 { send(client, group, 1, "c").await.ok(); read(client, 2, group, None).await.ok(); }
        assert_eq!((read_counts(client, 1, 3).await, read_counts(client, 3, 2).await), (vec![1, 0, 1], vec![0, 1]));
        assert_eq!(read_counts(client, 4, 2).await, [0, 1]);
        node.stop().await;
    }

    async fn a_user_who_hides_sees_no_receipts(world: World) {
        let mut nodes = vec![world.node_with(&CREDENTIALS).await];
        if world.tier == crate::support::Tier::Server { nodes.push(world.node_with(&CREDENTIALS).await); }
        let (service, other) = (nodes[0].service(), nodes.last().unwrap());
        make(&service, 9, &[1, 2]).await;
        let one = nodes[0].user(1);
        send(&one, 9, 1, "a").await.ok();
        let paths = ["/v1/groups/9/messages/1/receipts", "/v1/groups/9/messages/1/receipts?format=bitmap", "/v1/groups/9/receipts?from=1&to=1"];
        share(&one, 1, false).await.ok();
        for path in paths {
            one.get(path).await.problem(403, "receipts_hidden");
            other.user(1).get(path).await.problem(403, "receipts_hidden");
            assert_eq!(service.get(path).await.status, 200, "services see them");
        }
        share(&one, 1, true).await.ok();
        for path in paths { assert_eq!(other.user(1).get(path).await.status, 200); }
        Node::stop_all(nodes).await;
    }

    async fn a_poll_of_receipts_is_refused_as_soon_as_its_user_hides(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        make(&node.service(), 9, &[1, 2]).await;
        let one = node.user(1);
        send(&one, 9, 1, "a").await.ok();
        let paths = ["/v1/groups/9/messages/1/receipts?wait=30", "/v1/groups/9/receipts?from=1&to=1&wait=30", "/v1/users/1/directs/2/receipts?wait=30"];
        let mut polls = Vec::new();
        for path in paths {
            let tag = one.get(&path.replace("?wait=30", "").replace("&wait=30", "")).await.header("etag").to_owned();
            let one = one.clone();
            polls.push(tokio::spawn(async move { one.get_if_changed(path, &tag).await }));
        }
        eventually("all wait", async || node.app.state().polling.waiting.taken() == 3).await;
        let switched = std::time::Instant::now();
        share(&one, 1, false).await.ok();
        for poll in polls { poll.await.unwrap().problem(403, "receipts_hidden"); }
        assert!(switched.elapsed() < std::time::Duration::from_secs(3), "{:?}", switched.elapsed());
        node.stop().await;
    }

    async fn a_tag_tells_nothing_of_what_is_read_and_hidden(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2, 3]).await;
        for n in 1..=5 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        read(client, 2, 9, Some(1)).await.ok();
        share(client, 2, false).await.ok();
        let paths = ["/v1/groups/9/messages/4/receipts", "/v1/groups/9/receipts?from=1&to=5"];
        let mut tags = Vec::new();
        for path in paths { tags.push(client.get(path).await.header("etag").to_owned()); }
        read(client, 2, 9, Some(3)).await.ok();
        read_one(client, 2, 9, 5).await.ok();
        // What is kept lives for a second.
        tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
        for (path, tag) in paths.iter().zip(&tags) {
            assert_eq!(client.get_if_changed(path, tag).await.status, 304, "{path}");
        }
        // Another member's read shows.
        read(client, 3, 9, None).await.ok();
        for (path, tag) in paths.iter().zip(&tags) {
            let reply = client.get_if_changed(path, tag).await;
            assert_eq!(reply.status, 200, "{path}");
        }
        assert_eq!(read_counts(client, 9, 5).await, [2, 1, 1, 1, 1]);
        node.stop().await;
    }

    async fn a_switch_shows_on_every_node_and_to_polls(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (nodes[0].client.clone(), nodes.last().unwrap().client.clone());
        make(&client, 9, &[1, 2]).await;
        send(&client, 9, 1, "a").await.ok();
        send(&client, 9, 1, "b").await.ok();
        read_one(&client, 2, 9, 2).await.ok();
        let path = "/v1/groups/9/messages/2/receipts";
        let tag = other.get(path).await.header("etag").to_owned();
        let poll = { let other = other.clone(); tokio::spawn(async move { other.get_if_changed(&format!("{path}?wait=30"), &tag).await }) };
        eventually("it waits", async || nodes.last().unwrap().app.state().polling.waiting.taken() == 1).await;
        share(&client, 2, false).await.ok();
        assert_eq!(client.get(path).await.ok()["read_count"], 0, "at once on the node that took it");
        let woken = tokio::time::timeout(std::time::Duration::from_secs(4), poll).await.expect("woken").unwrap();
        assert_eq!(woken.ok()["read_count"], 0);
        Node::stop_all(nodes).await;
    }

    async fn a_user_in_many_groups_switches_while_groups_change(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        let groups: Vec<i64> = (1..=120).collect();
        join_all(groups.iter().map(|group| make(client, *group, &[1, 2]))).await;
        let switches = async {
            for n in 0..6 { assert_eq!(share(&nodes[n % nodes.len()].client, 2, n % 2 == 1).await.status, 200); }
            share(client, 2, false).await.ok();
        };
        let others = join_all((121..=150).map(|group| async move { make(client, group, &[1, 2]).await }));
        tokio::join!(switches, others);
        join_all((1..=150).map(|group| async move { send(client, group, 1, "a").await.ok(); read(client, 2, group, None).await.ok() })).await;
        for group in (1..=150).step_by(7) { assert_eq!(read_counts(client, group, 1).await, [0], "group {group}"); }
        Node::stop_all(nodes).await;
    }
}
