//! Random steps on broadcasts and a dot, against a naive model.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use serde_json::json;

use super::send;
use crate::both_tiers;
use crate::support::{Client, Node};

/// What may happen to two channels, a dot and three users.
#[derive(Debug, Clone)]
enum Step {
    Send(usize),
    Withdraw(usize, i64),
    Delete(usize),
    DeleteDot,
    Light,
    See(usize),
    Read(usize, usize, Option<i64>),
    Clear(usize, Option<i64>),
}

const CHANNELS: [&str; 2] = ["news", "system"];

/// The naive model: for each user the notices that it may still read, and for the dot the lights it
/// has not seen.
#[derive(Debug, Default)]
struct Model {
    heads: [i64; 2],
    lights: i64,
    users: [Option<User>; 3],
}

#[derive(Debug, Default)]
struct User {
    unread: [std::collections::BTreeSet<i64>; 2],
    lit: std::collections::BTreeSet<i64>,
}

impl Model {
    fn see(&mut self, user: usize) -> &mut User {
        self.users[user].get_or_insert_default()
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Send(channel) => {
                self.heads[*channel] += 1;
                let seq = self.heads[*channel];
                self.users.iter_mut().flatten().for_each(|user| {
                    user.unread[*channel].insert(seq);
                });
            }
            Step::Withdraw(channel, seq) => self.users.iter_mut().flatten().for_each(|user| {
                user.unread[*channel].remove(seq);
            }),
            Step::Delete(channel) => self.users.iter_mut().flatten().for_each(|user| user.unread[*channel].clear()),
            Step::DeleteDot => self.users.iter_mut().flatten().for_each(|user| user.lit.clear()),
            Step::Light => {
                self.lights += 1;
                let light = self.lights;
                self.users.iter_mut().flatten().for_each(|user| {
                    user.lit.insert(light);
                });
            }
            Step::See(user) => {
                self.see(*user);
            }
            Step::Read(user, channel, up_to) => self.see(*user).unread[*channel].retain(|seq| up_to.is_some_and(|up_to| *seq > up_to)),
            Step::Clear(user, up_to) => self.see(*user).lit.retain(|light| up_to.is_some_and(|up_to| *light > up_to)),
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..2_usize).prop_map(Step::Send),
        1 => (0..2_usize, 1..12_i64).prop_map(|(channel, seq)| Step::Withdraw(channel, seq)),
        1 => (0..2_usize).prop_map(Step::Delete),
        1 => Just(Step::DeleteDot),
        2 => Just(Step::Light),
        2 => (0..3_usize).prop_map(Step::See),
        3 => (0..3_usize, 0..2_usize, prop::option::of(0..14_i64)).prop_map(|(user, channel, up_to)| Step::Read(user, channel, up_to)),
        2 => (0..3_usize, prop::option::of(0..8_i64)).prop_map(|(user, up_to)| Step::Clear(user, up_to)),
    ];
    prop::collection::vec(step, 20..60)
}

async fn run(client: &Client, user_base: i64, step: &Step) {
    let body = |up_to: &Option<i64>| up_to.map_or(json!({}), |up_to| json!({ "up_to": up_to }));
    let id = |user: &usize| user_base + i64::try_from(*user).unwrap();
    match step {
        Step::Send(channel) => {
            send(client, CHANNELS[*channel], "t").await;
        }
        Step::Withdraw(channel, seq) => {
            let status = client.delete(&format!("/v1/broadcasts/{}/{seq}", CHANNELS[*channel])).await.status;
            assert!(status == 204 || status == 404);
        }
        Step::Delete(channel) => {
            assert_eq!(client.delete(&format!("/v1/broadcasts/{}", CHANNELS[*channel])).await.status, 204);
        }
        Step::DeleteDot => assert_eq!(client.delete("/v1/dots/mall").await.status, 204),
        Step::Light => {
            client.post("/v1/dots/mall/light", &json!({})).await.ok();
        }
        Step::See(user) => {
            client.summary(id(user)).await;
        }
        Step::Read(user, channel, up_to) => {
            client.post(&format!("/v1/users/{}/broadcasts/{}/read", id(user), CHANNELS[*channel]), &body(up_to)).await.ok();
        }
        Step::Clear(user, up_to) => {
            client.post(&format!("/v1/users/{}/dots/mall/clear", id(user)), &body(up_to)).await.ok();
        }
    }
}

both_tiers! {
    async fn random_steps_equal_a_naive_model(world: World) {
        let mut nodes = world.nodes().await;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let mut model = Model::default();
        let sequence = steps().new_tree(&mut runner).unwrap().current();
        for (at, step) in sequence.iter().enumerate() {
            let node = &nodes[at % nodes.len()];
            // Each write is known to the node that is to judge an `up_to` by it: so it catches up
            // first.
            node.app.state().heads.catch_up().await.unwrap();
            run(&node.client, 1, step).await;
            model.apply(step);
            if at % 17 == 16 {
                Node::stop_all(nodes).await;
                nodes = world.nodes().await;
            }
            for node in &nodes {
                node.app.state().heads.catch_up().await.unwrap();
                node.app.state().cache.clear();
                for (user, expected) in model.users.iter().enumerate().filter_map(|(at, user)| Some((at, user.as_ref()?))) {
                    let summary = node.client.summary(1 + i64::try_from(user).unwrap()).await;
                    for (channel, name) in CHANNELS.iter().enumerate() {
                        let shown = summary["broadcasts"][name]["unread"].as_u64().unwrap_or(0);
                        assert_eq!(shown, u64::try_from(expected.unread[channel].len()).unwrap(), "step {at} {step:?}: {summary} {model:?}");
                    }
                    assert_eq!(summary["dots"]["mall"]["lit"].as_bool().unwrap_or(false), !expected.lit.is_empty(), "step {at} {step:?}: {summary}");
                }
            }
        }
        Node::stop_all(nodes).await;
    }
}
