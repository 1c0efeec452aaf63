//! The rules against a naive model: every list as a list of entries, every entry as a list of
//! notifications, every number as a count of them.

mod silenced;
mod types;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::base::error::Code;
use crate::engine::lanes::{Command as _, Rows};
use crate::features::notifications::rows::NotificationRows;

const USERS: usize = 3;
const KINDS: [&str; 2] = ["notice", "mail"];
const KEYS: [&str; 2] = ["post:1", "post:2"];

#[derive(Debug, Clone)]
enum Act {
    Send { kind: usize, key: Option<usize>, to: Vec<usize> },
    Mark { user: usize, entry: usize, read: bool },
    Named { user: usize, entries: Vec<usize>, up_to: Option<i64> },
    Oldest { user: usize, kind: Option<usize>, up_to: Option<i64> },
    See { user: usize, up_to: Option<i64> },
    Delete { user: usize, entry: usize },
    Edit { notification: usize, title: usize },
    Withdraw { notification: usize },
    Expire { notification: usize, old: usize },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (user, one, up_to) = (0..USERS, 0..16_usize, prop::option::of(0..20_i64));
    let some = prop::collection::btree_set(one.clone(), 1..4).prop_map(Vec::from_iter);
    let to = prop::collection::btree_set(user.clone(), 1..=USERS).prop_map(Vec::from_iter);
    let key = prop::option::weighted(0.8, 0..KEYS.len());
    let act = prop_oneof![
        8 => (0..KINDS.len(), key, to).prop_map(|(kind, key, to)| Act::Send { kind, key, to }),
        4 => (user.clone(), one.clone(), any::<bool>()).prop_map(|(user, entry, read)| Act::Mark { user, entry, read }),
        2 => (user.clone(), some, up_to.clone()).prop_map(|(user, entries, up_to)| Act::Named { user, entries, up_to }),
        2 => (user.clone(), prop::option::of(0..KINDS.len()), up_to.clone()).prop_map(|(user, kind, up_to)| Act::Oldest { user, kind, up_to }),
        3 => (user.clone(), up_to).prop_map(|(user, up_to)| Act::See { user, up_to }),
        2 => (user, one.clone()).prop_map(|(user, entry)| Act::Delete { user, entry }),
        1 => (one.clone(), 0..3_usize).prop_map(|(notification, title)| Act::Edit { notification, title }),
        2 => one.clone().prop_map(|notification| Act::Withdraw { notification }),
        1 => (one.clone(), one).prop_map(|(notification, old)| Act::Expire { notification, old }),
    ];
    prop::collection::vec(act, 1..80)
}

/// An entry of a user's list.
#[derive(Debug, Clone, PartialEq)]
struct Listed {
    /// Its first notification.
    id: usize,
    seq: i64,
    kind: usize,
    key: Option<usize>,
    /// Those that are left.
    holds: Vec<usize>,
    read: bool,
    gone: bool,
}

/// A notification that was sent.
#[derive(Debug, Clone)]
struct Sent {
    to: Vec<usize>,
    title: Option<usize>,
    withdrawn: bool,
    expired: bool,
}

#[derive(Debug, Default)]
struct Model {
    lists: [Vec<Listed>; USERS],
    seqs: [i64; USERS],
    marks: [i64; USERS],
    /// The types that the user ever had.
    types: [[bool; 2]; USERS],
    revisions: [i64; USERS],
    sent: Vec<Sent>,
}

impl Model {
    fn entry(&mut self, user: usize, id: usize) -> Option<&mut Listed> {
        self.lists[user].iter_mut().find(|entry| entry.id == id)
    }

    /// Changes a user's list; a change of what it shows raises the revision.
    fn change(&mut self, user: usize, act: impl FnOnce(&mut Vec<Listed>)) {
        let shown = |list: &[Listed]| list.iter().filter(|entry| !entry.gone).cloned().collect::<Vec<_>>();
        let before = shown(&self.lists[user]);
        act(&mut self.lists[user]);
        self.revisions[user] += i64::from(before != shown(&self.lists[user]));
    }

    fn count(&self, user: usize, kind: usize) -> Option<(i64, i64)> {
        let unread = || self.lists[user].iter().filter(|entry| entry.kind == kind && !entry.read && !entry.gone);
        let unseen = unread().filter(|entry| entry.seq > self.marks[user]).count();
        self.types[user][kind].then_some((unread().count().try_into().unwrap(), unseen.try_into().unwrap()))
    }

