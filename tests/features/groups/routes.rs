//! What each route promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::{chats, join, leave, make, read, read_one, recall, send, shown};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Hand, eventually};

both_tiers! {
    async fn a_group_from_its_making_to_its_reading(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let made = client.put("/v1/groups/9", &json!({"delivery": "read"})).await;
        insta::assert_snapshot!(made.text, @r#"{"group_id":"9","delivery":"read","receipts":true,"members":0,"head":0,"created_at":"2027-01-15T08:00:00.000Z"}"#);
        assert_eq!(made.status, 201);
        let joined = join(client, 9, 1).await;
        insta::assert_snapshot!(joined.text, @r#"{"user_id":"1","ordinal":1,"joined_at":"2027-01-15T08:00:00.000Z"}"#);
        assert_eq!(joined.status, 201);
        assert_eq!(join(client, 9, 1).await.status, 200, "joining again while a member changes nothing");
        let many = client.post("/v1/groups/9/members", &json!({"user_ids": [3, "2", 1]})).await;
        insta::assert_snapshot!(
            many.text,
            @r#"{"items":[{"user_id":"3","ordinal":2,"joined_at":"2027-01-15T08:00:00.000Z"},{"user_id":"2","ordinal":3,"joined_at":"2027-01-15T08:00:00.000Z"},{"user_id":"1","ordinal":1,"joined_at":"2027-01-15T08:00:00.000Z"}]}"#
        );
        at.fetch_add(1500, Ordering::SeqCst);
        let sent = send(client, 9, 1, "a").await;
        insta::assert_snapshot!(sent.text, @r#"{"group_id":"9","seq":1,"sent_at":"2027-01-15T08:00:01.500Z","revision":2}"#);
        assert_eq!(sent.status, 201);
        let again = send(client, 9, 1, "a").await;
        assert_eq!((again.status.as_u16(), &again.text), (200, &sent.text), "the same client_id again");
        assert_eq!(send(client, 9, 2, "a").await.ok()["seq"], 2, "another sender's is another message");
        send(client, 9, 2, "b").await.ok();
        insta::assert_snapshot!(
            client.get("/v1/groups/9/messages?limit=2").await.text,
            @r#"{"items":[{"seq":1,"sender_id":"1","content":"it is a","sent_at":"2027-01-15T08:00:01.500Z"},{"seq":2,"sender_id":"2","content":"it is a","sent_at":"2027-01-15T08:00:01.500Z"}],"next_after":2,"has_more":true,"head":3}"#
        );
        let summaries: Vec<_> = join_all([1, 2, 3].map(|user| client.summary(user))).await.iter().map(|summary| (summary["chats"].to_string(), summary["total"].clone())).collect();
        insta::assert_debug_snapshot!(summaries.iter().map(|(chats, total)| format!("{chats} {total}")).collect::<Vec<_>>(), @r#"
        [
            "{\"directs\":0,\"groups\":1,\"mentions\":0,\"unread\":2} 2",
            "{\"directs\":0,\"groups\":0,\"mentions\":0,\"unread\":0} 0",
            "{\"directs\":0,\"groups\":1,\"mentions\":0,\"unread\":3} 3",
        ]
        "#);
        insta::assert_snapshot!(
            client.get("/v1/users/1/groups").await.text,
            @r#"{"items":[{"group_id":"9","unread":2,"mentions":0,"head":3,"read_seq":1,"first_unread_seq":2,"last_access_at":"2027-01-15T08:00:01.500Z","level":"all"}],"next_cursor":null}"#
        );
        at.fetch_add(1500, Ordering::SeqCst);
        let part = read(client, 3, 9, Some(2)).await;
        insta::assert_snapshot!(part.text, @r#"{"group_id":"9","unread":1,"read_seq":2,"head":3,"revision":3}"#);
        assert_eq!(read(client, 3, 9, Some(2)).await.text, part.text, "a repeat changes nothing");
        assert_eq!(read(client, 3, 9, Some(1)).await.text, part.text, "marks never go back");
        assert_eq!(read(client, 3, 9, Some(99)).await.ok()["read_seq"], 3, "clamped to the head");
        assert_eq!(client.get("/v1/users/3/groups").await.ok()["items"][0]["last_access_at"], "2027-01-15T08:00:03.000Z");
        assert_eq!(client.put("/v1/groups/9", &json!({"receipts": false})).await.ok()["receipts"], false);
        insta::assert_snapshot!(
            client.get("/v1/groups/9").await.text,
            @r#"{"group_id":"9","delivery":"read","receipts":false,"members":3,"head":3,"created_at":"2027-01-15T08:00:00.000Z"}"#
        );
        node.stop().await;
        let node = world.node().await;
        assert_eq!(shown(&node.client, 1).await, [(9, (2, 3))].into(), "it is there after a restart");
        node.stop().await;
    }

    async fn history_and_unread_begin_at_the_latest_join(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 5, &[1, 2]).await;
        for n in 0..3 {
            send(client, 5, 1, &format!("m{n}")).await.ok();
        }
        assert_eq!(join(client, 5, 3).await.ok()["ordinal"], 3);
        assert_eq!(shown(client, 3).await, [(5, (0, 3))].into());
        send(client, 5, 1, "m3").await.ok();
        assert_eq!((shown(client, 3).await, chats(client, 3).await["unread"].clone()), ([(5, (1, 4))].into(), json!(1)));
        assert_eq!((leave(client, 5, 3).await, leave(client, 5, 3).await), (204, 204));
        assert!(shown(client, 3).await.is_empty(), "it is no longer among the user's groups");
        assert_eq!(chats(client, 3).await, json!({"unread": 0, "mentions": 0, "groups": 0, "directs": 0}));
        read(client, 3, 5, None).await.problem(403, "forbidden");
        send(client, 5, 3, "x").await.problem(403, "forbidden");
        send(client, 5, 1, "m4").await.ok();
        let again = join(client, 5, 3).await;
        assert_eq!((again.status.as_u16(), again.ok()["ordinal"].clone()), (201, json!(3)), "a member who rejoins keeps the ordinal");
        assert_eq!(shown(client, 3).await, [(5, (0, 5))].into());
        send(client, 5, 1, "m5").await.ok();
        assert_eq!(shown(client, 3).await, [(5, (1, 6))].into());
        let members: Vec<_> = client.walk("/v1/groups/5/members", 2).await.iter().map(|of| (of["user_id"].clone(), of["ordinal"].clone())).collect();
        assert_eq!(members, [(json!("1"), json!(1)), (json!("2"), json!(2)), (json!("3"), json!(3))]);
        node.stop().await;
    }

    async fn events_tell_who_joins_and_leaves(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        make(client, 9, &[2, 3]).await;
        leave(client, 9, 2).await;
        leave(client, 9, 2).await;
        let mut told = Vec::new();
        eventually("they are numbered", async || {
            let page = client.get("/v1/events").await.ok();
            told = page["items"].as_array().unwrap().iter().map(|event| (event["type"].clone(), event["data"]["user_id"].clone(), event["data"]["member"].clone())).collect();
            told.len() >= 4
        })
        .await;
        let wanted = [("1", true), ("2", true), ("3", true), ("2", false)];
        assert_eq!(told, wanted.map(|(user, member)| (json!("member"), json!(user), json!(member))));
        node.stop().await;
    }

    async fn a_recalled_message_is_unread_for_nobody(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        make(client, 7, &[1, 2, 3]).await;
        for n in 1..=4 {
            send(client, 7, 1, &format!("m{n}")).await.ok();
        }
        read(client, 2, 7, Some(2)).await.ok();
        for _ in 0..2 {
            assert_eq!((recall(client, 7, 2).await.status.as_u16(), recall(other, 7, 3).await.status.as_u16()), (204, 204));
        }
        for node in [client, other] {
            eventually("each node knows of both", async || (shown(node, 2).await, shown(node, 3).await) == ([(7, (1, 4))].into(), [(7, (2, 4))].into())).await;
        }
        let items = client.get("/v1/groups/7/messages?after=1&limit=2").await.ok()["items"].clone();
        assert_eq!(items, json!([{"seq": 2, "sender_id": "1", "recalled": true}, {"seq": 3, "sender_id": "1", "recalled": true}]));
        recall(client, 7, 5).await.problem(404, "not_found");
        send(client, 7, 1, "m2").await.problem(410, "gone");
        read_one(client, 3, 7, 2).await.problem(410, "gone");
        assert_eq!(read_one(client, 3, 7, 4).await.ok()["unread"], 1);
        assert_eq!(read(client, 3, 7, Some(1)).await.ok()["unread"], 0);
        crate::support::Node::stop_all(nodes).await;
    }

    async fn many_recalled_messages_are_counted_from_the_rows(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 7, &[1, 2, 3]).await;
        for n in 1..=450 {
            send(client, 7, 1, &format!("m{n}")).await.ok();
        }
        read_one(client, 3, 7, 5).await.ok();
        for n in 1..=215 {
            assert_eq!(recall(client, 7, 2 * n).await.status, 204);
        }
        assert_eq!(shown(client, 2).await, [(7, (235, 450))].into());
        assert_eq!(chats(client, 2).await["unread"], 235);
        assert_eq!(shown(client, 3).await, [(7, (234, 450))].into(), "one of them was read alone");
        assert_eq!(read_one(client, 2, 7, 3).await.ok()["unread"], 234);
        assert_eq!(read(client, 2, 7, Some(9)).await.ok()["unread"], 230);
        assert_eq!(read(client, 2, 7, Some(449)).await.ok()["unread"], 1);
        node.stop().await;
    }

    async fn what_is_wrong_is_refused_with_its_place(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1]).await;
        for (body, pointer) in [
            (json!({"delivery": "push"}), "/delivery"),
            (json!({"delivery": null}), "/delivery"),
            (json!({"receipts": "yes"}), "/receipts"),
            (json!({"name": "x"}), "/name"),
        ] {
            assert_eq!(client.put("/v1/groups/9", &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        for (body, pointer) in [
            (json!({"user_ids": []}), "/user_ids"),
            (json!({"user_ids": [1, 0]}), "/user_ids/1"),
            (json!({"user_ids": [4, 5, "4"]}), "/user_ids/2"),
            (json!({"user_ids": (1..=1001).collect::<Vec<_>>()}), "/user_ids"),
        ] {
            assert_eq!(client.post("/v1/groups/9/members", &body).await.pointers(422, "invalid_body"), [pointer]);
        }
        for (body, pointer) in [
            (json!({"sender_id": 1, "client_id": "a b", "content": "x"}), "/client_id"),
            (json!({"sender_id": 1, "client_id": "a", "content": ""}), "/content"),
            (json!({"sender_id": 1, "client_id": "a", "content": "x".repeat(10_001)}), "/content"),
        ] {
            assert_eq!(client.post("/v1/groups/9/messages", &body).await.pointers(422, "invalid_body"), [pointer]);
        }
        assert_eq!(client.get("/v1/groups/0").await.pointers(400, "invalid_path"), ["group"]);
        for query in ["after=-1", "after=x", "limit=0", "limit=101", "cursor=1"] {
            let name = query.split('=').next().unwrap();
            assert_eq!(client.get(&format!("/v1/groups/9/messages?{query}")).await.pointers(400, "invalid_query"), [name]);
        }
        client.get("/v1/users/1/groups?cursor=zzz").await.problem(400, "invalid_cursor");
        assert_eq!(client.get("/v1/users/1/groups?wait=61").await.pointers(400, "invalid_query"), ["wait"]);
        assert_eq!(read(client, 1, 9, Some(-1)).await.pointers(422, "invalid_body"), ["/up_to"]);
        for seq in [1, 99] {
            read_one(client, 1, 9, seq).await.problem(404, "not_found");
        }
        for reply in [
            client.get("/v1/groups/8").await,
            join(client, 8, 1).await,
            client.delete("/v1/groups/8/members/1").await,
            client.post("/v1/groups/8/members", &json!({"user_ids": [1]})).await,
            send(client, 8, 1, "a").await,
            client.get("/v1/groups/8/messages").await,
            client.get("/v1/groups/8/members").await,
            recall(client, 8, 1).await,
            read(client, 1, 8, None).await,
            read_one(client, 1, 8, 1).await,
            client.put("/v1/users/1/groups/8/settings", &json!({"level": "none"})).await,
        ] {
            reply.problem(404, "not_found");
        }
        node.stop().await;
    }

    async fn members_see_their_groups_and_nobody_elses(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        let [one, two, three] = [1, 2, 3].map(|user| node.user(user));
        make(&service, 9, &[1, 2]).await;
        send(&one, 9, 1, "a").await.ok();
        send(&one, 9, 2, "b").await.problem(403, "forbidden");
        send(&three, 9, 3, "c").await.problem(403, "forbidden");
        let unnamed = [json!({"client_id": "x", "content": "x"}), json!({"sender_id": "me", "client_id": "y", "content": "y"})];
        for (body, seq) in unnamed.iter().zip([2, 3]) {
            assert_eq!(one.post("/v1/groups/9/messages", body).await.ok()["seq"], seq);
            three.post("/v1/groups/9/messages", body).await.problem(403, "forbidden");
            assert_eq!(service.post("/v1/groups/9/messages", body).await.pointers(422, "invalid_body"), ["/sender_id"]);
        }
        let null = json!({"sender_id": null, "client_id": "z", "content": "z"});
        assert_eq!(one.post("/v1/groups/9/messages", &null).await.pointers(422, "invalid_body"), ["/sender_id"]);
        let sent = service.get("/v1/groups/9/messages").await.ok();
        assert_eq!([1, 2].map(|at: usize| sent["items"][at]["sender_id"].clone()), ["1", "1"]);
        for path in ["/v1/groups/9", "/v1/groups/9/messages", "/v1/groups/9/members"] {
            two.get(path).await.ok();
            service.get(path).await.ok();
            three.get(path).await.problem(403, "forbidden");
            node.client.get(path).await.problem(401, "unauthorized");
        }
        read(&two, 2, 9, None).await.ok();
        read(&two, 1, 9, None).await.problem(403, "forbidden");
        assert_eq!(shown(&two, 2).await.len(), 1);
        two.get("/v1/users/1/groups").await.problem(403, "forbidden");
        for reply in [
            join(&three, 9, 3).await,
            one.put("/v1/groups/9", &json!({})).await,
            one.delete("/v1/groups/9/members/2").await,
            recall(&two, 9, 1).await,
            recall(&three, 9, 1).await,
            recall(&three, 9, 7).await,
        ] {
            reply.problem(403, "forbidden");
        }
        recall(&two, 9, 7).await.problem(404, "not_found");
        let told = async |seq: i64| recall(&three, 9, seq).await.problem(403, "forbidden")["detail"].clone();
        assert_eq!(told(1).await, told(7).await, "whether there is such a message is not for strangers");
        join(&service, 9, 3).await.ok();
        assert_eq!(three.get("/v1/groups/9/messages").await.ok()["items"], json!([]), "what was sent before is not for them");
        send(&one, 9, 1, "d").await.ok();
        assert_eq!(three.get("/v1/groups/9/messages").await.ok()["items"].as_array().unwrap().len(), 1);
        assert_eq!(service.get("/v1/groups/9/messages").await.ok()["items"].as_array().unwrap().len(), 4);
        assert_eq!(recall(&one, 9, 1).await.status, 204);
        assert_eq!(recall(&service, 9, 2).await.status, 204);
        let last = send(&two, 9, 2, "e").await.ok()["seq"].as_i64().unwrap();
        service.delete("/v1/groups/9/members/2").await;
        assert_eq!(recall(&two, 9, 1).await.problem(403, "forbidden")["detail"], recall(&two, 9, 7).await.problem(403, "forbidden")["detail"]);
        assert_eq!(recall(&two, 9, last).await.status, 204, "one's own, also after leaving");
        node.stop().await;
    }

    /// Whoever names groups, posts or channels that there are not leaves nothing of them.
    async fn what_is_refused_leaves_no_head(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        send(client, 9, 1, "a").await.ok();
        let heads = async || Hand::on(&world).await.text("select cast(count(*) as text) from heads").await;
        let before = heads().await;
        for group in 1000..1010 {
            send(client, group, 1, "a").await.problem(404, "not_found");
            recall(client, group, 1).await.problem(404, "not_found");
            join(client, group, 1).await.problem(404, "not_found");
        }
        client.delete("/v1/users/5/posts/none").await.problem(404, "not_found");
        assert_eq!(heads().await, before);
        send(client, 9, 2, "b").await.ok();
        node.stop().await;
    }

    /// Its head has no number yet, and is the lock of its members all the same.
    async fn writes_to_a_group_without_messages_come_one_after_the_other(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        for group in 1000..1030 {
            make(first, group, &[]).await;
            let put = async |client: &Client, receipts: bool| {
                client.put(&format!("/v1/groups/{group}"), &json!({"receipts": receipts})).await.ok();
            };
            let enter = async |client: &Client, user: i64| assert!(join(client, group, user).await.status.is_success());
            tokio::join!(enter(first, 1), put(last, false), enter(last, 2), put(first, true), enter(first, 3), put(last, false));
            tokio::join!(put(first, true), enter(last, 4), async { assert_eq!(leave(first, group, 1).await, 204) });
            enter(last, 5).await;
            let members = last.walk(&format!("/v1/groups/{group}/members"), 10).await.len();
            assert_eq!((last.get(&format!("/v1/groups/{group}")).await.ok()["members"].clone(), members), (json!(4), 4), "{group}");
        }
        crate::support::Node::stop_all(nodes).await;
    }

    async fn a_poll_of_the_groups_has_a_tag_and_waits(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (nodes[0].client.clone(), nodes.last().unwrap().client.clone());
        for group in 1..=5 {
            make(&client, group, &[1, 2]).await;
        }
        let page = client.get("/v1/users/1/groups?limit=2").await;
        assert!(page.header("link").contains("rel=\"next\"") && page.header("cache-control").contains("no-cache"));
        let tag = page.header("etag").to_owned();
        assert_eq!(client.get_if_changed("/v1/users/1/groups?limit=2", &tag).await.status, 304);
        let tag = client.get("/v1/users/1/groups").await.header("etag").to_owned();
        let waiting = tokio::spawn({
            let (other, tag) = (other.clone(), tag.clone());
            async move { other.get_if_changed("/v1/users/1/groups?wait=30", &tag).await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        send(&client, 4, 2, "a").await.ok();
        let woken = tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("it is woken").unwrap();
        assert_eq!(woken.status, 200);
        assert_eq!(woken.body["items"][3]["unread"], 1);
        // A node that is behind the tag of another asks first.
        let newer = woken.header("etag").to_owned();
        assert_eq!(client.get_if_changed("/v1/users/1/groups", &newer).await.status, 304);
        assert_eq!(client.get_if_changed("/v1/users/1/groups?wait=0", &tag).await.status, 200);
        crate::support::Node::stop_all(nodes).await;
    }
}
