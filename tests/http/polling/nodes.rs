//! Polls never go back in time, whichever node answers: what a tag names that a node would not
//! answer makes it look at the database, and it answers degraded where it cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use headmark::base::ids::GroupId;
use headmark::engine::marks::StreamKey;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::SUMMARY;
use crate::both_tiers;
use crate::support::{Client, Node, Proxy, Reply, Tier, World, eventually_within};

/// All shared numbers of a summary; each only goes up here.
fn shared(summary: &Value) -> [i64; 4] {
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    [
        number(&summary["broadcasts"]["system"]["unread"]),
        number(&summary["dots"]["mall"]["head"]),
        number(&summary["chats"]["unread"]),
        number(&summary["feed"]["unread"]),
    ]
}

async fn write(client: &Client, what: usize, id: usize) {
    match what % 4 {
        0 => drop(client.post("/v1/broadcasts/system", &json!({"title": "t"})).await.ok()),
        1 => drop(client.post("/v1/dots/mall/light", &json!({})).await.ok()),
        2 => drop(crate::features::groups::send(client, 7, 43, &format!("m{id}")).await.ok()),
        _ => drop(client.put(&format!("/v1/users/44/posts/p{id}"), &json!({})).await.ok()),
    }
}

/// A node that is behind in one stream and ahead in another: no sum of versions tells that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_behind_in_one_stream_and_ahead_in_another_looks() {
    let world = World::new(Tier::Server).await;
    let nodes = world.nodes().await;
    let (first, other) = (&nodes[0].client, &nodes[1].client);
    crate::features::groups::make(first, 7, &[42, 43]).await;
    first.follow(42, 44).await;
    first.summary(42).await;
    other.summary(42).await;
    let mut id = 0;
    for round in 0..24_usize {
        let (one, many) = (round % 4, (round / 4 + round + 1) % 4);
        write(first, one, id).await;
        for _ in 0..2 {
            id += 1;
            write(other, many, id).await;
        }
        if round % 3 == 0 {
            // A higher revision of one's own must not hide it either.
            super::raise(other, 42).await;
        }
        id += 1;
        let mut seen = first.get(SUMMARY).await;
        for client in [other, first, other] {
            let next = client.get_if_changed(SUMMARY, seen.header("etag")).await;
            if next.status == 304 {
                continue;
            }
            let (before, after) = (shared(&seen.body), shared(&next.body));
            assert!(
                before.iter().zip(&after).all(|(before, after)| before <= after),
                "round {round}: {} and then {}",
                seen.text,
                next.text
            );
            assert!(!next.header("etag").is_empty() && next.body["degraded"] == false, "{}", next.text);
            seen = next;
        }
        let after = shared(&seen.body);
        assert_eq!(after.iter().sum::<i64>(), i64::try_from(3 * (round + 1)).unwrap(), "all that was acknowledged: {}", seen.text);
    }
    Node::stop_all(nodes).await;
}

/// Two nodes, the second of which reaches its database through a proxy.
async fn nodes_with_a_proxy() -> (World, Proxy, [Node; 2]) {
    let mut world = World::new(Tier::Server).await;
    let first = world.node().await;
    let direct = world.database_url.clone();
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    let second = world.node().await;
    world.database_url = direct;
    (world, proxy, [first, second])
}

