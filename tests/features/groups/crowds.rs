//! Groups that many write to at once, and random ones against plain sets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::{chats, join, leave, make, read, read_one, recall, send, shown};
use crate::both_tiers;
use crate::features::receipts;
use crate::support::{Dice, Node, eventually};

both_tiers! {
    async fn concurrent_senders_leave_no_gap_for_a_reader_that_follows(world: World) {
        let nodes = world.nodes().await;
        let senders: Vec<i64> = (1..=8).collect();
        make(&nodes[0].client, 3, &[senders.clone(), vec![99]].concat()).await;
        const EACH: usize = 12;
        let reader = nodes.last().unwrap().client.clone();
        let following = tokio::spawn(async move {
            let (mut after, mut seen) = (0, Vec::new());
            while seen.len() < 8 * EACH {
                let page = reader.get(&format!("/v1/groups/3/messages?after={after}&limit=7")).await.ok();
                seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()));
                after = page["next_after"].as_i64().unwrap();
            }
            seen
        });
        join_all(senders.iter().map(|sender| {
            let client = nodes[usize::try_from(*sender).unwrap() % nodes.len()].client.clone();
            async move {
                let mut last = 0;
                for n in 0..EACH {
                    let seq = send(&client, 3, *sender, &format!("m{n}")).await.ok()["seq"].as_i64().unwrap();
                    assert!(seq > last);
                    last = seq;
                    // A retry, through any node, is the same message.
                    assert_eq!(send(&client, 3, *sender, &format!("m{n}")).await.ok()["seq"], seq);
                }
            }
        }))
        .await;
        let seen = tokio::time::timeout(Duration::from_secs(30), following).await.expect("it sees all").unwrap();
        assert_eq!(seen, (1..=i64::try_from(8 * EACH).unwrap()).collect::<Vec<_>>());
        Node::stop_all(nodes).await;
    }

    async fn random_groups_equal_plain_sets(world: World) {
        // Of each group: its messages (sender, recalled), and of each user the stays: messages
        // there, messages read, whether it goes on.
        #[derive(Default)]
        struct Group {
            messages: Vec<(i64, bool)>,
            stays: BTreeMap<i64, receipts::Stays>,
        }
        impl Group {
            fn unread(&self, user: i64) -> Option<i64> {
                let (there, read, open) = self.stays.get(&user)?.last()?;
                let left = there.difference(read).filter(|seq| !self.messages[usize::try_from(**seq - 1).unwrap()].1);
                open.then(|| left.count().try_into().unwrap())
            }
        }
        const USERS: i64 = 4;
        let mut dice = Dice::new(23);
        let mut nodes = world.nodes().await;
        let mut groups: BTreeMap<i64, Group> = BTreeMap::new();
        for group in 1..=3 {
            make(&nodes[0].client, group, &[]).await;
            groups.insert(group, Group::default());
        }
        for round in 0..220 {
            let client = nodes[dice.roll(nodes.len())].client.clone();
            let (id, user) = (1 + i64::try_from(dice.roll(3)).unwrap(), 1 + i64::try_from(dice.roll(4)).unwrap());
            let group = groups.get_mut(&id).unwrap();
            let head = i64::try_from(group.messages.len()).unwrap();
            let open = group.stays.get(&user).and_then(|stays| stays.last()).is_some_and(|(.., open)| *open);
            let picked = 1 + i64::try_from(dice.roll(usize::try_from(head).unwrap() + 1)).unwrap();
            match dice.roll(12) {
                0 | 1 => {
                    assert_eq!(join(&client, id, user).await.status, if open { 200 } else { 201 });
                    if !open {
                        group.stays.entry(user).or_default().push((BTreeSet::new(), BTreeSet::new(), true));
                    }
                }
                2 => {
                    assert_eq!(leave(&client, id, user).await, 204);
                    if let Some(stay) = group.stays.get_mut(&user).and_then(|stays| stays.last_mut()) {
                        stay.2 = false;
                    }
                }
                3..=6 => {
                    let reply = send(&client, id, user, &format!("r{round}")).await;
                    assert_eq!(reply.status, if open { 201 } else { 403 });
                    if open {
                        assert_eq!(reply.ok()["seq"], head + 1);
                        group.messages.push((user, false));
                        group.stays.values_mut().flatten().filter(|(.., open)| *open).for_each(|stay| { stay.0.insert(head + 1); });
                        let stay = group.stays.get_mut(&user).unwrap().last_mut().unwrap();
                        stay.1 = stay.0.clone();
                    }
                }
                7 | 8 if open => {
                    let reply = read(&client, user, id, Some(picked)).await.ok();
                    let stay = group.stays.get_mut(&user).unwrap().last_mut().unwrap();
                    stay.1.extend(stay.0.iter().filter(|seq| **seq <= picked));
                    // A node may not have heard yet of what another sent; from what it answers,
                    // nothing is ever missing that it has acknowledged itself.
                    assert!(reply["unread"].as_i64().unwrap() <= group.unread(user).unwrap());
                }
                9 | 10 if open => {
                    let reply = read_one(&client, user, id, picked).await;
                    let stay = group.stays.get_mut(&user).unwrap().last_mut().unwrap();
                    match reply.status.as_u16() {
                        200 => { stay.1.insert(picked); }
                        410 => assert!(group.messages[usize::try_from(picked - 1).unwrap()].1),
                        status => assert!(status == 404 && !stay.0.contains(&picked), "{status}"),
                    }
                }
                11 if picked <= head => {
                    assert_eq!(recall(&client, id, picked).await.status, 204);
                    group.messages[usize::try_from(picked - 1).unwrap()].1 = true;
                }
                _ => {}
            }
            if round % 55 == 54 {
                Node::stop_all(nodes).await;
                nodes = world.nodes().await;
            }
            if round % 40 == 39 {
                for node in &nodes {
                    node.app.state().summaries.parts.feed.feeds.clear();
                }
            }
            if round % 10 == 9 {
                for user in 1..=USERS {
                    let wanted: BTreeMap<_, _> = groups.iter().filter_map(|(id, group)| Some((*id, (group.unread(user)?, i64::try_from(group.messages.len()).unwrap())))).collect();
                    for node in &nodes {
                        eventually("every node shows the same", async || shown(&node.client, user).await == wanted).await;
                        let sum: i64 = wanted.values().map(|(unread, _)| unread).sum();
                        let some = wanted.values().filter(|(unread, _)| *unread > 0).count();
                        assert_eq!(chats(&node.client, user).await, json!({"unread": sum, "mentions": 0, "groups": some, "directs": 0}));
                    }
                }
            }
        }
        receipts::compare(&nodes[0].client, &groups.iter().map(|(id, group)| {
            let stays = group.stays.iter().map(|(user, stays)| (*user, stays.clone())).collect();
            (*id, (group.messages.clone(), stays))
        }).collect()).await;
        Node::stop_all(nodes).await;
    }
}
