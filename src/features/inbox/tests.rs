//! The rules against a naive model: an inbox as a list, every number as a count of it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::engine::lanes::{Command as _, Rows};
use crate::features::inbox::rows::InboxRows;

const USERS: i64 = 3;

#[derive(Debug, Clone)]
enum Act {
    Send { sender: i64, receiver: i64, client: u8 },
    Read { user: i64, peer: i64, up_to: Option<i64> },
    Mute { user: i64, peer: i64, muted: bool },
    Cursor { user: i64, device: u8, seq: i64 },
    DeleteDevice { user: i64, device: u8 },
}

fn acts() -> impl Strategy<Value = Vec<(Act, bool)>> {
    let (user, small) = (1..=USERS, 0..6_u8);
    let act = prop_oneof![
        6 => (user.clone(), user.clone(), small.clone()).prop_map(|(sender, receiver, client)| Act::Send { sender, receiver, client }),
        4 => (user.clone(), user.clone(), prop::option::of(0..15_i64)).prop_map(|(user, peer, up_to)| Act::Read { user, peer, up_to }),
        2 => (user.clone(), user.clone(), any::<bool>()).prop_map(|(user, peer, muted)| Act::Mute { user, peer, muted }),
        2 => (user.clone(), small.clone(), 0..15_i64).prop_map(|(user, device, seq)| Act::Cursor { user, device, seq }),
        1 => (user, small).prop_map(|(user, device)| Act::DeleteDevice { user, device }),
    ];
    // Whether what was done is taken back, as where something after it is refused.
    prop::collection::vec((act, prop::bool::weighted(0.15)), 1..80)
}

fn user(id: i64) -> UserId {
    UserId::try_from(id).unwrap()
}

fn client(n: u8) -> ClientId {
    format!("c-{n}").parse().unwrap()
}

/// A row of an inbox: the other side, whether it is the owner's own, and its id.
type Row = (i64, bool, u8);

#[derive(Debug, Default, Clone)]
struct Owner {
    rows: Vec<Row>,
    /// Of each chat, up to which row it is read, and whether it is muted.
    chats: BTreeMap<i64, (usize, bool)>,
    devices: BTreeMap<u8, usize>,
}

impl Owner {
    fn unread(&self, peer: i64) -> i64 {
        let read_to = self.chats.get(&peer).map_or(0, |(read_to, _)| *read_to);
        self.rows.iter().skip(read_to).filter(|(of, own, _)| *of == peer && !own).count().try_into().unwrap()
    }

    fn sums(&self) -> (i64, i64) {
        let unread = |peer: i64| if self.chats.get(&peer).is_some_and(|(_, muted)| *muted) { 0 } else { self.unread(peer) };
        let each: Vec<_> = (1..=USERS).map(unread).filter(|unread| *unread > 0).collect();
        (each.iter().sum(), each.len().try_into().unwrap())
    }

    fn seq_of(&self, row: Row) -> Option<i64> {
        self.rows.iter().position(|known| *known == row).map(|at| i64::try_from(at).unwrap() + 1)
    }

    fn up_to(&self, up_to: Option<i64>) -> usize {
        up_to.map_or(self.rows.len(), |up_to| usize::try_from(up_to).unwrap().min(self.rows.len()))
    }
}

fn command(act: &Act) -> InboxCommand {
    match *act {
        Act::Send { sender, receiver, client: n } => {
            InboxCommand::Send { receiver: user(receiver), sender: user(sender), client: client(n), content: "text".into() }
        }
        Act::Read { user: id, peer, up_to } => InboxCommand::Read { user: user(id), peer: user(peer), up_to },
        Act::Mute { user: id, peer, muted } => InboxCommand::Mute { user: user(id), peer: user(peer), muted },
        Act::Cursor { user: id, device, seq } => InboxCommand::PutCursor { user: user(id), device: client(device), seq },
        Act::DeleteDevice { user: id, device } => InboxCommand::DeleteDevice { user: user(id), device: client(device) },
    }
}

