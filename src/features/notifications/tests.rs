//! The rule against a naive model: every list as a list, every number as a count of it.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::base::error::Code;
use crate::engine::lanes::{Command as _, Rows};
use crate::features::notifications::rows::NotificationRows;

const USERS: usize = 3;
const KINDS: [&str; 2] = ["notice", "mail"];

#[derive(Debug, Clone)]
enum Act {
    Send { kind: usize, to: Vec<usize> },
    Mark { user: usize, notification: usize, read: bool },
    Named { user: usize, notifications: Vec<usize>, up_to: Option<i64> },
    Oldest { user: usize, kind: Option<usize>, up_to: Option<i64> },
    Delete { user: usize, notification: usize },
    Withdraw { notification: usize },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (user, notification, up_to) = (0..USERS, 0..12_usize, prop::option::of(0..8_i64));
    let some = prop::collection::btree_set(notification.clone(), 1..4).prop_map(Vec::from_iter);
    let act = prop_oneof![
        4 => (0..KINDS.len(), prop::collection::btree_set(user.clone(), 1..=USERS)).prop_map(|(kind, to)| Act::Send { kind, to: to.into_iter().collect() }),
        4 => (user.clone(), notification.clone(), any::<bool>()).prop_map(|(user, notification, read)| Act::Mark { user, notification, read }),
        2 => (user.clone(), some, up_to.clone()).prop_map(|(user, notifications, up_to)| Act::Named { user, notifications, up_to }),
        2 => (user.clone(), prop::option::of(0..KINDS.len()), up_to).prop_map(|(user, kind, up_to)| Act::Oldest { user, kind, up_to }),
        2 => (user, notification.clone()).prop_map(|(user, notification)| Act::Delete { user, notification }),
        1 => notification.prop_map(|notification| Act::Withdraw { notification }),
    ];
    prop::collection::vec(act, 1..60)
}

/// What a user has of a notification.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Has {
    notification: usize,
    kind: usize,
    read: bool,
    gone: bool,
}

#[derive(Debug, Default)]
struct Model {
    /// Of each user, in the order of arrival.
    lists: [Vec<Has>; USERS],
    revisions: [i64; USERS],
    sent: Vec<Vec<usize>>,
}

impl Model {
    /// Changes a user's list; a change raises the revision.
    fn change(&mut self, user: usize, act: impl FnOnce(&mut Vec<Has>)) {
        let before = self.lists[user].clone();
        act(&mut self.lists[user]);
        self.revisions[user] += i64::from(before != self.lists[user]);
    }

    fn unread(&self, user: usize, kind: usize) -> Option<i64> {
        let mut of_kind = self.lists[user].iter().filter(|has| has.kind == kind).peekable();
        of_kind.peek()?;
        Some(of_kind.filter(|has| !has.read && !has.gone).count().try_into().unwrap())
    }

    fn has(&self, user: usize, notification: usize) -> Option<Has> {
        self.lists[user].iter().copied().find(|has| has.notification == notification)
    }

