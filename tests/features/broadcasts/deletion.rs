//! Channels that are deleted, and sent to again.

use futures_util::future::join_all;
use headmark::features::broadcasts::{MAX_CHANNELS, store};
use serde_json::json;

use super::{send, unread};
use crate::both_tiers;
use crate::maintenance::recount::assert_clean;
use crate::support::{Client, Hand, Node, World, eventually};

async fn delete(client: &Client, channel: &str) {
    let reply = client.delete(&format!("/v1/broadcasts/{channel}")).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
}

async fn rows(world: &World, table: &str) -> String {
    Hand::on(world).await.text(&format!("select cast(count(*) as text) from {table}")).await
}

both_tiers! {
    async fn a_deleted_channel_is_gone_and_continues_its_head(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for user in [1, 2] { client.summary(user).await; }
        for title in ["one", "two", "three"] { send(client, "news", title).await; }
        send(client, "system", "other").await;
        client.post("/v1/users/2/broadcasts/news/read", &json!({"up_to": 2})).await.ok();
        delete(client, "news").await;
        for user in [1, 2, 3] {
            let summary = client.summary(user).await;
            let other = i64::from(user < 3);
            assert_eq!((&summary["broadcasts"], &summary["total"]), (&json!({"system": {"unread": other, "head": 1}}), &json!(other)));
            assert_eq!(client.get(&format!("/v1/users/{user}/badges/explain")).await.ok()["broadcasts"].as_object().unwrap().len(), 1);
            assert_eq!(client.get(&format!("/v1/users/{user}/broadcasts/news")).await.ok()["items"], json!([]));
        }
        assert_eq!(client.get("/v1/broadcasts/news").await.ok()["items"], json!([]));
        assert_eq!(client.delete("/v1/broadcasts/news/2").await.status, 204, "it went with the channel");
        let read = client.post("/v1/users/1/broadcasts/news/read", &json!({})).await.ok();
        assert_eq!((&read["unread"], &read["head"]), (&json!(0), &json!(3)));
        let before = client.summary(1).await["shared_revision"].clone();
        delete(client, "news").await;
        assert_eq!(client.summary(1).await["shared_revision"], before, "a repeat changes nothing");

        assert_eq!(send(client, "news", "four").await, 4);
        let shown: Vec<_> = [1, 2, 3].into_iter().map(async |user| unread(client, user, "news").await).collect();
        assert_eq!(join_all(shown).await, [1, 1, 1], "it counts for everybody");
        let items = client.get("/v1/users/2/broadcasts/news").await.ok()["items"].clone();
        assert_eq!((items.as_array().unwrap().len(), &items[0]["seq"], &items[0]["read"]), (1, &json!(4), &json!(false)));
        assert_eq!(client.delete("/v1/broadcasts/news/3").await.status, 204);
        assert_eq!(client.post("/v1/users/1/broadcasts/news/read", &json!({"up_to": 3})).await.ok()["unread"], 1);
        assert_eq!(client.delete("/v1/broadcasts/news/4").await.status, 204);
        assert_eq!(unread(client, 1, "news").await, 0);
        assert_clean(&node).await;
        node.stop().await;
    }

    async fn one_that_never_was_leaves_no_row(world: World) {
        let node = world.node().await;
        delete(&node.client, "never").await;
        assert_eq!(node.client.delete("/v1/dots/never").await.status, 204);
        assert_eq!(rows(&world, "heads where kind in (2, 3)").await, "0");
        node.client.delete("/v1/broadcasts/Never").await.problem(400, "invalid_path");
        node.client.delete("/v1/dots/Never").await.problem(400, "invalid_path");
        node.client.delete("/v1/dots/never?at=1").await.problem(400, "invalid_query");
        node.stop().await;
    }

    async fn rows_of_deleted_channels_are_swept(world: World) {
        let nodes = world.nodes().await;
        let (client, db) = (&nodes[0].client, &nodes[0].app.state().db);
        client.summary(1).await;
        for n in 0..5 { send(client, "news", &format!("{n}")).await; }
        let body = json!({"title": "soon over", "expires_at": "2999-01-01T00:00:00.000Z"});
        client.post("/v1/broadcasts/news", &body).await.ok();
        delete(client, "news").await;
        assert_eq!(send(client, "news", "again").await, 7);
        while store::sweep(db).await.unwrap() > 0 {}
        assert_eq!(rows(&world, "notices").await, "1");
        assert_clean(&nodes[0]).await;
        // Also a node that begins with what is left.
        Node::stop_all(nodes).await;
        let nodes = world.nodes().await;
        for node in &nodes {
            assert_eq!(unread(&node.client, 1, "news").await, 1);
            assert_eq!(node.client.get("/v1/broadcasts").await.ok()["items"], json!([{"channel": "news", "head": 7}]));
        }
        delete(&nodes[0].client, "news").await;
        for node in &nodes {
            eventually("every node hears of it", async || unread(&node.client, 1, "news").await == 0).await;
        }
        Node::stop_all(nodes).await;
    }

    async fn every_channel_is_listed_once_in_the_order_of_names(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let mut names: Vec<_> = (0..25).map(|n| format!("c{n}")).chain(["a.b-c_d".to_owned(), "z".repeat(64)]).collect();
        join_all(names.iter().map(|name| send(client, name, "t"))).await;
        delete(client, "c7").await;
        names.retain(|name| name != "c7");
        names.sort_unstable();
        for limit in [1, 7, 26, 100] {
            let items = client.walk("/v1/broadcasts", limit).await;
            assert_eq!(items.iter().map(|item| item["channel"].as_str().unwrap()).collect::<Vec<_>>(), names);
        }
        // What comes and goes between two pages neither repeats nor skips what stays.
        let page = client.get("/v1/broadcasts?limit=10").await;
        assert!(page.header("link").contains("rel=\"next\""));
        let page = page.ok();
        delete(client, page["items"][9]["channel"].as_str().unwrap()).await;
        send(client, "b", "t").await;
        let cursor = page["next_cursor"].as_str().unwrap();
        let rest = client.get(&format!("/v1/broadcasts?limit=100&cursor={cursor}")).await.ok();
        assert_eq!(rest["items"].as_array().unwrap().len(), names.len() - 10);
        client.get(&format!("/v1/dots?cursor={cursor}")).await.problem(400, "invalid_cursor");
        client.get("/v1/broadcasts?cursor=3").await.problem(400, "invalid_cursor");
        client.get("/v1/broadcasts?limit=0").await.problem(400, "invalid_query");
        node.stop().await;
    }

    async fn deleting_makes_room_for_another(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        let names: Vec<_> = (0..MAX_CHANNELS).map(|n| format!("c{n}")).collect();
        join_all(names.iter().map(|name| send(client, name, "t"))).await;
        let another = async |node: &Node| node.client.post("/v1/broadcasts/another", &json!({"title": "t"})).await;
        for node in &nodes {
            node.app.state().heads.catch_up().await.unwrap();
            another(node).await.problem(409, "too_many");
        }
        delete(client, "c5").await;
        nodes[nodes.len() - 1].app.state().heads.catch_up().await.unwrap();
        another(&nodes[nodes.len() - 1]).await.ok();
        nodes[0].app.state().heads.catch_up().await.unwrap();
        client.post("/v1/broadcasts/c5", &json!({"title": "t"})).await.problem(409, "too_many");
        // What was decided once stays so for its key, whatever room there is now.
        let body = json!({"title": "t"});
        client.post_once("/v1/broadcasts/more", "refused", &body).await.problem(409, "too_many");
        delete(client, "c6").await;
        client.post_once("/v1/broadcasts/more", "refused", &body).await.problem(409, "too_many");
        let taken = client.post_once("/v1/broadcasts/more", "taken", &body).await.ok();
        delete(client, "more").await;
        send(client, "c6", "t").await;
        assert_eq!(client.post_once("/v1/broadcasts/more", "taken", &body).await.ok(), taken);
        // What went with its channel is no news to those who withdraw it.
        assert_eq!(client.delete("/v1/broadcasts/more/1").await.status, 204);
        client.delete("/v1/broadcasts/more/2").await.problem(404, "not_found");
        Node::stop_all(nodes).await;
    }

    async fn marks_of_deleted_channels_do_not_pile_up(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.summary(1).await;
        for round in 0..3 {
            let names: Vec<_> = (0..80).map(|n| format!("c{round}-{n}")).collect();
            join_all(names.iter().map(|name| send(client, name, "t"))).await;
            join_all(names.iter().map(async |name| client.post(&format!("/v1/users/1/broadcasts/{name}/read"), &json!({})).await.ok())).await;
            join_all(names.iter().map(|name| delete(client, name))).await;
        }
        send(client, "news", "t").await;
        client.post("/v1/users/1/broadcasts/news/read", &json!({})).await.ok();
        let marks = Hand::on(&world).await.text("select marks from users where user_id = 1").await;
        assert!(marks.matches("b:").count() <= 200 && marks.contains("b:news 1"), "{marks}");
        assert_eq!(client.summary(1).await["total"], 0);
        assert_clean(&node).await;
        node.stop().await;
    }

    async fn services_hear_of_a_deletion(world: World) {
        let node = world.node().await;
        send(&node.client, "news", "t").await;
        send(&node.client, "news", "t").await;
        delete(&node.client, "news").await;
        let deleted = json!({"channel": "news", "seq": 2, "withdrawn": true, "channel_deleted": true});
        eventually("the event is there", async || {
            let events = node.client.get("/v1/events?types=broadcast").await.ok();
            events["items"].as_array().unwrap().last().is_some_and(|event| event["data"] == deleted)
        })
        .await;
        node.stop().await;
    }
}