fn is_degraded(reply: &Reply) -> bool {
    reply.status == 200 && reply.header("etag").is_empty() && reply.body["degraded"] == true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_node_that_cannot_look_answers_degraded() {
    let (_world, proxy, nodes) = nodes_with_a_proxy().await;
    let (first, other) = (&nodes[0].client, &nodes[1].client);
    for client in [first, other] {
        client.summary(42).await;
    }
    for head in 1..=4 {
        // The other node has just looked, so that what it holds passes for current for more than a
        // second.
        eventually_within(10, "a look", async || nodes[1].app.state().heads.catch_up().await.is_ok()).await;
        proxy.pause(true);
        first.post("/v1/dots/mall/light", &json!({})).await.ok();
        let seen = first.get(SUMMARY).await;
        assert_eq!(seen.body["dots"]["mall"]["head"], head);
        let shown = other.get_if_changed(SUMMARY, seen.header("etag")).await;
        assert!(is_degraded(&shown), "{} and then {} {:?}", seen.text, shown.text, shown.headers);
        let stale = shown.body["stale"].as_array().unwrap();
        assert!(stale.contains(&json!("dots")), "{}", shown.text);
        proxy.pause(false);
        eventually_within(20, "it is current again", async || other.get_if_changed(SUMMARY, seen.header("etag")).await.status == 304).await;
    }
    Node::stop_all(nodes.into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_poll_that_waits_through_an_outage_is_answered_when_it_is_over() {
    let (_world, proxy, nodes) = nodes_with_a_proxy().await;
    let (first, other) = (&nodes[0].client, nodes[1].client.clone());
    first.summary(42).await;
    let dark = other.get(SUMMARY).await.header("etag").to_owned();
    proxy.pause(true);
    let began = Instant::now();
    let waiting = AbortOnDropHandle::new(tokio::spawn(async move {
        let reply = other.get_if_changed(&format!("{SUMMARY}?wait=60"), &dark).await;
        (reply, began.elapsed())
    }));
    first.post("/v1/dots/mall/light", &json!({})).await.ok();
    // Long after what the node holds no longer passes for current.
    tokio::time::sleep(Duration::from_secs(8)).await;
    proxy.pause(false);
    let (reply, took) = waiting.await.unwrap();
    assert!(took >= Duration::from_secs(8), "it was held: {took:?} {}", reply.text);
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!((&reply.body["dots"]["mall"]["lit"], &reply.body["degraded"]), (&json!(true), &json!(false)), "{}", reply.text);
    Node::stop_all(nodes.into()).await;
}

/// A message in a group changes its head, whichever node it comes through. A look that read how far
/// lanes are and what they changed at two moments left out a head that another lane changed in
/// between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_leaves_nothing_out_that_was_acknowledged_before() {
    let world = World::new(Tier::Server).await;
    let nodes = [world.node().await, world.node().await, world.node().await];
    crate::features::groups::make(&nodes[0].client, 7, &[42, 43]).await;
    let heads = &nodes[2].app.state().heads;
    let key = [StreamKey::group(GroupId::try_from(7).unwrap())];
    let cached_head = heads.cached_heads(&key).await.unwrap().remove(0);
    let acknowledged = Arc::new(AtomicI64::new(0));
    let until = Instant::now() + Duration::from_secs(4);
    let writers = nodes[..2].iter().enumerate().map(|(at, node)| {
        let (client, acknowledged) = (node.client.clone(), Arc::clone(&acknowledged));
        tokio::spawn(async move {
            let mut n = 0;
            while Instant::now() < until {
                n += 1;
                let sent = crate::features::groups::send(&client, 7, 43, &format!("m{at}-{n}")).await.ok();
                acknowledged.fetch_max(sent["seq"].as_i64().unwrap(), Ordering::SeqCst);
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut looks = 0;
    while Instant::now() < until {
        let before = acknowledged.load(Ordering::SeqCst);
        if heads.catch_up().await.is_err() {
            // A machine that is busy with other things: no look came through in time.
            continue;
        }
        assert!(cached_head.head() >= before, "look {looks}: {} of {before}", cached_head.head());
        looks += 1;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(looks > 20 && acknowledged.load(Ordering::SeqCst) > 20, "{looks} looks");
    Node::stop_all(nodes.into()).await;
}

/// However many ask at once, few looks answer them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_look_serves_all_who_asked_before_it_began() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let heads = &node.app.state().heads;
    let looks = async || node.client.metric("headmark_shared_looks_total").await;
    let before = looks().await;
    let asked = join_all((0..1000).map(async |_| heads.catch_up().await)).await;
    assert!(asked.iter().all(Result::is_ok), "{asked:?}");
    let made = looks().await - before;
    assert!((1.0..100.0).contains(&made), "{made} looks for {} who asked", asked.len());
    node.stop().await;
}

/// A user's own mark may be ahead of what another node holds of the head.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_groups_shows_no_head_below_what_the_user_has_read() {
    let world = World::new(Tier::Server).await;
    let nodes = world.nodes().await;
    let (first, other) = (&nodes[0].client, &nodes[1].client);
    crate::features::groups::make(first, 7, &[42, 43]).await;
    for n in 1..=25 {
        // Anyone who sends has read all up to the message.
        crate::features::groups::send(first, 7, 42, &format!("m{n}")).await.ok();
        let groups = other.get("/v1/users/42/groups").await.ok();
        let item = &groups["items"][0];
        assert_eq!((&item["read_seq"], &item["head"], &item["unread"]), (&json!(n), &json!(n), &json!(0)), "{groups}");
    }
    Node::stop_all(nodes).await;
}

both_tiers! {
    /// A node that writes alone is never behind a client whose tag is of before a change, and asks
    /// the database for nothing then; one among others cannot know, and looks.
    async fn only_a_node_among_others_looks_when_a_tag_is_of_other_heads(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.get(SUMMARY).await.ok();
        let mut tag = client.get(SUMMARY).await.header("etag").to_owned();
        let looks = async || client.metric("headmark_shared_looks_total").await;
        let (before, began) = (looks().await, Instant::now());
        for sent in 1..=50 {
            client.post("/v1/broadcasts/system", &json!({"title": "all"})).await.ok();
            let reply = client.get_if_changed(SUMMARY, &tag).await;
            assert_eq!((reply.status.as_u16(), &reply.body["broadcasts"]["system"]["unread"]), (200, &json!(sent)), "{}", reply.text);
            reply.header("etag").clone_into(&mut tag);
        }
        let made = looks().await - before;
        // Every node looks twice a second anyway.
        let anyway = began.elapsed().as_secs_f64() * 2.0 + 2.0;
        match world.tier {
            Tier::Embedded => assert!(made <= anyway, "{made} looks, {anyway} without a reason"),
            Tier::Server => assert!(made >= 50.0, "{made} looks"),
        }
        node.stop().await;
    }
}