    fn send(&mut self, notification: usize, kind: usize, key: Option<usize>, to: usize) {
        self.seqs[to] += 1;
        let seq = self.seqs[to];
        self.types[to][kind] = true;
        self.change(to, |list| {
            let open =
                list.iter_mut().filter(|entry| key.is_some() && (entry.kind, entry.key) == (kind, key) && !entry.read && !entry.gone);
            match open.max_by_key(|entry| entry.seq) {
                Some(open) => {
                    open.seq = seq;
                    open.holds.push(notification);
                }
                None => list.push(Listed { id: notification, seq, kind, key, holds: vec![notification], read: false, gone: false }),
            }
        });
    }

    /// Takes a notification out of every list.
    fn take_out(&mut self, notification: usize) {
        for user in 0..USERS {
            self.change(user, |list| {
                for entry in list.iter_mut() {
                    entry.holds.retain(|held| *held != notification);
                    entry.gone |= entry.holds.is_empty();
                }
            });
        }
    }

    fn read_where(&mut self, user: usize, up_to: Option<i64>, meant: impl Fn(&Listed) -> bool) {
        let these = |list: &mut Vec<Listed>| {
            let meant = list.iter_mut().filter(|entry| !entry.gone && entry.seq <= up_to.unwrap_or(i64::MAX) && meant(entry));
            meant.for_each(|entry| entry.read = true);
        };
        self.change(user, these);
    }
}

fn user(at: usize) -> UserId {
    UserId::try_from(i64::try_from(at).unwrap() + 1).unwrap()
}

fn id(at: usize) -> NotificationId {
    NotificationId::try_from(i64::try_from(at).unwrap() + 101).unwrap()
}

fn kind(at: usize) -> Name {
    KINDS[at].parse().unwrap()
}

/// One command, settled or undone as a lane does.
fn run(rows: &mut Rows, command: &NotificationCommand) -> Result<Value, Code> {
    match command.apply(rows, UnixMs(5)) {
        Ok(answer) => {
            rows.settle();
            Ok(serde_json::from_str(&answer.json().unwrap()).unwrap_or(Value::Null))
        }
        Err(problem) => {
            rows.undo();
            Err(problem.code)
        }
    }
}

fn send(to: &[usize], notification: usize, of: usize, key: Option<usize>) -> NotificationCommand {
    let ids = vec![id(notification)];
    let content = Content { group_key: key.map(|key| KEYS[key].parse().unwrap()), ..Content::default() };
    let stored = content.stored().unwrap();
    let recipients = to.iter().map(|at| user(*at)).collect();
    NotificationCommand::Send(NewNotification { ids, kind: kind(of), content, stored, recipients })
}

/// What a lookup of this entry by this user is to answer where it is not there.
fn refusal(entry: Option<&Listed>) -> Option<Code> {
    match entry {
        None => Some(Code::NotFound),
        Some(entry) if entry.gone => Some(Code::Gone),
        Some(_) => None,
    }
}

fn everybody(sent: Option<&Sent>) -> Vec<UserId> {
    sent.into_iter().flat_map(|sent| &sent.to).map(|at| user(*at)).collect()
}

