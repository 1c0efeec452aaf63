//! Direct chats: what is unread, the list, muting.

use std::time::{Duration, Instant};

use headmark::db::Statement;
use serde_json::{Value, json};

use super::{chats, id, message, mute, read, send, sums, unread};
use crate::both_tiers;
use crate::support::Hand;
use crate::support::{Client, Node, Tier, eventually};

both_tiers! {
    async fn a_chat_is_read_up_to_a_row_of_the_own_inbox(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        // In the inbox of 2: 1 at 1, 3, 5, 8; 3 at 2, 4; its own to 4 at 6 and 7.
        for (sender, id) in [(1, "a"), (3, "a"), (1, "b"), (3, "b"), (1, "c")] {
            send(client, sender, 2, id).await;
        }
        for id in ["x", "y"] {
            client.post("/v1/users/4/inbox", &message(2, id, id)).await.ok();
        }
        assert_eq!(send(client, 1, 2, "d").await, 8);
        assert_eq!(sums(&nodes[0], 2).await, (6, 2));
        let path = "/v1/users/2/directs/1/read";
        let reply = client.post(path, &json!({"up_to": 4})).await;
        insta::assert_snapshot!(reply.text, @r#"{"peer_id":"1","unread":2,"last_seq":8,"read_seq":3,"revision":10}"#);
        for body in [json!({"up_to": 4}), json!({"up_to": 0}), json!({"up_to": 3}), json!({"up_to": 1})] {
            assert_eq!(other.post(path, &body).await.text, reply.text, "marks never go back, and a repeat changes nothing: {body}");
        }
        assert_eq!((read(other, 2, 1, &json!({"up_to": 7})).await, sums(&nodes[0], 2).await), (1, (3, 2)));
        assert_eq!(chats(client, 2).await, [(1, 1, false), (4, 0, false), (3, 2, false)]);
        assert_eq!((read(client, 2, 3, &json!({"up_to": 9_007_199_254_740_991_i64})).await, sums(&nodes[0], 2).await), (0, (1, 1)), "beyond the head is the head");
        send(client, 3, 2, "c").await;
        assert_eq!(chats(other, 2).await, [(3, 1, false), (1, 1, false), (4, 0, false)], "the latest first");
        // The head that is shown clears exactly what was shown.
        let shown = client.get("/v1/users/2/directs").await.ok()["items"][1]["last_seq"].clone();
        send(other, 1, 2, "e").await;
        assert_eq!(read(client, 2, 1, &json!({"up_to": shown})).await, 1);
        assert_eq!((read(client, 2, 1, &json!({})).await, read(client, 2, 3, &json!({})).await), (0, 0));
        assert_eq!((sums(&nodes[0], 2).await, sums(&nodes[0], 4).await), ((0, 0), (2, 1)));
        let nobody = client.post("/v1/users/2/directs/77/read", &json!({"up_to": 3})).await.ok();
        assert_eq!((&nobody["unread"], &nobody["last_seq"]), (&json!(0), &json!(0)));
        assert_eq!(chats(client, 2).await.len(), 3, "which makes no chat");
        Node::stop_all(nodes).await;
    }

    async fn a_muted_chat_keeps_its_number_and_is_in_no_sum(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for n in 0..3 {
            send(client, 1, 9, &format!("a{n}")).await;
            send(client, 2, 9, &format!("b{n}")).await;
        }
        let muted = client.put("/v1/users/9/directs/1/settings", &json!({"level": "none"})).await;
        insta::assert_snapshot!(muted.text, @r#"{"peer_id":"1","level":"none","unread":3,"last_seq":5,"revision":8}"#);
        assert_eq!(mute(client, 9, 1, true).await, muted.body, "again changes nothing");
        assert_eq!((sums(&node, 9).await, chats(client, 9).await), ((3, 1), vec![(2, 3, false), (1, 3, true)]));
        let summary = client.summary(9).await;
        assert_eq!((&summary["chats"], &summary["total"]), (&json!({"unread": 3, "mentions": 0, "groups": 0, "directs": 1}), &json!(3)));
        send(client, 1, 9, "a3").await;
        assert_eq!((sums(&node, 9).await, read(client, 9, 1, &json!({"up_to": 3})).await, sums(&node, 9).await), ((3, 1), 2, (3, 1)));
        mute(client, 9, 1, false).await;
        assert_eq!(sums(&node, 9).await, (5, 2));
        mute(client, 9, 1, true).await;
        read(client, 9, 1, &json!({})).await;
        mute(client, 9, 1, false).await;
        assert_eq!(sums(&node, 9).await, (3, 1));
        // Ahead of the first message.
        let ahead = mute(client, 9, 5, true).await;
        assert_eq!((&ahead["unread"], &ahead["last_seq"]), (&json!(0), &json!(0)));
        let chat = client.get("/v1/users/9/directs/5").await.ok();
        assert_eq!((chats(client, 9).await.len(), &chat["last_at"], &chat["level"]), (2, &Value::Null, &json!("none")), "it is in no list yet");
        send(client, 5, 9, "c").await;
        assert_eq!((sums(&node, 9).await, chats(client, 9).await[0]), ((3, 1), (5, 1, true)));
        let revision = client.summary(9).await["revision"].clone();
        mute(client, 9, 6, false).await;
        assert_eq!((&client.summary(9).await["revision"], chats(client, 9).await.len()), (&revision, 3), "as it was");
        for body in [json!({}), json!({"level": null}), json!({"level": "mentions"}), json!({"muted": true}), json!({"level": "none", "until": null})] {
            client.put("/v1/users/9/directs/1/settings", &body).await.problem(422, "invalid_body");
        }
        assert_eq!(client.put("/v1/users/9/directs/0/settings", &json!({"level": "none"})).await.pointers(400, "invalid_path"), ["peer"]);
        for body in [json!({"up_to": -1}), json!({"up_to": null}), json!({"upto": 1}), json!({"up_to": 9_007_199_254_740_992_i64})] {
            client.post("/v1/users/9/directs/1/read", &body).await.problem(422, "invalid_body");
        }
        assert_eq!(chats(client, 9).await.len(), 3);
        node.stop().await;
    }

    async fn a_chat_with_a_user_who_is_blocked_is_in_no_sum_until_that_ends(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        for n in 0..3 {
            send(client, 1, 9, &format!("a{n}")).await;
            send(other, 2, 9, &format!("b{n}")).await;
        }
        let counted = async || {
            let (summary, explained) = (other.summary(9).await, client.get("/v1/users/9/badges/explain").await.ok());
            assert_eq!((&explained["chats"]["unread"], &explained["total"]), (&summary["chats"]["unread"], &summary["total"]));
            let not_muted = |item: &&Value| item["level"] == "all";
            let terms = explained["chats"]["directs"].as_array().unwrap().iter().filter(not_muted).map(|item| item["unread"].as_i64().unwrap());
            assert_eq!(json!(terms.sum::<i64>()), summary["chats"]["unread"]);
            assert_eq!(headmark::maintenance::scrub::scrub(&nodes[0].app.state().contexts.scrub, &[id(9), id(1)]).await.unwrap(), 0);
            (summary["chats"]["unread"].as_i64().unwrap(), summary["chats"]["directs"].as_i64().unwrap(), chats(client, 9).await)
        };
        let block = async || client.put("/v1/users/9/blocks/1", &json!({})).await.ok();
        let unblock = async || assert_eq!(other.delete("/v1/users/9/blocks/1").await.status, 204);
        assert_eq!(counted().await, (6, 2, vec![(2, 3, false), (1, 3, false)]));
        let revision = client.summary(9).await["revision"].as_i64().unwrap();
        block().await;
        assert_eq!(counted().await, (3, 1, vec![(2, 3, false), (1, 3, true)]), "the chat keeps its number");
        assert_eq!(client.summary(9).await["revision"], revision + 1);
        block().await;
        assert_eq!(counted().await.0, 3);
        unblock().await;
        assert_eq!(counted().await, (6, 2, vec![(2, 3, false), (1, 3, false)]), "as if there had been no block");

        // What is done meanwhile holds: the chat is read, answered and muted as ever.
        block().await;
        client.post("/v1/users/9/inbox", &message(1, "no", "no")).await.problem(403, "blocked");
        client.post("/v1/users/1/inbox", &message(9, "re", "re")).await.ok();
        assert_eq!(read(other, 9, 1, &json!({"up_to": 1})).await, 0);
        assert_eq!(mute(other, 9, 1, false).await["level"], "none", "not while the block lasts");
        assert_eq!(counted().await, (3, 1, vec![(1, 0, true), (2, 3, false)]), "an answer reads the chat");
        assert_eq!(unread(client, 9, 1, 3).await, 2);
        assert_eq!(counted().await, (3, 1, vec![(1, 2, true), (2, 3, false)]));
        mute(client, 9, 1, true).await;
        unblock().await;
        assert_eq!(counted().await, (3, 1, vec![(1, 2, true), (2, 3, false)]));
        mute(client, 9, 1, false).await;
        assert_eq!(counted().await, (5, 2, vec![(1, 2, false), (2, 3, false)]));
        // The other side's numbers are its own.
        client.put("/v1/users/1/blocks/9", &json!({})).await.ok();
        assert_eq!(counted().await.0, 5);
        assert_eq!((sums(&nodes[0], 1).await, chats(other, 1).await), ((0, 0), vec![(9, 1, true)]));
        // Before the first message: no chat, which is silent as well.
        client.put("/v1/users/9/blocks/7", &json!({})).await.ok();
        assert_eq!(mute(other, 9, 7, false).await["level"], "none");
        assert_eq!(chats(client, 9).await.len(), 2);
        let (recount, mut found) = (headmark::maintenance::recount::Recount { user: None, dry_run: true }, Vec::new());
        recount.run(&nodes[0].app.state().db, |difference| found.push(difference.to_string())).await.unwrap();
        assert_eq!(found, Vec::<String>::new());
        Node::stop_all(nodes).await;
    }

    async fn the_migration_takes_chats_with_blocked_users_out_of_the_sums(world: World) {
        let sql = match world.tier {
            Tier::Embedded => include_str!("../../../migrations/sqlite/0012_follower_badges.sql"),
            Tier::Server => include_str!("../../../migrations/postgres/0012_follower_badges.sql"),
        };
        let (_, update) = sql.split_once("update users").unwrap();
        // A later migration renames the column.
        let update = update.replace("d.muted", "d.level");
        let node = world.node().await;
        let client = &node.client;
        for (sender, receiver) in [(1, 9), (2, 9), (1, 8)] {
            send(client, sender, receiver, "a").await;
        }
        client.put("/v1/users/9/blocks/1", &json!({})).await.ok();
        // As an earlier version left them.
        let mut hand = Hand::on(&world).await;
        hand.run("update users set direct_unread = 2, direct_chats = 2 where user_id = 9").await;
        assert_eq!((sums(&node, 9).await, sums(&node, 8).await), ((2, 2), (1, 1)));
        let revisions = [client.summary(9).await["revision"].as_i64().unwrap(), client.summary(8).await["revision"].as_i64().unwrap()];
        hand.run(&format!("update users {update}")).await;
        assert_eq!((sums(&node, 9).await, sums(&node, 8).await), ((1, 1), (1, 1)));
        let shown: Vec<(i64,)> = {
            static REVISIONS: Statement = Statement::new("select revision from users where user_id in (8, 9) order by user_id desc", &[]);
            node.app.state().db.fetch(&REVISIONS, &[]).await.unwrap()
        };
        assert_eq!(shown, [(revisions[0] + 1,), (revisions[1],)], "of those whose number changed");
        node.stop().await;
    }

    async fn chats_muted_ahead_are_bounded(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let mutes = (1..=1000).map(|peer| mute(client, 2000, peer, true));
        futures_util::StreamExt::collect::<Vec<_>>(futures_util::StreamExt::buffer_unordered(futures_util::stream::iter(mutes), 64)).await;
        client.put("/v1/users/2000/directs/1001/settings", &json!({"level": "none"})).await.problem(409, "too_many");
        // Who unmutes strangers may mute others: nothing is left of the former.
        for peer in 1..=3 {
            mute(client, 2000, peer, false).await;
        }
        let rows = async || Hand::on(&world).await.text("select cast(count(*) as text) from directs where user_id = 2000").await;
        assert_eq!(rows().await, "997");
        for peer in 1..=3 {
            mute(client, 2000, peer, true).await;
        }
        client.put("/v1/users/2000/directs/1001/settings", &json!({"level": "none"})).await.problem(409, "too_many");
        send(client, 1, 2000, "a").await;
        mute(client, 2000, 1001, true).await;
        let items = client.walk("/v1/users/2000/directs", 100).await;
        assert_eq!((items.len(), &items[0]["peer_id"], sums(&node, 2000).await, rows().await), (1, &json!("1"), (0, 0), "1001".to_owned()));
        node.stop().await;
    }

    async fn the_list_is_a_poll_of_pages(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        for peer in 1..=7 {
            send(client, peer, 50, "a").await;
        }
        client.post("/v1/users/3/inbox", &message(50, "re", "re")).await.ok();
        let path = "/v1/users/50/directs?limit=3";
        let first = client.get(path).await;
        let next = first.body["next_cursor"].as_str().unwrap();
        assert_eq!(first.header("link"), format!("</v1/users/50/directs?limit=3&cursor={next}>; rel=\"next\""));
        assert_eq!(chats(client, 50).await.iter().map(|(peer, ..)| *peer).collect::<Vec<_>>(), [3, 7, 6, 5, 4, 2, 1]);
        let tag = first.header("etag").to_owned();
        for node in &nodes {
            let same = node.client.get_if_changed(path, &tag).await;
            assert_eq!((same.status.as_u16(), same.text.as_str(), same.header("etag")), (304, "", tag.as_str()));
        }
        let polls: Vec<_> = nodes
            .iter()
            .map(|node| {
                let request = node.client.request(reqwest::Method::GET, "/v1/users/50/directs?limit=3&wait=60").header("if-none-match", &tag);
                tokio::spawn(Client::send(request))
            })
            .collect();
        for node in &nodes {
            eventually("it waits", async || node.app.state().polling.waiting.taken() == 1).await;
        }
        let written = Instant::now();
        send(client, 1, 50, "b").await;
        for poll in polls {
            assert_eq!(poll.await.unwrap().ok()["items"][0]["peer_id"], "1");
        }
        assert!(written.elapsed() < Duration::from_secs(4), "{:?}", written.elapsed());
        for (query, name) in [("limit=0", "limit"), ("wait=61", "wait"), ("after=1", "after")] {
            assert_eq!(client.get(&format!("/v1/users/50/directs?{query}")).await.pointers(400, "invalid_query"), [name]);
        }
        client.get("/v1/users/50/directs?cursor=x").await.problem(400, "invalid_cursor");
        let nobody = client.get("/v1/users/51/directs").await;
        insta::assert_snapshot!(nobody.text, @r#"{"items":[],"next_cursor":null}"#);
        Node::stop_all(nodes).await;
    }
}
