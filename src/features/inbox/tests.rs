//! The rules against a naive model: an inbox as a list, every number as a count of it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::engine::lanes::{Command as _, Rows};
use crate::features::inbox::rows::InboxRows;
use crate::features::level::LevelUntil;

const USERS: i64 = 3;

#[derive(Debug, Clone)]
enum Act {
    Send {
        sender: i64,
        receiver: i64,
        client: u8,
    },
    Read {
        user: i64,
        peer: i64,
        up_to: Option<i64>,
    },
    Unread {
        user: i64,
        peer: i64,
        from: i64,
    },
    Recall {
        user: i64,
        peer: i64,
        seq: i64,
    },
    /// So much later it ends; 0: never. None: the chat counts.
    Level {
        user: i64,
        peer: i64,
        none_for: Option<i64>,
    },
    Cursor {
        user: i64,
        device: u8,
        seq: i64,
    },
    DeleteDevice {
        user: i64,
        device: u8,
    },
}

fn acts() -> impl Strategy<Value = Vec<(Act, bool)>> {
    let (user, small, seq) = (1..=USERS, 0..6_u8, 1..16_i64);
    let act = prop_oneof![
        6 => (user.clone(), user.clone(), small.clone()).prop_map(|(sender, receiver, client)| Act::Send { sender, receiver, client }),
        4 => (user.clone(), user.clone(), prop::option::of(0..15_i64)).prop_map(|(user, peer, up_to)| Act::Read { user, peer, up_to }),
        3 => (user.clone(), user.clone(), seq.clone()).prop_map(|(user, peer, from)| Act::Unread { user, peer, from }),
        3 => (user.clone(), user.clone(), seq).prop_map(|(user, peer, seq)| Act::Recall { user, peer, seq }),
        2 => (user.clone(), user.clone(), prop::option::of(0..12_i64)).prop_map(|(user, peer, none_for)| Act::Level { user, peer, none_for }),
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

/// A row of an inbox: the other side, whether it is the owner's own, its id, and the number on the
/// other side. Without an id, it tells of a recall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    peer: i64,
    own: bool,
    client: Option<u8>,
    other_seq: i64,
    recalled: bool,
}

#[derive(Debug, Default, Clone)]
struct Chat {
    read_to: usize,
    unread: BTreeSet<usize>,
    none: Option<i64>,
}

#[derive(Debug, Default, Clone)]
struct Owner {
    rows: Vec<Row>,
    chats: BTreeMap<i64, Chat>,
    devices: BTreeMap<u8, usize>,
}

impl Owner {
    /// The numbers of the peer's messages.
    fn theirs(&self, peer: i64) -> impl Iterator<Item = usize> {
        let rows = self.rows.iter().enumerate().filter(move |(_, row)| row.peer == peer && !row.own && row.client.is_some());
        rows.map(|(at, _)| at + 1)
    }

    fn unread(&self, peer: i64) -> i64 {
        let Some(chat) = self.chats.get(&peer) else { return 0 };
        chat.unread.iter().filter(|seq| !self.rows[**seq - 1].recalled).count().try_into().unwrap()
    }

    /// What sums and ended levels show together at this time.
    fn sums(&self, now: i64) -> (i64, i64) {
        let silent = |chat: &Chat| chat.none.is_some_and(|until| until == 0 || until > now);
        let each: Vec<_> =
            self.chats.iter().filter(|(_, chat)| !silent(chat)).map(|(peer, _)| self.unread(*peer)).filter(|n| *n > 0).collect();
        (each.iter().sum(), each.len().try_into().unwrap())
    }

    fn seq_of(&self, peer: i64, own: bool, client: u8) -> Option<usize> {
        self.rows.iter().position(|row| (row.peer, row.own, row.client) == (peer, own, Some(client))).map(|at| at + 1)
    }

    fn read(&mut self, peer: i64, up_to: usize) {
        let last = self.rows.iter().take(up_to).rposition(|row| row.peer == peer && row.client.is_some()).map_or(0, |at| at + 1);
        let chat = self.chats.entry(peer).or_default();
        chat.read_to = chat.read_to.max(last);
        chat.unread.retain(|seq| *seq > up_to);
    }

    /// As if the mark stood before that row. What is unread already stays so.
    fn unread_again(&mut self, peer: i64, from: usize) {
        let theirs: Vec<_> = self.theirs(peer).filter(|seq| *seq >= from).collect();
        self.chats.entry(peer).or_default().unread.extend(theirs);
    }
}

fn command(act: &Act, now: i64) -> InboxCommand {
    match *act {
        Act::Send { sender, receiver, client: n } => {
            InboxCommand::Send { receiver: user(receiver), sender: user(sender), client: client(n), content: "text".into() }
        }
        Act::Read { user: id, peer, up_to } => InboxCommand::Read { user: user(id), peer: user(peer), up_to },
        Act::Unread { user: id, peer, from } => InboxCommand::Unread { user: user(id), peer: user(peer), from },
        Act::Recall { user: id, peer, seq } => InboxCommand::Recall { user: user(id), peer: user(peer), seq },
        Act::Level { user: id, peer, none_for } => {
            let level = none_for.map_or(LevelUntil::default(), |ms| LevelUntil::new(Level::None, (ms > 0).then_some(UnixMs(now + ms))));
            InboxCommand::SetLevel { user: user(id), peer: user(peer), level }
        }
        Act::Cursor { user: id, device, seq } => InboxCommand::PutCursor { user: user(id), device: client(device), seq },
        Act::DeleteDevice { user: id, device } => InboxCommand::DeleteDevice { user: user(id), device: client(device) },
    }
}

/// A status, and the number in one field of the body.
type Expected = (u16, Option<(&'static str, i64)>);

fn send(owners: &mut BTreeMap<i64, Owner>, (sender, receiver, client): (i64, i64, u8)) -> Expected {
    let own = sender == receiver;
    let (theirs, mine) = (owners.entry(receiver).or_default().rows.len() + 1, owners.entry(sender).or_default().rows.len() + 1);
    if let Some(seq) = owners[&receiver].seq_of(sender, own, client) {
        let recalled = owners[&receiver].rows[seq - 1].recalled;
        return if recalled { (410, None) } else { (200, Some(("seq", i64::try_from(seq).unwrap()))) };
    }
    let row =
        |peer, own, other_seq: usize| Row { peer, own, client: Some(client), other_seq: other_seq.try_into().unwrap(), recalled: false };
    if !own {
        let to = owners.get_mut(&receiver).unwrap();
        to.rows.push(row(sender, false, mine));
        to.chats.entry(sender).or_default().unread.insert(theirs);
    }
    let from = owners.get_mut(&sender).unwrap();
    from.rows.push(row(receiver, true, if own { 0 } else { theirs }));
    from.read(receiver, mine);
    (201, Some(("seq", i64::try_from(theirs).unwrap())))
}

fn recall(owners: &mut BTreeMap<i64, Owner>, (user, peer, seq): (i64, i64, i64)) -> Expected {
    let at = usize::try_from(seq - 1).unwrap();
    let row = owners.entry(user).or_default().rows.get_mut(at).filter(|row| row.peer == peer && row.client.is_some());
    let Some(row) = row else { return (404, None) };
    if !row.own {
        return (403, None);
    }
    if std::mem::replace(&mut row.recalled, true) {
        return (204, None);
    }
    let other_seq = row.other_seq;
    let told = |peer, own| Row { peer, own, client: None, other_seq: 0, recalled: false };
    owners.get_mut(&user).unwrap().rows.push(told(peer, true));
    if user != peer {
        let other = owners.get_mut(&peer).unwrap();
        other.rows[usize::try_from(other_seq - 1).unwrap()].recalled = true;
        other.rows.push(told(user, false));
    }
    (204, None)
}

/// Does it to the model, and says what the answer must have: its status, and the number in one
/// field of it.
fn expect(owners: &mut BTreeMap<i64, Owner>, act: &Act, now: i64) -> Expected {
    let unread = |owner: &Owner, peer| (200, Some(("unread", owner.unread(peer))));
    match *act {
        Act::Send { sender, receiver, client } => send(owners, (sender, receiver, client)),
        Act::Recall { user, peer, seq } => recall(owners, (user, peer, seq)),
        Act::Read { user, peer, up_to } => {
            let owner = owners.entry(user).or_default();
            let head = owner.rows.len();
            owner.read(peer, up_to.map_or(head, |up_to| head.min(up_to.try_into().unwrap())));
            unread(owner, peer)
        }
        Act::Unread { user, peer, from } => {
            let owner = owners.entry(user).or_default();
            let from = usize::try_from(from).unwrap();
            if from > owner.rows.len() || !owner.rows.iter().any(|row| row.peer == peer) {
                return (404, None);
            }
            owner.unread_again(peer, from);
            unread(owner, peer)
        }
        Act::Level { user, peer, none_for } => {
            let owner = owners.entry(user).or_default();
            owner.chats.entry(peer).or_default().none = none_for.map(|ms| if ms > 0 { now + ms } else { 0 });
            unread(owner, peer)
        }
        Act::Cursor { user, device, seq } => {
            let owner = owners.entry(user).or_default();
            let to = owner.rows.len().min(seq.try_into().unwrap());
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

/// What the sums hold and what of it readers add by the clock.
fn shown(rows: &Rows, id: i64, now: i64) -> (i64, i64) {
    let (row, inbox) = (rows.user(user(id)), rows.get::<InboxRows>());
    let ended: Vec<_> = inbox.timed(user(id)).into_iter().map(|peer| inbox.direct(user(id), peer)).collect();
    let ended: Vec<_> = ended.iter().filter(|direct| direct.level.has_ended(UnixMs(now))).map(Direct::unread).collect();
    let chats = i64::try_from(ended.iter().filter(|unread| **unread > 0).count()).unwrap();
    (row.direct_unread + ended.iter().sum::<i64>(), row.direct_chats + chats)
}

proptest! {
    #[test]
    fn whatever_is_done_the_numbers_are_counts_of_the_rows(acts in acts()) {
        let (mut rows, mut owners) = (Rows::new(crate::app::ROW_SETS), BTreeMap::new());
        for (at, (act, undone)) in acts.iter().enumerate() {
            let now = 1000 + i64::try_from(at).unwrap();
            let (before, revisions) = (owners.clone(), [1, 2, 3].map(|id| rows.revision(user(id))));
            let (status, number) = expect(&mut owners, act, now);
            let answer = command(act, now).apply(&mut rows, UnixMs(now));
            match &answer {
                Ok(answer) => {
                    prop_assert_eq!(answer.status(), status, "{:?}", act);
                    if let Some((field, expected)) = number {
                        let body: Value = serde_json::from_str(&answer.json().unwrap()).unwrap();
                        prop_assert_eq!(&body[field], expected, "{:?} {}", act, body);
                    }
                }
                Err(problem) => prop_assert_eq!(problem.code.status().as_u16(), status, "{:?}", act),
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
                prop_assert_eq!((shown(&rows, id, now), row.inbox_seq), (owner.sums(now), i64::try_from(owner.rows.len()).unwrap()));
                prop_assert!(row.revision >= revisions[usize::try_from(id - 1).unwrap()]);
                for peer in 1..=USERS {
                    let direct = rows.get::<InboxRows>().direct(user(id), user(peer));
                    let read_to = owner.chats.get(&peer).map_or(0, |chat| i64::try_from(chat.read_to).unwrap());
                    prop_assert_eq!((direct.unread(), direct.read_seq), (owner.unread(peer), read_to), "{} of {}", id, peer);
                }
            }
        }
    }
}

#[test]
fn a_users_devices_are_all_found_and_no_others() {
    let mut found = devices::DeviceRows::default();
    let device = |cursor| devices::Device { cursor: Some(cursor), push: false, seen_at: UnixMs(1), created_at: UnixMs(1) };
    for (of, id, cursor) in [(1, "z", 1), (2, "-", 2), (2, ".", 3), (2, "0", 4), (2, "zz", 5), (3, "-", 6)] {
        found.set(user(of), &id.parse().unwrap(), device(cursor));
    }
    assert_eq!(found.of_user(user(2)).filter_map(|device| device.cursor).collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert_eq!(found.of_user(user(4)).count(), 0);
    for id in ["zz", "."] {
        found.remove(user(2), &id.parse().unwrap());
    }
    assert_eq!(found.of_user(user(2)).filter_map(|device| device.cursor).collect::<Vec<_>>(), [2, 4]);
    assert_eq!([1, 2].map(|id| found.fetched_by_gone(user(id))), [0, 5], "the furthest of those that are gone");
}
