//! The broadcast state: what a node writes to it shows there at once, no matter who else writes,
//! and how many channels and dots there may be holds across nodes.

use futures_util::future::join_all;
use headmark::base::ids::UserId;
use headmark::engine::heads;
use headmark::engine::marks::StreamKey;
use headmark::features::broadcasts::MAX_CHANNELS;
use headmark::features::dots::MAX_DOTS;
use serde_json::json;
use sqlx::PgConnection;

use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Hand, Node, Proxy, Reply, Tier, World, eventually, eventually_within};

async fn send(client: &Client, channel: &str) -> Reply {
    client.post(&format!("/v1/broadcasts/{channel}"), &json!({"title": "t"})).await
}

async fn light(client: &Client, dot: &str) -> Reply {
    client.post(&format!("/v1/dots/{dot}/light"), &json!({})).await
}

async fn unread(client: &Client) -> i64 {
    client.summary(1).await["broadcasts"]["system"]["unread"].as_i64().unwrap_or(0)
}

/// The lists of all that is on the broadcast state.
const LISTS: [&str; 2] = ["/v1/broadcasts", "/v1/dots"];

/// How many channels and dots are listed.
async fn listed(client: &Client) -> [usize; 2] {
    let mut counts = [0; 2];
    for (list, count) in LISTS.iter().zip(&mut counts) {
        *count = client.get(list).await.ok()["items"].as_array().unwrap().len();
    }
    counts
}

/// How many of these were refused, each because it was one too many.
fn refused(replies: Vec<Reply>) -> i64 {
    replies.into_iter().filter(|reply| !reply.status.is_success()).fold(0, |refused, reply| {
        reply.problem(409, "too_many");
        refused + 1
    })
}

