//! Groups that are deleted.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{chats, make, send};
use crate::both_tiers;
use crate::maintenance::import::headmark;
use crate::maintenance::recount::assert_clean;
use crate::support::{Client, Hand, Node, World, eventually, eventually_within};

/// Deletes a group. Where to ask for the operation.
pub(crate) async fn delete(client: &Client, group: i64) -> String {
    let reply = client.delete(&format!("/v1/groups/{group}")).await;
    assert_eq!((reply.status.as_u16(), &reply.body["status"]), (202, &json!("pending")), "{}", reply.text);
    let location = reply.header("location").to_owned();
    assert_eq!(location, format!("/v1/operations/{}", reply.body["operation_id"].as_str().unwrap()));
    location
}

pub(crate) async fn done(client: &Client, location: &str) {
    eventually_within(60, "the group is removed", async || client.get(location).await.ok()["status"] == "done").await;
}

/// Everything that names the group is refused.
async fn assert_gone(client: &Client) {
    let body = json!({"sender_id": 1, "client_id": "late", "content": "late"});
    let requests = [
        (Method::GET, "/v1/groups/9", None),
        (Method::PUT, "/v1/groups/9", Some(json!({}))),
        (Method::PUT, "/v1/groups/9/members/1", Some(json!({}))),
        (Method::PUT, "/v1/groups/9/members/77", Some(json!({}))),
        (Method::DELETE, "/v1/groups/9/members/1", None),
        (Method::POST, "/v1/groups/9/members", Some(json!({"user_ids": [77]}))),
        (Method::GET, "/v1/groups/9/members", None),
        (Method::POST, "/v1/groups/9/messages", Some(body)),
        (Method::GET, "/v1/groups/9/messages", None),
        (Method::GET, "/v1/groups/9/messages/changes?after=0", None),
        (Method::DELETE, "/v1/groups/9/messages/1", None),
        (Method::GET, "/v1/groups/9/messages/1/receipts", None),
        (Method::GET, "/v1/groups/9/receipts?from=1&to=2", None),
        (Method::POST, "/v1/users/1/groups/9/read", Some(json!({}))),
        (Method::POST, "/v1/users/1/groups/9/messages/1/read", Some(json!({}))),
        (Method::POST, "/v1/users/1/groups/9/unread", Some(json!({"from": 1}))),
        (Method::PUT, "/v1/users/1/groups/9/settings", Some(json!({"level": "none"}))),
        (Method::GET, "/v1/users/1/groups/9", None),
        (Method::GET, "/v1/users/1/chats/group/9", None),
        (Method::POST, "/v1/users/1/chats/read", Some(json!({"up_to": {"groups": {"9": 1}}}))),
    ];
    for (method, path, body) in requests {
        let mut request = client.request(method.clone(), path);
        if let Some(body) = &body {
            request = request.json(body);
        }
        let reply = Client::send(request).await;
        assert_eq!((reply.status.as_u16(), &reply.body["code"]), (410, &json!("gone")), "{method} {path}: {}", reply.text);
    }
}

/// Nobody has anything of the group.
async fn assert_unseen(client: &Client, users: &[i64]) {
    for user in users {
        let summary = client.summary(*user).await;
        assert_eq!(
            (&summary["total"], &summary["chats"]["groups"], &summary["chats"]["mentions"]),
            (&json!(0), &json!(0), &json!(0)),
            "{summary}"
        );
        assert_eq!(client.get(&format!("/v1/users/{user}/badges/explain")).await.ok()["chats"]["groups"], json!([]));
        for list in ["groups", "chats"] {
            assert_eq!(client.get(&format!("/v1/users/{user}/{list}")).await.ok()["items"], json!([]), "{list} of {user}");
        }
        client.post(&format!("/v1/users/{user}/chats/read"), &json!({})).await.ok();
    }
}

const TABLES: [&str; 6] = ["memberships", "group_messages", "group_changes", "delivery_jobs", "group_deliveries", "group_log_members"];