fn step(rows: &mut Rows, model: &mut Model, act: &Act) {
    match act {
        Act::Send { kind, key, to } => {
            let notification = model.sent.len();
            let answer = run(rows, &send(to, notification, *kind, *key)).unwrap();
            assert_eq!(answer["notification_id"], id(notification).to_string());
            model.sent.push(Sent { to: to.clone(), title: None, withdrawn: false, expired: false });
            to.iter().for_each(|user| model.send(notification, *kind, *key, *user));
        }
        Act::Mark { user: at, entry, read } => {
            let answer = run(rows, &NotificationCommand::Mark { user: user(*at), id: id(*entry), read: *read, kept_from: 0 });
            if let Some(code) = refusal(model.entry(*at, *entry).as_deref()) {
                return assert_eq!(answer, Err(code));
            }
            let of = model.entry(*at, *entry).unwrap().kind;
            model.change(*at, |list| list.iter_mut().filter(|listed| listed.id == *entry).for_each(|listed| listed.read = *read));
            let answer = answer.unwrap();
            let numbers = answer["unread"].as_i64().zip(answer["unseen"].as_i64());
            assert_eq!(numbers, model.count(*at, of));
            assert_eq!((answer["read_at"].is_string(), answer["revision"].as_i64()), (*read, Some(model.revisions[*at])));
        }
        Act::Named { user: at, entries, up_to } => {
            let which = Which::Named(entries.iter().map(|entry| id(*entry)).collect());
            let up_to_seq = up_to.unwrap_or(i64::MAX);
            let answer = run(rows, &NotificationCommand::MarkMany { user: user(*at), which, up_to: up_to_seq, kept_from: 0 });
            let refusals: Vec<_> = entries.iter().filter_map(|entry| refusal(model.entry(*at, *entry).as_deref())).collect();
            if let Some(first) = refusals.iter().find(|code| **code == Code::NotFound).or(refusals.first()) {
                return assert_eq!(answer, Err(*first));
            }
            many(model, *at, &answer.unwrap(), *up_to, |entry| entries.contains(&entry.id));
        }
        Act::Oldest { user: at, kind: of, up_to } => {
            let which = Which::Oldest(of.map(kind), FIRST_ROWS);
            let up_to_seq = up_to.unwrap_or(i64::MAX);
            let answer = run(rows, &NotificationCommand::MarkMany { user: user(*at), which, up_to: up_to_seq, kept_from: 0 });
            many(model, *at, &answer.unwrap(), *up_to, |entry| of.is_none_or(|of| of == entry.kind));
        }
        Act::See { user: at, up_to } => {
            let answer = run(rows, &NotificationCommand::See { user: user(*at), up_to: up_to.unwrap_or(i64::MAX) }).unwrap();
            let mark = up_to.unwrap_or(i64::MAX).min(model.seqs[*at]);
            if mark > model.marks[*at] {
                (model.marks[*at], model.revisions[*at]) = (mark, model.revisions[*at] + 1);
            }
            let unseen: i64 = (0..KINDS.len()).filter_map(|of| model.count(*at, of)).map(|(_, unseen)| unseen).sum();
            assert_eq!((answer["unseen"].as_i64(), answer["revision"].as_i64()), (Some(unseen), Some(model.revisions[*at])));
        }
        Act::Delete { user: at, entry } => {
            let answer = run(rows, &NotificationCommand::Delete { user: user(*at), id: id(*entry), kept_from: 0 });
            assert_eq!(answer.err(), model.entry(*at, *entry).map_or(Some(Code::NotFound), |_| None));
            model.change(*at, |list| list.iter_mut().filter(|listed| listed.id == *entry).for_each(|listed| listed.gone = true));
        }
        Act::Edit { .. } | Act::Withdraw { .. } | Act::Expire { .. } => leave(rows, model, act),
    }
}

fn leave(rows: &mut Rows, model: &mut Model, act: &Act) {
    match act {
        Act::Edit { notification, title } => {
            let edit = Edit { title: Some(title.to_string()), ..Edit::default() };
            let recipients = everybody(model.sent.get(*notification));
            let answer = run(rows, &NotificationCommand::Edit { id: id(*notification), edit, recipients, kept_from: 0 });
            let Some(sent) = model.sent.get_mut(*notification).filter(|sent| !sent.expired) else {
                return assert_eq!(answer, Err(Code::NotFound));
            };
            if sent.withdrawn {
                return assert_eq!(answer, Err(Code::Gone));
            }
            if sent.title.replace(*title) != Some(*title) {
                for user in 0..USERS {
                    let shows = model.lists[user].iter().any(|entry| !entry.gone && entry.holds.contains(notification));
                    model.revisions[user] += i64::from(shows);
                }
            }
            let holds = |user: &&Vec<Listed>| user.iter().any(|entry| entry.read && entry.holds.contains(notification));
            assert_eq!(answer.unwrap()["read_count"], model.lists.iter().filter(holds).count());
        }
        Act::Withdraw { notification } => {
            let recipients = everybody(model.sent.get(*notification));
            run(rows, &NotificationCommand::Withdraw { id: id(*notification), recipients, kept_from: 0 }).unwrap();
            if let Some(sent) = model.sent.get_mut(*notification).filter(|sent| !sent.expired) {
                sent.withdrawn = true;
                model.take_out(*notification);
            }
        }
        Act::Expire { notification, old } => {
            let recipients = everybody(model.sent.get(*notification));
            run(rows, &NotificationCommand::Expire { id: id(*notification), recipients, kept_from: id(*old).get() }).unwrap();
            if let Some(sent) = model.sent.get_mut(*notification) {
                sent.expired = true;
                let held = |entry: &Listed| entry.holds.contains(notification);
                let holders: Vec<Vec<_>> =
                    model.lists.iter().map(|list| list.iter().filter(|entry| held(entry)).map(|entry| entry.id).collect()).collect();
                model.take_out(*notification);
                for (list, held) in model.lists.iter_mut().zip(holders) {
                    // An emptied entry goes with what began it, or where that has gone before.
                    let goes = |entry: &Listed| entry.id == *notification || (entry.id < *old && held.contains(&entry.id));
                    list.retain(|entry| !entry.holds.is_empty() || !goes(entry));
                }
            }
        }
        _ => {}
    }
}

