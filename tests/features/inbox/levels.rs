//! Levels of direct chats that end by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use headmark::base::clock::UnixMs;
use headmark::maintenance::scrub::scrub;
use serde_json::{Value, json};

use super::{chats, id, message, mute, read, send, sums};
use crate::both_tiers;
use crate::support::{Client, Hand, eventually};

const START: i64 = 1_800_000_000_000;

async fn silence(client: &Client, peer: i64, until: i64) -> Value {
    let body = json!({"level": "none", "until": UnixMs(until).to_string()});
    client.put(&format!("/v1/users/9/directs/{peer}/settings"), &body).await.ok()
}

async fn counted(client: &Client) -> (Value, Value) {
    let (summary, explained) = (client.summary(9).await, client.get("/v1/users/9/badges/explain").await.ok());
    assert_eq!((&explained["chats"]["unread"], &explained["total"]), (&summary["chats"]["unread"], &summary["total"]));
    (summary["chats"]["unread"].clone(), summary["chats"]["directs"].clone())
}

both_tiers! {
    async fn a_level_ends_at_its_time_without_a_write(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        for (sender, n) in [(1, "a"), (1, "b"), (2, "a")] {
            send(client, sender, 9, n).await;
        }
        let set = silence(client, 1, START + 10_000).await;
        assert_eq!((&set["level"], &set["level_until"], &set["unread"]), (&json!("none"), &json!("2027-01-15T08:00:10.000Z"), &json!(2)));
        assert_eq!((counted(client).await, chats(client, 9).await), ((json!(1), json!(1)), vec![(2, 1, false), (1, 2, true)]));
        // It keeps its number meanwhile.
        send(client, 1, 9, "c").await;
        assert_eq!((counted(client).await, sums(&node, 9).await), ((json!(1), json!(1)), (1, 1)));
        let tags = [client.get("/v1/users/9/badges").await, client.get("/v1/users/9/directs").await, client.get("/v1/users/9/directs/1").await];
        let revision = tags[0].body["revision"].clone();
        at.store(START + 10_000, Ordering::SeqCst);
        let shown = client.get_if_changed("/v1/users/9/badges", tags[0].header("etag")).await;
        assert_eq!((shown.status.as_u16(), &shown.body["total"], &shown.body["revision"]), (200, &json!(4), &revision), "nothing was written");
        assert!(shown.body["shared_revision"].as_i64() > tags[0].body["shared_revision"].as_i64(), "the former answer is older");
        for (path, before) in ["directs", "directs/1"].into_iter().zip(&tags[1..]) {
            assert_eq!(client.get_if_changed(&format!("/v1/users/9/{path}"), before.header("etag")).await.status, 200, "{path}");
        }
        assert_eq!((counted(client).await, sums(&node, 9).await), ((json!(4), json!(2)), (1, 1)));
        assert_eq!(chats(client, 9).await, [(1, 3, false), (2, 1, false)]);
        assert_eq!(client.get("/v1/users/9/directs/1").await.ok()["level_until"], Value::Null);
        // The next write of the chat takes it along.
        assert_eq!(read(client, 9, 1, &json!({"up_to": 1})).await, 2);
        assert_eq!((counted(client).await, sums(&node, 9).await), ((json!(3), json!(2)), (3, 2)));
        assert_eq!(scrub(&node.app.state().contexts.scrub, &[id(9)]).await.unwrap(), 0);
        // A block in between.
        silence(client, 2, START + 20_000).await;
        client.put("/v1/users/9/blocks/2", &json!({})).await.ok();
        at.store(START + 20_000, Ordering::SeqCst);
        assert_eq!(counted(client).await, (json!(2), json!(1)));
        assert_eq!(client.delete("/v1/users/9/blocks/2").await.status, 204);
        assert_eq!(counted(client).await, (json!(3), json!(2)));
        assert_eq!(scrub(&node.app.state().contexts.scrub, &[id(9)]).await.unwrap(), 0);
        let past = json!({"level": "none", "until": UnixMs(START + 20_000).to_string()});
        assert_eq!(client.put("/v1/users/9/directs/1/settings", &past).await.pointers(422, "invalid_body"), ["/until"]);
        let (recount, mut found) = (headmark::maintenance::recount::Recount { user: None, dry_run: true }, Vec::new());
        recount.run(&node.app.state().db, |difference| found.push(difference.to_string())).await.unwrap();
        assert_eq!(found, Vec::<String>::new());
        node.stop().await;
    }

    async fn the_end_of_a_level_wakes_who_waits(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        let sent = client.post("/v1/users/9/inbox", &message(1, "a", "a")).await.ok();
        let now: UnixMs = serde_json::from_value(sent["sent_at"].clone()).unwrap();
        silence(client, 1, now.0 + 2000).await;
        let polls = ["badges", "directs", "directs/1"].map(|path| {
            let nodes: Vec<_> = nodes.iter().map(|node| node.client.clone()).collect();
            tokio::spawn(async move {
                let path = format!("/v1/users/9/{path}");
                let mut shown = Vec::new();
                for client in nodes {
                    let tag = client.get(&path).await.header("etag").to_owned();
                    let request = client.request(reqwest::Method::GET, &format!("{path}?wait=30")).header("if-none-match", tag);
                    shown.push(tokio::spawn(Client::send(request)));
                }
                shown
            })
        });
        let began = Instant::now();
        for polls in polls {
            for poll in polls.await.unwrap() {
                assert_eq!(poll.await.unwrap().status, 200);
            }
        }
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        assert_eq!(client.summary(9).await["chats"]["unread"], 1);
        crate::support::Node::stop_all(nodes).await;
    }

    async fn levels_that_end_are_bounded(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        for peer in 100..200 {
            silence(client, peer, START + 1000 + peer).await;
        }
        let more = json!({"level": "none", "until": UnixMs(START + 9000).to_string()});
        client.put("/v1/users/9/directs/300/settings", &more).await.problem(409, "too_many");
        silence(client, 150, START + 9000).await;
        mute(client, 9, 300, true).await;
        at.store(START + 1101, Ordering::SeqCst);
        silence(client, 301, START + 9000).await;
        let rows = "select cast(count(*) as text) from directs where user_id = 9";
        assert_eq!(Hand::on(&world).await.text(rows).await, "100", "the two that ended are gone");
        // A message in a silent chat never fails.
        send(client, 160, 9, "a").await;
        eventually("it is counted in time", async || {
            at.fetch_add(100, Ordering::SeqCst);
            client.summary(9).await["chats"]["unread"] == 1
        })
        .await;
        node.stop().await;
    }
}
