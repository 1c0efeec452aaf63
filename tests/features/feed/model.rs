//! Random sequences against a naive model: for each follow, the set of posts that were seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{count, delete, feed, post, reset};
use crate::both_tiers;
use crate::support::{Client, Dice, Node, Tier, World};

const USERS: usize = 7;

/// What must be so.
#[derive(Debug, Default)]
struct Model {
    /// Of each creator, every post that ever was, and whether it is there.
    posts: BTreeMap<i64, Vec<bool>>,
    /// Of each follow, the posts that the follower has seen.
    seen: BTreeMap<(i64, i64), BTreeSet<usize>>,
    /// Who mutes whom.
    muted: BTreeSet<(i64, i64)>,
}

impl Model {
    fn all(&self, creator: i64) -> BTreeSet<usize> {
        (0..self.posts.get(&creator).map_or(0, Vec::len)).collect()
    }

    fn there(&self, creator: i64) -> BTreeSet<usize> {
        let posts = self.posts.get(&creator).into_iter().flatten();
        posts.enumerate().filter(|(_, there)| **there).map(|(at, _)| at).collect()
    }

    fn followees(&self, user: i64) -> Vec<i64> {
        self.seen.keys().filter(|(follower, _)| *follower == user).map(|(_, creator)| *creator).collect()
    }

    /// Unread and creators.
    fn feed(&self, user: i64) -> (i64, i64) {
        let followees = self.followees(user);
        let counted = followees.iter().filter(|creator| !self.muted.contains(&(user, **creator)));
        let unread: usize = counted.map(|creator| self.there(*creator).difference(&self.seen[&(user, *creator)]).count()).sum();
        (i64::try_from(unread).unwrap(), i64::try_from(followees.len()).unwrap())
    }
}

/// A sequence under way, over users of its own.
struct Round {
    model: Model,
    dice: Dice,
    base: i64,
}

impl Round {
    fn user(&mut self) -> i64 {
        self.base + 1 + i64::try_from(self.dice.roll(USERS)).unwrap()
    }

    fn users(&self) -> impl Iterator<Item = i64> + use<> {
        let base = self.base;
        (1..=i64::try_from(USERS).unwrap()).map(move |user| base + user)
    }
}

/// One random step.
async fn step(round: &mut Round, node: &Node) {
    let client = &node.client;
    let (user, other) = (round.user(), round.user());
    let Round { model, dice, .. } = round;
    match dice.roll(23) {
        0..=3 if user != other => {
            client.follow(user, other).await;
            let all = model.all(other);
            model.seen.entry((user, other)).or_insert(all);
        }
        4..=5 if user != other => {
            client.unfollow(user, other).await;
            model.seen.remove(&(user, other));
        }
        6..=11 => {
            let posts = model.posts.entry(user).or_default();
            let reply = post(client, user, &format!("p{}", posts.len())).await;
            assert_eq!(reply.status, 201);
            posts.push(true);
        }
        12..=14 => {
            // Seen by some, by others not.
            let Some(posts) = model.posts.get_mut(&user).filter(|posts| !posts.is_empty()) else { return };
            let at = dice.roll(posts.len());
            delete(client, user, &format!("p{at}")).await;
            posts[at] = false;
        }
        15..=16 => {
            assert_eq!(reset(client, user).await["creators"], model.feed(user).1);
            for creator in model.followees(user) {
                model.seen.insert((user, creator), model.all(creator));
            }
        }
        17 => node.app.state().summaries.parts.feed.feeds.clear(),
        18 => node.app.state().heads.forget_all(),
        19 => node.app.state().cache.clear(),
        20..=21 if user != other => {
            client.put(&format!("/v1/users/{user}/mutes/{other}"), &json!({})).await.ok();
            model.muted.insert((user, other));
        }
        22 if user != other => {
            assert_eq!(client.delete(&format!("/v1/users/{user}/mutes/{other}")).await.status, 204);
            model.muted.remove(&(user, other));
        }
        _ => {}
    }
}

async fn check(client: &Client, model: &Model, user: i64, at: usize) {
    assert_eq!(feed(client, user).await, model.feed(user), "user {user} after step {at}: {model:?}");
    let there = (model.there(user).len(), model.all(user).len());
    assert_eq!(count(client, user).await, (i64::try_from(there.0).unwrap(), i64::try_from(there.1).unwrap()));
}

both_tiers! {
    async fn random_sequences_match_a_model_at_every_step(world: World) {
        let node = world.node().await;
        let mut models = Vec::new();
        for seed in 1..=3 {
            let mut round = Round { model: Model::default(), dice: Dice::new(seed), base: 100 * i64::try_from(seed).unwrap() };
            for at in 0..220 {
                step(&mut round, &node).await;
                let user = round.user();
                check(&node.client, &round.model, user, at).await;
            }
            models.push(round);
        }
        node.stop().await;
        let node = world.node().await;
        for round in &models {
            for user in round.users() {
                check(&node.client, &round.model, user, 220).await;
            }
        }
        node.stop().await;
    }
}

/// Two nodes at which the same users act: each shows the other's writes within two seconds, and a
/// client never goes back in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_sequences_at_two_nodes_come_to_the_same() {
    let world = World::new(Tier::Server).await;
    let nodes = world.nodes().await;
    let mut round = Round { model: Model::default(), dice: Dice::new(11), base: 0 };
    let mut slowest = Duration::ZERO;
    for at in 0..400 {
        let node = &nodes[round.dice.roll(2)];
        step(&mut round, node).await;
        if at % 10 != 9 {
            continue;
        }
        let acknowledged = Instant::now();
        for user in round.users() {
            for node in &nodes {
                // A user's own changes show at once, so the number of creators does.
                let mut shown = feed(&node.client, user).await;
                while shown != round.model.feed(user) {
                    assert_eq!(shown.1, round.model.feed(user).1);
                    assert!(acknowledged.elapsed() < Duration::from_secs(2), "user {user}: {shown:?}, not {:?}", round.model.feed(user));
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    shown = feed(&node.client, user).await;
                }
            }
        }
        slowest = slowest.max(acknowledged.elapsed());
    }
    println!("shown everywhere within {slowest:?}");
    Node::stop_all(nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_changes_nodes_never_goes_back() {
    const FEED: &str = "/v1/users/1/feed";
    let world = World::new(Tier::Server).await;
    let nodes = world.nodes().await;
    for creator in 2..=5 {
        nodes[0].client.follow(1, creator).await;
    }
    for n in 0..60 {
        let (here, there) = (&nodes[n % 2].client, &nodes[(n + 1) % 2].client);
        post(here, 2 + i64::try_from(n % 4).unwrap(), &format!("p{n}")).await.ok();
        if n % 7 == 3 {
            delete(here, 2 + i64::try_from(n % 4).unwrap(), &format!("p{n}")).await;
        }
        if n % 20 == 19 {
            reset(here, 1).await;
        }
        // Whether this node has heard of what the other one did a moment ago or not, the other one
        // shows nothing older.
        let shown = here.get(FEED).await;
        let next = there.get_if_changed(FEED, shown.header("etag")).await;
        if next.status != 304 {
            let back = here.get_if_changed(FEED, next.header("etag")).await;
            assert!(back.status == 304, "{n}: {} {} and then {}", shown.text, next.text, back.text);
        }
    }
    Node::stop_all(nodes).await;
}