fn many(model: &mut Model, at: usize, answer: &Value, up_to: Option<i64>, meant: impl Fn(&Listed) -> bool) {
    let total = |model: &Model| (0..KINDS.len()).filter_map(|kind| model.count(at, kind)).map(|(unread, _)| unread).sum::<i64>();
    let before = total(model);
    model.read_where(at, up_to, meant);
    assert_eq!(answer["changed"], before - total(model));
    assert_eq!(answer["revision"], model.revisions[at]);
    for (of, name) in KINDS.iter().enumerate() {
        let shown = &answer["counts"][name];
        assert_eq!(shown["unread"].as_i64().zip(shown["unseen"].as_i64()), model.count(at, of));
    }
    assert_eq!(answer["more_up_to"], Value::Null);
}

/// What the rows have of a user's entries: seq, id, how many notifications, whether it is gone.
fn rows_of(rows: &Rows, at: usize) -> Vec<(i64, NotificationId, i64, bool)> {
    let of = rows.get::<NotificationRows>();
    let mut found: Vec<_> = of.of_user(user(at)).map(|(id, entry)| (entry.seq, id, entry.notifications, entry.gone)).collect();
    found.sort_unstable();
    found
}

proptest! {
    #[test]
    fn numbers_are_counts_of_the_lists(acts in acts()) {
        let (mut rows, mut model) = (Rows::new(crate::app::ROW_SETS), Model::default());
        for act in &acts {
            step(&mut rows, &mut model, act);
            for at in 0..USERS {
                for of in 0..KINDS.len() {
                    let count = rows.get::<NotificationRows>().count(user(at), &kind(of).shared());
                    assert_eq!(count.map(|count| (count.unread, count.unseen())), model.count(at, of), "{act:?}");
                }
                // A row that is gone and empty is of no account, unless someone may yet ask for it.
                let found: Vec<_> = rows_of(&rows, at).into_iter().filter(|(.., notifications, gone)| *notifications > 0 || !gone).collect();
                let listed = model.lists[at].iter().filter(|entry| !entry.holds.is_empty());
                let mut expected: Vec<_> = listed.map(|entry| (entry.seq, id(entry.id), i64::try_from(entry.holds.len()).unwrap(), entry.gone)).collect();
                expected.sort_unstable();
                assert_eq!((found, rows.revision(user(at))), (expected, model.revisions[at]), "{act:?}");
            }
        }
    }
}

#[test]
fn the_thousand_and_first_notification_begins_a_new_entry() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    for at in 0..1002 {
        run(&mut rows, &send(&[0], at, 0, Some(0))).unwrap();
    }
    assert_eq!(rows_of(&rows, 0), [(1000, id(0), 1000, false), (1002, id(1000), 2, false)]);
    // The one with the highest seq is joined, whatever room the others have.
    run(&mut rows, &NotificationCommand::Withdraw { id: id(5), recipients: vec![user(0)], kept_from: 0 }).unwrap();
    run(&mut rows, &send(&[0], 1002, 0, Some(0))).unwrap();
    assert_eq!(rows_of(&rows, 0), [(1000, id(0), 999, false), (1003, id(1000), 3, false)]);
}

#[test]
fn emptied_entries_leave_no_row_behind_once_all_has_expired() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    for at in 0..3 {
        run(&mut rows, &send(&[0], at, 0, Some(0))).unwrap();
    }
    let recipients = vec![user(0)];
    let expire = |rows: &mut Rows, at: usize| {
        run(rows, &NotificationCommand::Expire { id: id(at), recipients: vec![user(0)], kept_from: id(at + 1).get() })
    };
    expire(&mut rows, 0).unwrap();
    expire(&mut rows, 1).unwrap();
    assert_eq!(rows_of(&rows, 0), [(3, id(0), 1, false)], "the last one keeps it");
    run(&mut rows, &NotificationCommand::Withdraw { id: id(2), recipients, kept_from: id(2).get() }).unwrap();
    assert_eq!(rows_of(&rows, 0), [], "nothing would ever remove it later");
    run(&mut rows, &send(&[0], 3, 0, Some(0))).unwrap();
    run(&mut rows, &NotificationCommand::Withdraw { id: id(3), recipients: vec![user(0)], kept_from: 0 }).unwrap();
    assert_eq!(rows_of(&rows, 0), [(4, id(3), 0, true)], "it says that the entry is gone");
    expire(&mut rows, 3).unwrap();
    assert_eq!(rows_of(&rows, 0), []);
}

