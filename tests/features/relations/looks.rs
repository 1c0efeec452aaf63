//! What look-ups of relations cost, and that what is kept for them is true.

use std::time::Duration;

use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::Hand;
use crate::support::{Node, Tier, World, eventually};

/// How often a request is made whose statements are counted. A few statements a second are the
/// node's own; the least is without them.
const TIMES: usize = 12;

/// Whether a user follows each of these others, is followed by it, and blocks it.
async fn look(node: &Node, user: i64, others: &[i64]) -> Vec<(bool, bool, bool)> {
    let ids = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let body = node.client.get(&format!("/v1/users/{user}/relations?ids={ids}")).await.ok();
    let is = |item: &Value, name: &str| item[name] == true;
    body["items"].as_array().unwrap().iter().map(|item| (is(item, "following"), is(item, "followed_by"), is(item, "blocking"))).collect()
}

/// The least number of statements to the database that one of these requests makes.
async fn statements(node: &Node, request: impl AsyncFn(usize)) -> i64 {
    let count = async || {
        let text = node.client.get("/metrics").await.text;
        text.lines().find_map(|line| line.strip_prefix("headmark_database_statements_total ")?.parse::<i64>().ok()).unwrap_or_default()
    };
    let mut least = i64::MAX;
    for time in 0..TIMES {
        let before = count().await;
        request(time).await;
        least = least.min(count().await - before);
    }
    least
}

/// What Redis keeps of a user is all that there is, so that it also answers for those whom nobody
/// asked about before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_was_never_looked_up_costs_one_statement() {
    let world = World::new(Tier::Server).await;
    let nodes = world.nodes().await;
    let (first, last) = (&nodes[0], &nodes[1]);
    first.client.follow(1, 2).await;
    first.client.put("/v1/users/1/following/3", &json!({"visibility": "secret"})).await.ok();
    first.client.follow(4, 1).await;
    first.client.put("/v1/users/5/following/1", &json!({"visibility": "secret"})).await.ok();
    first.client.put("/v1/users/1/blocks/6", &json!({})).await.ok();
    first.client.put("/v1/users/7/blocks/1", &json!({})).await.ok();
    let expected = [
        (true, false, false),
        (true, false, false),
        (false, true, false),
        (false, true, false),
        (false, false, true),
        (false, false, false),
    ];
    assert_eq!(look(first, 1, &[9]).await, [(false, false, false)], "which fills it");
    for node in &nodes {
        let others = |time: usize| (2..8).chain([100 * i64::try_from(time + 1).unwrap()]).collect::<Vec<_>>();
        let cost = statements(node, async |time| assert_eq!(look(node, 1, &others(time)).await[..6], expected)).await;
        // Whether one of them was erased.
        assert_eq!(cost, 1);
    }
    // What changes is asked for again, the rest is not; and it shows at once on every node.
    for (at, node) in nodes.iter().enumerate() {
        let other = 50 + i64::try_from(at).unwrap();
        node.client.follow(1, other).await;
        node.client.follow(other + 10, 1).await;
        for node in &nodes {
            assert_eq!(look(node, 1, &[other, other + 10, 2]).await, [(true, false, false), (false, true, false), (true, false, false)]);
        }
        node.client.unfollow(1, other).await;
        for node in &nodes {
            assert_eq!(look(node, 1, &[other, other + 10, 70]).await, [(false, false, false), (false, true, false), (false, false, false)]);
        }
    }
    let cost = statements(last, async |time| drop(look(last, 1, &[2, 50, 61, 10_000 + i64::try_from(time).unwrap()]).await)).await;
    assert_eq!(cost, 1);
    // Services are answered from there as well.
    let pairs = |time: usize| json!({"pairs": [{"user_id": 1, "target_id": 2}, {"user_id": 1, "target_id": 20_000 + time}]});
    let cost = statements(first, async |time| drop(first.client.post("/v1/relations/query", &pairs(time)).await.ok())).await;
    assert_eq!(cost, 1);
    Node::stop_all(nodes).await;
}

both_tiers! {
    /// One with more relations than Redis keeps of a user is told from the memory of each node.
    async fn a_star_looks_up_without_the_database(world: World) {
        let mut nodes = vec![world.node().await];
        if world.tier == Tier::Server {
            nodes.push(world.node().await);
        }
        let (first, last) = (&nodes[0], &nodes[nodes.len() - 1]);
        let mut hand = Hand::on(&world).await;
        let numbers = "with recursive n (g) as (select 2 union all select g + 1 from n where g < 10002)";
        hand.run(&format!("{numbers} insert into following (follower_id, followee_id, since) select g, 1, g from n")).await;
        hand.run(&format!("{numbers} insert into followers (follower_id, followee_id, since) select g, 1, g from n")).await;
        let others: Vec<i64> = (2..72).chain(20_000..20_030).collect();
        let expected: Vec<_> = others.iter().map(|other| (false, *other < 20_000, false)).collect();
        for node in &nodes {
            let cost = statements(node, async |_| assert_eq!(look(node, 1, &others).await, expected)).await;
            assert_eq!(cost, 0);
            assert!(node.client.get("/metrics").await.text.contains("headmark_relation_looks_total{from=\"memory\"}"));
        }
        // What the star does shows at once everywhere.
        for round in 0..5 {
            let node = &nodes[round % nodes.len()];
            node.client.follow(1, 20_000).await;
            for node in &nodes {
                assert_eq!(look(node, 1, &others[69..71]).await, [(false, true, false), (true, false, false)], "{round}");
            }
            node.client.put("/v1/users/1/blocks/20000", &json!({})).await.ok();
            for node in &nodes {
                assert_eq!(look(node, 1, &others[69..71]).await, [(false, true, false), (false, false, true)]);
            }
            node.client.delete("/v1/users/1/blocks/20000").await;
            for node in &nodes {
                assert_eq!(look(node, 1, &others[69..71]).await, [(false, true, false), (false, false, false)]);
            }
        }
        // What others do shows at once on the node that they use, and soon on the others.
        for other in 20_001..20_006 {
            look(last, 1, &[other]).await;
            first.client.follow(other, 1).await;
            assert_eq!(look(first, 1, &[other]).await, [(false, true, false)]);
            let began = tokio::time::Instant::now();
            eventually("the other node shows it", async || look(last, 1, &[other]).await == [(false, true, false)]).await;
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        }
        Node::stop_all(nodes).await;
    }
}
