//! The types of a user against a naive model: a new one takes the place of one without anything unread.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::*;
use super::{id, run, user};
use crate::base::error::Code;
use crate::engine::lanes::Rows;
use crate::features::notifications::rows::NotificationRows;

/// How many types there may be. At first there is a notification of each.
const FULL: usize = 100;

#[derive(Debug, Clone)]
enum Act {
    Send { kind: usize },
    Mark { notification: usize, read: bool },
    Withdraw { notification: usize },
}

/// With few types and few notifications, so that they meet again.
fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (kind, one) = (96..106_usize, 96..112_usize);
    let act = prop_oneof![
        3 => kind.prop_map(|kind| Act::Send { kind }),
        3 => (one.clone(), any::<bool>()).prop_map(|(notification, read)| Act::Mark { notification, read }),
        1 => one.prop_map(|notification| Act::Withdraw { notification }),
    ];
    prop::collection::vec(act, 1..40)
}

/// A notification that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    kind: usize,
    read: bool,
    gone: bool,
}

#[derive(Debug, Default)]
struct Model {
    sent: Vec<Sent>,
    /// The types that the user has numbers of.
    types: BTreeSet<usize>,
}

impl Model {
    fn unread(&self, kind: usize) -> i64 {
        let unread = self.sent.iter().filter(|sent| sent.kind == kind && !sent.read && !sent.gone);
        unread.count().try_into().unwrap()
    }

    /// Whether a type has a place, or gets that of the first one without anything unread.
    fn place(&mut self, kind: usize) -> bool {
        if self.types.len() == FULL && !self.types.contains(&kind) {
            let Some(empty) = self.types.iter().copied().find(|of| self.unread(*of) == 0) else { return false };
            self.types.remove(&empty);
        }
        self.types.insert(kind);
        true
    }
}

fn name(kind: usize) -> String {
    format!("t{kind:03}")
}

fn send(notification: usize, kind: usize) -> NotificationCommand {
    let (ids, content, stored) = (vec![id(notification)], Content::default(), "{}".to_owned());
    NotificationCommand::Send(NewNotification { ids, kind: name(kind).parse().unwrap(), content, stored, recipients: vec![user(0)] })
}

fn step(rows: &mut Rows, model: &mut Model, act: &Act) {
    match *act {
        Act::Send { kind } => {
            let refused = run(rows, &send(model.sent.len(), kind)).err();
            if !model.place(kind) {
                return assert_eq!(refused, Some(Code::TooMany));
            }
            assert_eq!(refused, None);
            model.sent.push(Sent { kind, read: false, gone: false });
        }
        Act::Mark { notification, read } => {
            let refused = run(rows, &NotificationCommand::Mark { user: user(0), id: id(notification), read, kept_from: 0 }).err();
            let Some(before) = model.sent.get(notification).copied() else { return assert_eq!(refused, Some(Code::NotFound)) };
            if before.gone {
                return assert_eq!(refused, Some(Code::Gone));
            }
            if before.read && !read && !model.place(before.kind) {
                return assert_eq!(refused, Some(Code::TooMany));
            }
            assert_eq!(refused, None);
            model.sent[notification].read = read;
        }
        Act::Withdraw { notification } => {
            let withdraw = NotificationCommand::Withdraw { id: id(notification), recipients: vec![user(0)], kept_from: 0 };
            run(rows, &withdraw).unwrap();
            if let Some(sent) = model.sent.get_mut(notification) {
                sent.gone = true;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_new_type_takes_the_place_of_one_without_anything_unread(acts in acts()) {
        let (mut rows, mut model) = (Rows::new(crate::app::ROW_SETS), Model::default());
        for kind in 0..FULL {
            step(&mut rows, &mut model, &Act::Send { kind });
        }
        for act in &acts {
            step(&mut rows, &mut model, act);
            let of = rows.get::<NotificationRows>();
            let counts: Vec<_> = of.counts_of(user(0)).into_iter().map(|(kind, count)| ((*kind).to_owned(), count.unread)).collect();
            let expected: Vec<_> = model.types.iter().map(|kind| (name(*kind), model.unread(*kind))).collect();
            assert_eq!((counts, of.type_count(user(0))), (expected, 100), "{act:?}");
        }
    }
}