both_tiers! {
    async fn what_a_node_writes_shows_there_at_once_whoever_else_writes(world: World) {
        let nodes = world.nodes().await;
        for node in &nodes { assert_eq!(unread(&node.client).await, 0); }
        let write = async |node: &Node| {
            for n in 0..25 {
                let sent = send(&node.client, "system").await.ok();
                assert!(unread(&node.client).await >= sent["seq"].as_i64().unwrap(), "all up to {sent}");
                if n % 5 == 0 {
                    let lit = light(&node.client, "mall").await.ok();
                    assert!(node.client.summary(1).await["dots"]["mall"]["head"].as_i64() >= lit["head"].as_i64(), "{lit}");
                }
            }
        };
        join_all(nodes.iter().map(write)).await;
        let all = 25 * i64::try_from(nodes.len()).unwrap();
        for node in &nodes {
            eventually("the others' show too", async || unread(&node.client).await == all).await;
        }
        Node::stop_all(nodes).await;
    }

    async fn a_service_lists_at_once_what_any_node_has_made(world: World) {
        let nodes = world.nodes().await;
        let (one, other) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        for n in 1..=8 {
            send(one, &format!("c{n}")).await.ok();
            light(one, &format!("d{n}")).await.ok();
            assert_eq!(listed(other).await, [n, n]);
        }
        for path in ["/v1/broadcasts/c1", "/v1/dots/d1"] {
            assert_eq!(one.delete(path).await.status, 204);
        }
        assert_eq!(listed(other).await, [7, 7]);
        Node::stop_all(nodes).await;
    }

    async fn what_a_node_alone_writes_to_the_board_is_not_read_back(world: World) {
        let node = world.node().await;
        send(&node.client, "system").await.ok();
        // Nothing but the lanes reaches the database from here on: they have connections of their
        // own.
        node.app.state().db.close().await;
        let sent = send(&node.client, "system").await.ok();
        send(&node.client, "news").await.ok();
        light(&node.client, "mall").await.ok();
        assert_eq!(node.client.delete("/v1/broadcasts/system/1").await.status, 204);
        let broadcast_state = node.app.state().heads.broadcast_state();
        assert_eq!((broadcast_state.head, broadcast_state.channels["news"].head, broadcast_state.dots["mall"].head, &sent["seq"]), (5, 1, 1, &json!(2)));
        assert_eq!(broadcast_state.channels["system"].unread(0, 0), 1, "one of two was taken back");
        node.stop().await;
    }

    async fn a_node_that_is_far_behind_a_lane_reads_all_again(world: World) {
        let nodes = world.nodes().await;
        send(&nodes[0].client, "system").await.ok();
        let heads = || nodes.iter().map(|node| &node.app.state().heads);
        let posts = StreamKey::posts(UserId::try_from(7).unwrap());
        for heads in heads() {
            heads.catch_up().await.unwrap();
            heads.cached_heads(std::slice::from_ref(&posts)).await.unwrap();
        }
        // As if the lane had written all this long ago: what its batches changed was swept.
        let mut hand = Hand::on(&world).await;
        hand.run("insert into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch)
            values (7, 5, '', 9, '', 0, 9, 0, 0, 77, 3);
            update heads set head = head + 1, version = version + 1 where kind in (2, 7);
            insert into lanes (lane_id, batch, committed_at) values (77, 100000, 4102444800000)").await;
        for heads in heads() {
            heads.catch_up().await.unwrap();
            assert_eq!((heads.broadcast_state().head, heads.broadcast_state().channels["system"].head), (2, 2));
            assert_eq!(heads.cached_heads(std::slice::from_ref(&posts)).await.unwrap()[0].head(), 9);
        }
        Node::stop_all(nodes).await;
    }

    /// What was read before such a look began, and comes after it.
    async fn a_read_that_comes_after_all_was_read_again_is_not_taken(world: World) {
        let node = world.node().await;
        let heads = std::sync::Arc::clone(&node.app.state().heads);
        heads.catch_up().await.unwrap();
        let posts = [StreamKey::posts(UserId::try_from(7).unwrap())];
        fail::cfg("heads::after_read", "1*sleep(1500)->off").unwrap();
        let reading = tokio::spawn({
            let (heads, posts) = (std::sync::Arc::clone(&heads), posts.clone());
            async move { heads.cached_heads(&posts).await.unwrap().remove(0).head() }
        });
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let mut hand = Hand::on(&world).await;
        hand.run("insert into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch)
            values (7, 5, '', 9, '', 0, 9, 0, 0, 77, 3);
            insert into lanes (lane_id, batch, committed_at) values (77, 100000, 4102444800000)").await;
        heads.catch_up().await.unwrap();
        assert!(!reading.is_finished(), "it has read, and not come");
        assert_eq!(reading.await.unwrap(), 9);
        node.stop().await;
    }

    /// A look brings so many changes at most. On Postgres it is no whole one either where the heads are there no more, as
    /// those of erased creators.
    async fn a_look_that_was_cut_reads_all_again(world: World) {
        let node = world.node().await;
        send(&node.client, "system").await.ok();
        let heads = &node.app.state().heads;
        heads.catch_up().await.unwrap();
        let mut hand = Hand::on(&world).await;
        for (changes, shown) in [(20_000, 1), (20_001, 2)] {
            let told = match world.tier {
                Tier::Server => format!("insert into head_changes (lane_id, batch, owner_ids, kinds, names)
                    select {changes}, 1, array_agg(cast(n as bigint)), array_agg(cast(5 as bigint)), array_agg(cast('' as text))
                    from generate_series(1000001, 1000000 + {changes}) n"),
                Tier::Embedded => format!("insert or ignore into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch)
                    with recursive t (n) as (select 1000001 union all select n + 1 from t where n < 1000000 + {changes})
                    select n, 5, '', 1, '', 0, 1, 0, 0, {changes}, 1 from t;
                    insert into head_changes (lane_id, batch, streams)
                    select {changes}, 1, json_group_array(json_array(owner_id, kind, name)) from heads where owner_id > 1000000"),
            };
            // The change of this head is among what was cut off. All is there at once, as after a batch: the node looks,
            // too.
            hand.run(&format!("begin; update heads set head = 2, version = version + 1 where kind = 2;
                insert into lanes (lane_id, batch, committed_at) values ({changes}, 1, 4102444800000); {told}; commit")).await;
            heads.catch_up().await.unwrap();
            assert_eq!(heads.broadcast_state().channels["system"].head, shown);
        }
        node.stop().await;
    }

    async fn what_no_node_asks_for_is_swept(world: World) {
        let node = world.node().await;
        send(&node.client, "system").await.ok();
        let mut hand = Hand::on(&world).await;
        let streams = if world.tier == Tier::Embedded { ("streams", "'[]'") } else { ("owner_ids, kinds, names", "'{}', '{}', '{}'") };
        hand.run(&format!("insert into lanes (lane_id, batch, committed_at) values (77, 8197, 4102444800000);
            insert into head_changes (lane_id, batch, {0}) values (77, 4, {1}), (77, 5, {1}), (77, 6, {1}), (78, 9000, {1})", streams.0, streams.1)).await;
        // The node may be sweeping, too.
        while heads::store::sweep(&node.app.state().db).await.unwrap() > 0 {}
        assert_eq!(hand.text("select cast(min(batch) as text) from head_changes where lane_id = 77").await, "6");
        assert_eq!(hand.text("select cast(count(*) as text) from head_changes where lane_id <> 77").await, "1", "that of the notice");
        node.stop().await;
    }

    /// Each look reads the rows of all lanes.
    async fn nodes_that_come_and_go_leave_no_lanes(world: World) {
        let node = world.node().await;
        send(&node.client, "system").await.ok();
        node.stop().await;
        let mut hand = Hand::on(&world).await;
        assert_eq!(hand.text("select cast(count(*) as text) from lanes where committed_at >= 0").await, "0");
        // That was more than an hour ago, and the node of another lane has died.
        hand.run("update lanes set committed_at = committed_at + 3601000").await;
        hand.run("insert into lanes (lane_id, batch, committed_at) values (77, 1, 4102444800000), (78, 1, -4102444800000)").await;
        let node = world.node().await;
        let ended = async || hand.text("select cast(count(*) as text) from lanes where committed_at < 0").await == "1";
        eventually("what ended is swept", ended).await;
        assert_eq!(hand.text("select cast(count(*) as text) from lanes where lane_id in (77, 78)").await, "2", "not yet");
        node.stop().await;
    }

    async fn nodes_that_make_channels_at_once_make_no_more_than_there_may_be(world: World) {
        let nodes = world.nodes().await;
        let first = &nodes[0].client;
        let names: Vec<_> = (0..MAX_CHANNELS - 5).map(|n| format!("early-{n}")).collect();
        assert_eq!(refused(join_all(names.iter().map(|name| send(first, name))).await), 0);
        let race: Vec<_> = nodes.iter().enumerate().flat_map(|(at, node)| (0..20).map(move |n| (node, format!("late-{at}-{n}")))).collect();
        let too_many = refused(join_all(race.iter().map(|(node, name)| send(&node.client, name))).await);
        assert_eq!(too_many, i64::try_from(race.len()).unwrap() - 5);
        for node in &nodes {
            node.app.state().heads.catch_up().await.unwrap();
            assert_eq!(i64::try_from(node.app.state().heads.broadcast_state().channels.len()).unwrap(), MAX_CHANNELS);
            send(&node.client, "early-1").await.ok();
            send(&node.client, "another").await.problem(409, "too_many");
        }
        Node::stop_all(nodes).await;
    }

    async fn nodes_that_make_dots_at_once_make_no_more_than_there_may_be(world: World) {
        let nodes = world.nodes().await;
        let first = &nodes[0].client;
        let names: Vec<_> = (0..MAX_DOTS - 5).map(|n| format!("early-{n}")).collect();
        assert_eq!(refused(join_all(names.iter().map(|name| light(first, name))).await), 0);
        let race: Vec<_> = nodes.iter().enumerate().flat_map(|(at, node)| (0..20).map(move |n| (node, format!("late-{at}-{n}")))).collect();
        let too_many = refused(join_all(race.iter().map(|(node, name)| light(&node.client, name))).await);
        assert_eq!(too_many, i64::try_from(race.len()).unwrap() - 5);
        for node in &nodes {
            node.app.state().heads.catch_up().await.unwrap();
            assert_eq!(i64::try_from(node.app.state().heads.broadcast_state().dots.len()).unwrap(), MAX_DOTS);
            light(&node.client, "early-1").await.ok();
            light(&node.client, "another").await.problem(409, "too_many");
        }
        Node::stop_all(nodes).await;
    }
}

/// A channel may be deleted meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_database_a_node_lists_nothing_that_may_be_gone() {
    let mut world = World::new(Tier::Server).await;
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    let node = world.node_with(&CREDENTIALS).await;
    let (service, user) = (node.service(), node.user(1));
    send(&service, "system").await.ok();
    light(&service, "mall").await.ok();
    for client in [&service, &user] {
        assert_eq!(listed(client).await, [1, 1]);
    }
    proxy.leave();
    for list in LISTS {
        service.get(list).await.problem(503, "store_unavailable");
        eventually_within(8, "it is too old for users, too", async || user.get(list).await.status == 503).await;
        user.get(list).await.problem(503, "store_unavailable");
    }
    proxy.come_back().await;
    for client in [&service, &user] {
        eventually_within(20, "it is back", async || client.get(LISTS[0]).await.status == 200).await;
    }
    node.stop().await;
}

/// How many rows of `heads` Postgres has updated, and how many of them without an index.
async fn updates(conn: &mut PgConnection) -> (i64, i64) {
    let sql = "select sum(n_tup_upd)::bigint, sum(n_tup_hot_upd)::bigint from pg_stat_user_tables where relname like 'heads%'";
    sqlx::query_as(sql).fetch_one(conn).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_heads_touch_no_index() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let client = &node.client;
    client.put("/v1/groups/5", &json!({})).await.ok();
    client.put("/v1/groups/5/members/1", &json!({})).await.ok();
    let mut conn = world.postgres().await;
    let mut n = 0;
    let mut write = async || {
        n += 1;
        send(client, "system").await.ok();
        light(client, "mall").await.ok();
        client.post("/v1/groups/5/messages", &json!({"sender_id": 1, "client_id": format!("m{n}"), "content": "hello"})).await.ok();
        client.put(&format!("/v1/users/2/posts/p{n}"), &json!({})).await.ok();
    };
    // Postgres counts what a connection did once a second, when it does more.
    let count = async || {
        write().await;
        updates(&mut conn).await.0 >= 200
    };
    eventually_within(30, "Postgres has counted", count).await;
    let (all, hot) = updates(&mut conn).await;
    assert!(hot * 20 >= all * 19, "{hot} of {all}");
    node.stop().await;
}

/// How many notices there are: more than two pages of a first look.
const NOTICES: i64 = 30_000;

/// To send them all takes longer than one look may: some 60 pieces of an answer, each so much later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_look_takes_as_long_as_there_are_notices() {
    let mut world = World::new(Tier::Server).await;
    let mut hand = Hand::on(&world).await;
    // Every third is withdrawn, those of the first half once all were sent.
    hand.run(&format!(
        "insert into notices (channel, seq, position, content, created_at, expires_at, withdrawn, changed)
            select 'c' || g % 3, (g + 2) / 3, g, '{{}}', 1, 0, case when g % 9 = 0 then 1 else 0 end,
                case when g % 9 = 0 and g * 2 < {NOTICES} then {NOTICES} + g else g end
            from generate_series(1, {NOTICES}) g;
        insert into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch)
            select 0, 2, channel, max(seq), '', 0, max(seq), max(position), 1, 77, 1 from notices group by channel;
        insert into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch)
            values (0, 7, '', 2 * {NOTICES}, '', 0, 2 * {NOTICES}, 0, 1, 77, 1)"
    ))
    .await;
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    proxy.slow(std::time::Duration::from_millis(50));
    let node = world.node().await;
    let heads = &node.app.state().heads;
    let all = || ["c0", "c1", "c2"].map(|name| heads.broadcast_state().channels[name].unread(0, 0));
    let withdrawn = NOTICES / 9;
    assert_eq!((heads.broadcast_state().head, all()), (2 * NOTICES, [NOTICES / 3 - withdrawn, NOTICES / 3, NOTICES / 3]));
    // A node that runs reads them again.
    let began = heads.history();
    hand.run("update inbox_epoch set epoch = 'another'").await;
    eventually_within(20, "it is in the other epoch, and up to date", async || &*heads.epoch() == "another" && heads.is_fresh()).await;
    assert_ne!(heads.history(), began);
    assert_eq!(all(), [NOTICES / 3 - withdrawn, NOTICES / 3, NOTICES / 3]);
    node.stop().await;
}