#[test]
fn one_type_too_many_for_one_recipient_sends_to_nobody() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    let to = |at: usize, name: &str, users: &[usize]| {
        NotificationCommand::Send(NewNotification {
            ids: vec![id(at)],
            kind: name.parse().unwrap(),
            content: Content::default(),
            stored: "{}".to_owned(),
            recipients: users.iter().map(|at| user(*at)).collect(),
        })
    };
    for at in 0..100 {
        run(&mut rows, &to(at, &format!("t{at}"), &[1])).unwrap();
    }
    let problem = to(200, "one-more", &[0, 1, 2]).apply(&mut rows, UnixMs(1)).unwrap_err();
    rows.undo();
    assert_eq!((problem.code, problem.errors[0].pointer.as_str()), (Code::TooMany, "/recipients/1"));
    assert_eq!(
        (rows.revision(user(0)), rows.user(user(0)).notification_seq, rows.get::<NotificationRows>().is_withdrawn(id(200))),
        (0, 0, None)
    );
    run(&mut rows, &to(201, "t7", &[0, 1])).unwrap();
    assert_eq!(rows.user(user(1)).notification_seq, 101);
    rows.get_mut::<NotificationRows>().set_silence(user(1), user(2), |silence| silence.blocked = true);
    rows.settle();
    let NotificationCommand::Send(new) = to(202, "one-more", &[1]) else { panic!("another command") };
    let content = Content { actor_id: Some(user(2)), ..Content::default() };
    let silenced = NotificationCommand::Send(NewNotification { content, ..new });
    assert_eq!(run(&mut rows, &silenced), Err(Code::TooMany), "the sender cannot tell who is silenced");
}

#[test]
fn ids_are_of_the_time_and_differ() {
    let ids = candidates(UnixMs(1_800_000_000_000));
    assert_eq!(ids.len(), CANDIDATES);
    assert!(ids.iter().all(|id| id.get() >> RANDOM_BITS == 1_800_000_000_000));
    assert!(candidates(UnixMs(-5)).iter().all(|id| id.get() > 0));
    let many: std::collections::BTreeSet<_> = (0..200).flat_map(|_| candidates(UnixMs(1))).collect();
    assert!(many.len() > 590, "{}", many.len());
}

#[test]
fn a_notification_whose_ids_are_all_taken_is_refused() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    run(&mut rows, &send(&[0], 0, 0, None)).unwrap();
    assert_eq!(run(&mut rows, &send(&[0], 0, 0, None)), Err(Code::Overloaded));
    assert_eq!(rows.user(user(0)).notification_seq, 1);
    let NotificationCommand::Send(new) = send(&[0], 0, 0, None) else { panic!("another command") };
    let two = NotificationCommand::Send(NewNotification { ids: vec![id(0), id(1)], ..new });
    assert_eq!(run(&mut rows, &two).unwrap()["notification_id"], id(1).to_string());
}

#[test]
fn content_of_an_earlier_version_is_read() {
    let stored = r#"{"title":"Hello","content":"World"}"#.to_owned();
    let notification = Notification { kind: kind(0), stored, created_at: UnixMs(7), recipients: 1 };
    let content = notification.content();
    assert_eq!(
        (content.title.as_deref(), content.content.as_deref(), content.modified_at(UnixMs(7))),
        (Some("Hello"), Some("World"), UnixMs(7))
    );
    let edit = Edit { title: Some("Hello".to_owned()), ..Edit::default() };
    assert!(edit.of(&content, UnixMs(9), UnixMs(7)).is_none(), "nothing changes");
    let edit = Edit { content: Some("all".to_owned()), ..Edit::default() };
    let edited = edit.of(&content, UnixMs(3), UnixMs(7)).unwrap();
    assert_eq!((edited.title.as_deref(), edited.content.as_deref(), edited.edited_at), (Some("Hello"), Some("all"), Some(7)));
}
