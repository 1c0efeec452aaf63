//! Random requests on one view against a naive model.

use super::{access, delete, numbers, put};
use crate::both_tiers;
use crate::support::{Client, Dice, Node, eventually};

/// An item of the model: who made it, and whether it is gone.
type Thing = (usize, Option<usize>, bool);

/// Random requests on one view, and a list beside it. Each node takes some in a row, and shows what
/// it took at once.
async fn explore(clients: &[Client], seed: usize) {
    let mut dice = Dice::new(seed);
    let name = format!("room/{seed}");
    let user = |at: usize| i64::try_from(10 * seed + at).unwrap();
    let (mut things, mut marks): (Vec<Thing>, [Option<usize>; 3]) = (Vec::new(), [None; 3]);
    for turn in 0..6 {
        for _ in 0..16 {
            let client = &clients[turn % clients.len()];
            step(client, &name, user, &mut dice, (&mut things, &mut marks)).await;
            for (at, expected) in expected(&things, &marks).into_iter().enumerate() {
                assert_eq!(numbers(client, user(at), &name).await, expected);
            }
        }
        for (at, expected) in expected(&things, &marks).into_iter().enumerate() {
            for client in clients {
                eventually("every node shows it", async || numbers(client, user(at), &name).await == expected).await;
            }
        }
    }
}

/// Unread and head of each user.
fn expected(things: &[Thing], marks: &[Option<usize>; 3]) -> Vec<(i64, i64)> {
    let left = |(at, mark): (usize, &Option<usize>)| {
        let unread = |mark: usize| things.iter().skip(mark).filter(|(_, actor, gone)| !gone && *actor != Some(at)).count();
        (i64::try_from(mark.map_or(0, unread)).unwrap(), i64::try_from(things.len()).unwrap())
    };
    marks.iter().enumerate().map(left).collect()
}

async fn step(
    client: &Client,
    name: &str,
    user: impl Fn(usize) -> i64,
    dice: &mut Dice,
    (things, marks): (&mut Vec<Thing>, &mut [Option<usize>; 3]),
) {
    let (which, at) = (dice.roll(20), dice.roll(3));
    let known = things.iter().position(|(item, ..)| *item == which);
    match dice.roll(6) {
        0..=2 => {
            let actor = (dice.roll(2) == 0).then_some(at);
            let status = put(client, name, &format!("i{which}"), actor.map(user)).await.status.as_u16();
            assert_eq!(status, known.map_or(201, |known| if things[known].2 { 410 } else { 200 }));
            if known.is_none() {
                things.push((which, actor, false));
            }
        }
        3 => {
            assert_eq!(delete(client, name, &format!("i{which}")).await, if known.is_some() { 204 } else { 404 });
            if let Some(known) = known {
                things[known].2 = true;
            }
        }
        _ => {
            let up_to = (dice.roll(2) == 0).then(|| dice.roll(things.len() + 3));
            access(client, user(at), name, up_to.map(|up_to| i64::try_from(up_to).unwrap())).await;
            let to = up_to.unwrap_or(things.len()).min(things.len());
            marks[at] = Some(marks[at].map_or(things.len(), |mark| mark.max(to)));
        }
    }
}

both_tiers! {
    async fn every_sequence_matches_a_model(world: World) {
        let nodes = world.nodes().await;
        let clients: Vec<_> = nodes.iter().map(|node| node.client.clone()).collect();
        for seed in 1..=3 {
            explore(&clients, seed).await;
        }
        Node::stop_all(nodes).await;
    }
}