    fn read_where(&mut self, user: usize, up_to: Option<i64>, meant: impl Fn(&Has) -> bool) {
        let up_to = usize::try_from(up_to.unwrap_or(i64::MAX)).unwrap();
        let these = |list: &mut Vec<Has>| list.iter_mut().take(up_to).filter(|has| !has.gone && meant(has)).for_each(|has| has.read = true);
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

fn send(to: &[usize], notification: usize, of: usize) -> NotificationCommand {
    // The first is taken by an earlier notification, but for the first of all.
    let ids = vec![id(notification.saturating_sub(1)), id(notification)];
    let ids = if notification == 0 { vec![id(0)] } else { ids };
    NotificationCommand::Send { ids, kind: kind(of), stored: "{}".to_owned(), recipients: to.iter().map(|at| user(*at)).collect() }
}

/// What a lookup of this notification by this user is to answer where it is not there.
fn refusal(has: Option<Has>) -> Option<Code> {
    match has {
        None => Some(Code::NotFound),
        Some(has) if has.gone => Some(Code::Gone),
        Some(_) => None,
    }
}

fn step(rows: &mut Rows, model: &mut Model, act: &Act) {
    match act {
        Act::Send { kind, to } => {
            let notification = model.sent.len();
            let answer = run(rows, &send(to, notification, *kind)).unwrap();
            assert_eq!(answer["notification_id"], id(notification).to_string());
            model.sent.push(to.clone());
            for user in to {
                model.change(*user, |list| list.push(Has { notification, kind: *kind, read: false, gone: false }));
            }
        }
        Act::Mark { user: at, notification, read } => {
            let answer = run(rows, &NotificationCommand::Mark { user: user(*at), id: id(*notification), read: *read, kept_from: 0 });
            let has = model.has(*at, *notification);
            if let Some(code) = refusal(has) {
                return assert_eq!(answer, Err(code));
            }
            model.change(*at, |list| list.iter_mut().filter(|has| has.notification == *notification).for_each(|has| has.read = *read));
            let answer = answer.unwrap();
            assert_eq!(answer["unread"].as_i64(), model.unread(*at, has.unwrap().kind));
            assert_eq!((answer["read_at"].is_string(), answer["revision"].as_i64()), (*read, Some(model.revisions[*at])));
        }
        Act::Named { user: at, notifications, up_to } => {
            let which = Which::Named(notifications.iter().map(|notification| id(*notification)).collect());
            let answer =
                run(rows, &NotificationCommand::MarkMany { user: user(*at), which, up_to: up_to.unwrap_or(i64::MAX), kept_from: 0 });
            let refusals: Vec<_> = notifications.iter().filter_map(|notification| refusal(model.has(*at, *notification))).collect();
            if let Some(first) = refusals.iter().find(|code| **code == Code::NotFound).or(refusals.first()) {
                return assert_eq!(answer, Err(*first));
            }
            many(model, *at, &answer.unwrap(), *up_to, |has| notifications.contains(&has.notification));
        }
        Act::Oldest { user: at, kind: of, up_to } => {
            let which = Which::Oldest(of.map(kind), FIRST_ROWS);
            let answer =
                run(rows, &NotificationCommand::MarkMany { user: user(*at), which, up_to: up_to.unwrap_or(i64::MAX), kept_from: 0 });
            many(model, *at, &answer.unwrap(), *up_to, |has| of.is_none_or(|of| of == has.kind));
        }
        Act::Delete { user: at, notification } => {
            let answer = run(rows, &NotificationCommand::Delete { user: user(*at), id: id(*notification), kept_from: 0 });
            assert_eq!(answer.err(), model.has(*at, *notification).map_or(Some(Code::NotFound), |_| None));
            model.change(*at, |list| list.iter_mut().filter(|has| has.notification == *notification).for_each(|has| has.gone = true));
        }
        Act::Withdraw { notification } => {
            let to = model.sent.get(*notification).cloned().unwrap_or_default();
            run(rows, &NotificationCommand::Withdraw { id: id(*notification), recipients: to.iter().map(|at| user(*at)).collect() })
                .unwrap();
            for user in to {
                model.change(user, |list| list.iter_mut().filter(|has| has.notification == *notification).for_each(|has| has.gone = true));
            }
        }
    }
}

fn many(model: &mut Model, at: usize, answer: &Value, up_to: Option<i64>, meant: impl Fn(&Has) -> bool) {
    let total = |model: &Model| (0..KINDS.len()).filter_map(|kind| model.unread(at, kind)).sum::<i64>();
    let before = total(model);
    model.read_where(at, up_to, meant);
    assert_eq!(answer["changed"], before - total(model));
    assert_eq!(answer["revision"], model.revisions[at]);
    for (of, name) in KINDS.iter().enumerate() {
        assert_eq!(answer["unread"][name].as_i64(), model.unread(at, of));
    }
    assert_eq!(answer["more_up_to"], Value::Null);
}

proptest! {
    #[test]
    fn numbers_are_counts_of_the_lists(acts in acts()) {
        let (mut rows, mut model) = (Rows::new(crate::app::ROW_SETS), Model::default());
        for act in &acts {
            step(&mut rows, &mut model, act);
            for at in 0..USERS {
                for of in 0..KINDS.len() {
                    assert_eq!(rows.get::<NotificationRows>().unread(user(at), &kind(of).shared()), model.unread(at, of));
                }
                let seqs: Vec<_> = rows.get::<NotificationRows>().of_user(user(at)).map(|(seq, receiver)| (seq, receiver.notification)).collect();
                let expected: Vec<_> = (1..).zip(&model.lists[at]).map(|(seq, has)| (seq, id(has.notification))).collect();
                assert_eq!((seqs, rows.revision(user(at))), (expected, model.revisions[at]));
            }
        }
    }
}

#[test]
fn one_type_too_many_for_one_recipient_sends_to_nobody() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    let to = |at: usize, name: &str, users: &[usize]| NotificationCommand::Send {
        ids: vec![id(at)],
        kind: name.parse().unwrap(),
        stored: "{}".to_owned(),
        recipients: users.iter().map(|at| user(*at)).collect(),
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
    run(&mut rows, &send(&[0], 0, 0)).unwrap();
    assert_eq!(run(&mut rows, &send(&[0], 0, 0)), Err(Code::Overloaded));
    assert_eq!(rows.user(user(0)).notification_seq, 1);
}