/// Does it to the model, and says what the answer must have: its status, and the number in one
/// field of it.
fn expect(owners: &mut BTreeMap<i64, Owner>, act: &Act) -> (u16, Option<(&'static str, i64)>) {
    match *act {
        Act::Send { sender, receiver, client } => {
            let row = (sender, sender == receiver, client);
            let owner = owners.entry(receiver).or_default();
            if let Some(seq) = owner.seq_of(row) {
                return (200, Some(("seq", seq)));
            }
            owner.rows.push(row);
            let seq = i64::try_from(owner.rows.len()).unwrap();
            if sender != receiver {
                owners.entry(sender).or_default().rows.push((receiver, true, client));
            }
            (201, Some(("seq", seq)))
        }
        Act::Read { user, peer, up_to } => {
            let owner = owners.entry(user).or_default();
            let to = owner.up_to(up_to);
            let chat = owner.chats.entry(peer).or_default();
            chat.0 = chat.0.max(to);
            (200, Some(("unread", owner.unread(peer))))
        }
        Act::Mute { user, peer, muted } => {
            let owner = owners.entry(user).or_default();
            owner.chats.entry(peer).or_default().1 = muted;
            (200, Some(("unread", owner.unread(peer))))
        }
        Act::Cursor { user, device, seq } => {
            let owner = owners.entry(user).or_default();
            let to = owner.up_to(Some(seq));
            let cursor = owner.devices.entry(device).or_default();
            *cursor = (*cursor).max(to);
            (200, Some(("cursor", i64::try_from(*cursor).unwrap())))
        }
        Act::DeleteDevice { user, device } => {
            let known = owners.entry(user).or_default().devices.remove(&device).is_some();
            (if known { 204 } else { 404 }, None)
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_done_the_numbers_are_counts_of_the_rows(acts in acts()) {
        let (mut rows, mut owners) = (Rows::new(crate::app::ROW_SETS), BTreeMap::new());
        for (at, (act, undone)) in acts.iter().enumerate() {
            let (before, revisions) = (owners.clone(), [1, 2, 3].map(|id| rows.revision(user(id))));
            let (status, number) = expect(&mut owners, act);
            let answer = command(act).apply(&mut rows, UnixMs(1000 + i64::try_from(at).unwrap()));
            match &answer {
                Ok(answer) => {
                    prop_assert_eq!(answer.status(), status);
                    if let Some((field, expected)) = number {
                        let body: Value = serde_json::from_str(&answer.json().unwrap()).unwrap();
                        prop_assert_eq!(&body[field], expected, "{:?} {}", act, body);
                    }
                }
                Err(problem) => prop_assert_eq!(problem.code.status().as_u16(), status),
            }
            if *undone || answer.is_err() {
                rows.undo();
                owners = before;
                prop_assert_eq!([1, 2, 3].map(|id| rows.revision(user(id))), revisions, "no trace is left");
            } else {
                rows.settle();
            }
            for id in 1..=USERS {
                let (row, owner) = (rows.user(user(id)), owners.get(&id).cloned().unwrap_or_default());
                prop_assert_eq!(((row.direct_unread, row.direct_chats), row.inbox_seq), (owner.sums(), i64::try_from(owner.rows.len()).unwrap()));
                prop_assert!(row.revision >= revisions[usize::try_from(id - 1).unwrap()]);
                for peer in 1..=USERS {
                    prop_assert_eq!(rows.get::<InboxRows>().direct(user(id), user(peer)).unread(), owner.unread(peer), "{} of {}", id, peer);
                }
            }
        }
    }
}

#[test]
fn a_users_devices_are_all_found_and_no_others() {
    let mut found = devices::DeviceRows::default();
    let device = |cursor| Some(devices::Device { cursor, seen_at: UnixMs(1), created_at: UnixMs(1) });
    for (of, id, cursor) in [(1, "z", 1), (2, "-", 2), (2, ".", 3), (2, "0", 4), (2, "zz", 5), (3, "-", 6)] {
        found.set(user(of), &id.parse().unwrap(), device(cursor));
    }
    assert_eq!(found.of_user(user(2)).map(|device| device.cursor).collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert_eq!(found.of_user(user(4)).count(), 0);
}