async fn assert_no_rows(world: &World) {
    let mut hand = Hand::on(world).await;
    for table in TABLES {
        assert_eq!(hand.text(&format!("select cast(count(*) as text) from {table}")).await, "0", "{table}");
    }
    assert_eq!(hand.text("select cast(sum(chat_groups) as text) from users").await, "0");
}

pub(crate) async fn inbox(client: &Client, user: i64) -> Vec<Value> {
    client.get(&format!("/v1/users/{user}/inbox?after=0&limit=100")).await.ok()["items"].as_array().unwrap().clone()
}

both_tiers! {
    async fn a_deleted_group_is_gone_for_everybody(world: World) {
        let nodes = world.nodes().await;
        let (client, last) = (&nodes[0].client, &nodes[nodes.len() - 1]);
        client.delete("/v1/groups/9").await.problem(404, "not_found");
        make(client, 9, &[1, 2, 3]).await;
        for n in 0..3 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        let all = json!({"sender_id": 2, "client_id": "all", "content": "all", "mention_all": true});
        client.post("/v1/groups/9/messages", &all).await.ok();
        assert_eq!(client.delete("/v1/groups/9/messages/2").await.status, 204);
        client.post("/v1/users/3/groups/9/unread", &json!({"from": 1})).await.ok();
        assert_eq!(client.delete("/v1/groups/9/members/2").await.status, 204);
        client.put("/v1/groups/9/members/2", &json!({})).await.ok();
        assert_eq!((chats(client, 3).await["unread"].clone(), chats(client, 1).await["mentions"].clone()), (json!(3), json!(1)));

        let location = delete(client, 9).await;
        assert_gone(client).await;
        assert_unseen(client, &[1, 2, 3]).await;
        last.app.state().heads.catch_up().await.unwrap();
        assert_unseen(&last.client, &[1, 2, 3]).await;
        assert_gone(&last.client).await;
        assert_eq!(delete(&last.client, 9).await, location, "a repeat is the same");
        done(client, &location).await;
        for node in &nodes {
            assert_gone(&node.client).await;
            assert_unseen(&node.client, &[1, 2, 3]).await;
            assert_eq!(delete(&node.client, 9).await, location);
        }
        assert_no_rows(&world).await;
        assert_clean(&nodes[0]).await;
        client.delete("/v1/groups/Nine").await.problem(400, "invalid_path");
        client.delete("/v1/groups/9?now=1").await.problem(400, "invalid_query");
        Node::stop_all(nodes).await;
    }

    async fn a_deletion_that_is_repeated_late_is_done(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1]).await;
        let location = delete(client, 9).await;
        done(client, &location).await;
        // As after the time for which it is kept.
        Hand::on(&world).await.run("delete from removals").await;
        assert_eq!(delete(client, 9).await, location, "a repeat is the same");
        assert_eq!(client.get(&location).await.ok()["status"], "done");
        node.stop().await;
    }

    async fn a_group_without_a_message_goes_too(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1]).await;
        assert_eq!(client.get("/v1/users/1/chats").await.ok()["items"].as_array().unwrap().len(), 1);
        let tag = client.get("/v1/users/1/groups").await.header("etag").to_owned();
        let location = delete(client, 9).await;
        assert_ne!(client.get_if_changed("/v1/users/1/groups", &tag).await.status, 304);
        assert_unseen(client, &[1]).await;
        done(client, &location).await;
        make(client, 10, &[1]).await;
        send(client, 10, 1, "m").await.ok();
        assert_eq!(client.get("/v1/users/1/groups").await.ok()["items"][0]["group_id"], "10");
        assert_clean(&node).await;
        node.stop().await;
    }

    async fn what_it_put_into_inboxes_becomes_a_tombstone(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.put("/v1/groups/9", &json!({"delivery": "write"})).await.ok();
        client.post("/v1/groups/9/members", &json!({"user_ids": [1, 2]})).await.ok();
        for n in 0..3 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        eventually("all are delivered", async || inbox(client, 2).await.len() == 3).await;
        let tag = client.get("/v1/users/2/inbox?after=0").await.header("etag").to_owned();
        let location = delete(client, 9).await;
        done(client, &location).await;
        for user in [1, 2] {
            let items = inbox(client, user).await;
            assert_eq!(items.len(), 3);
            for item in items {
                assert!(item["recalled"] == true && item.get("content").is_none() && item["group_id"] == "9", "{item}");
            }
        }
        assert_ne!(client.get_if_changed("/v1/users/2/inbox?after=0", &tag).await.status, 304);
        assert_clean(&node).await;
        node.stop().await;
    }

    async fn members_are_told_to_have_left(world: World) {
        let node = world.node().await;
        make(&node.client, 9, &[1, 2, 3]).await;
        assert_eq!(node.client.delete("/v1/groups/9/members/3").await.status, 204);
        let location = delete(&node.client, 9).await;
        done(&node.client, &location).await;
        eventually("each once", async || {
            let events = node.client.get("/v1/events?types=member&limit=100").await.ok();
            let left = events["items"].as_array().unwrap().iter().filter(|event| event["data"]["member"] == false);
            let mut left: Vec<_> = left.map(|event| event["data"]["user_id"].as_str().unwrap().to_owned()).collect();
            left.sort_unstable();
            left == ["1", "2", "3"]
        })
        .await;
        node.stop().await;
    }

    async fn an_import_does_not_bring_it_back(world: World) {
        let node = world.node().await;
        make(&node.client, 9, &[1]).await;
        let location = delete(&node.client, 9).await;
        done(&node.client, &location).await;
        node.stop().await;
        let log = b"timestamp,channel,sender,content\n1700000000,9,1,hello\n1700000001,10,1,hello\n".to_vec();
        let ran = headmark(&world, &["import", "messages", "-"], true, &[], log).await;
        assert!(ran.out.contains("refused           1\n"), "{ran:?}");
        let node = world.node().await;
        node.client.get("/v1/groups/9").await.problem(410, "gone");
        assert_eq!(node.client.get("/v1/groups/10").await.ok()["head"], 1);
        node.stop().await;
    }

    /// Neither does one into a channel with a name, whichever lines of it come.
    async fn an_import_does_not_bring_a_channel_back(world: World) {
        let file = world.dir.join("members.csv");
        std::fs::write(&file, "timestamp,channel,user,event\n1699999999,quiet,2,join\n").unwrap();
        let log = "timestamp,channel,sender,content\n1700000000,town,1,hello\n".to_owned();
        let grown = format!("{log}1700000001,town,1,again\n");
        let import = async |log: &str, more: &[&str]| {
            let args = ["import", "messages", "-", "--first-group-id", "9", "--members", file.to_str().unwrap()];
            headmark(&world, &[args.as_slice(), more].concat(), true, &[], log.as_bytes().to_vec()).await
        };
        assert_eq!(import(&log, &[]).await.status, Some(0));
        let node = world.node().await;
        for group in [9, 10] {
            let location = delete(&node.client, group).await;
            done(&node.client, &location).await;
        }
        node.stop().await;
        for (log, more, refused) in [(&log, &[][..], 2), (&grown, &[], 3), (&grown, &["--merge"], 3)] {
            let ran = import(log, more).await;
            assert!(ran.out.contains(&format!("refused           {refused}\n")), "{ran:?}");
        }
        let groups = Hand::on(&world).await.text("select cast(count(*) as text) from chat_groups").await;
        assert_eq!(groups, "2", "and makes no other group");
        assert_no_rows(&world).await;
    }

    /// A log may tell of users who are no members.
    async fn what_imports_have_taken_of_its_log_goes_too(world: World) {
        let file = world.dir.join("members.csv");
        std::fs::write(&file, "timestamp,channel,user,event\n50,5,1,leave\n50,6,1,leave\n").unwrap();
        let log = b"timestamp,channel,sender,content\n100,5,2,x\n".to_vec();
        let ran = headmark(&world, &["import", "messages", "-", "--members", file.to_str().unwrap()], true, &[], log).await;
        assert_eq!(ran.status, Some(0), "{ran:?}");
        let mut hand = Hand::on(&world).await;
        // More than one batch looks at.
        hand.run("insert into group_log_members (user_id, group_id, at_second, events)
            with recursive ids (n) as (select 10 union all select n + 1 from ids where n < 2500)
            select n, case when n % 2 = 0 then 5 else 6 end, 50, '' from ids")
        .await;
        let node = world.node().await;
        let location = delete(&node.client, 5).await;
        done(&node.client, &location).await;
        let left = hand.text("select cast(min(group_id) as text) || ' ' || cast(count(*) as text) from group_log_members").await;
        assert_eq!(left, "6 1246");
        node.stop().await;
    }

    /// A node of 0.1.0 has no step for them: it goes on with the last one.
    async fn an_older_node_leaves_them_to_the_last_step(world: World) {
        let mut doomed = world.process(&[], &[("FAILPOINTS", "removal::before_group_messages=return")]).await;
        let client = doomed.client.clone();
        client.put("/v1/groups/5", &json!({})).await.ok();
        drop(Client::try_send(client.request(Method::DELETE, "/v1/groups/5")).await);
        assert!(!doomed.ended().await.success());
        let mut hand = Hand::on(&world).await;
        // More than one batch looks at.
        hand.run("insert into group_log_members (user_id, group_id, at_second, events)
            with recursive ids (n) as (select 10 union all select n + 1 from ids where n < 2500)
            select n, 5, 50, '' from ids")
        .await;
        hand.run("update removals set step = 'group'").await;
        let node = world.node().await;
        let location = delete(&node.client, 5).await;
        done(&node.client, &location).await;
        assert_eq!(hand.text("select cast(count(*) as text) from group_log_members").await, "0");
        node.stop().await;
    }

    async fn kill_at_each_step_of_a_deletion(world: World) {
        let steps = ["group_messages", "delivery_jobs", "group_members", "memberships", "log_members", "group"];
        let mut groups = Vec::new();
        for (n, step) in steps.iter().enumerate() {
            let group = 20 + i64::try_from(n).unwrap();
            let mut doomed = world.process(&[], &[("FAILPOINTS", &format!("removal::after_{step}=return"))]).await;
            let client = doomed.client.clone();
            client.put(&format!("/v1/groups/{group}"), &json!({"delivery": "write"})).await.ok();
            client.post(&format!("/v1/groups/{group}/members"), &json!({"user_ids": [1, 2]})).await.ok();
            for n in 0..3 { send(&client, group, 1, &format!("m{n}")).await.ok(); }
            let request = client.request(Method::DELETE, &format!("/v1/groups/{group}"));
            drop(Client::try_send(request).await);
            assert!(!doomed.ended().await.success(), "{step}");
            groups.push(group);
        }
        let survivor = world.node().await;
        let client = &survivor.client;
        for group in groups {
            let location = delete(client, group).await;
            done(client, &location).await;
        }
        assert_unseen(client, &[1, 2]).await;
        assert_no_rows(&world).await;
        assert!(inbox(client, 2).await.iter().all(|item| item["recalled"] == true));
        assert_clean(&survivor).await;
        survivor.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_members_go_in_pages_while_others_write() {
    let world = World::new(crate::support::Tier::Server).await;
    let nodes = world.nodes().await;
    let client = &nodes[0].client;
    let members: Vec<i64> = (1..=350).collect();
    make(client, 9, &members).await;
    make(client, 10, &members).await;
    send(client, 9, 1, "m").await.ok();
    let location = delete(client, 9).await;
    join_all((1..=40).map(async |n| send(&nodes[nodes.len() - 1].client, 10, n, "m").await.ok())).await;
    done(client, &location).await;
    for user in [41, 200, 350] {
        eventually("the other group counts", async || chats(client, user).await["unread"] == 40).await;
    }
    for node in &nodes {
        assert_clean(node).await;
    }
    Node::stop_all(nodes).await;
}
