//! A receiver who silences the actor: a recipient, and nothing else.

use super::super::*;
use super::{id, rows_of, run, send, user};
use crate::base::error::Code;
use crate::engine::lanes::Rows;
use crate::features::notifications::rows::NotificationRows;

/// A notification of an act of user 2 to users 0 and 1, of whom the second mutes user 2.
fn sent(notification: usize, key: Option<usize>) -> Rows {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    rows.get_mut::<NotificationRows>().set_silence(user(1), user(2), |silence| silence.blocked = true);
    rows.settle();
    let NotificationCommand::Send(new) = send(&[0, 1], notification, 0, key) else { panic!("another command") };
    let content = Content { actor_id: Some(user(2)), ..new.content };
    let answer = run(&mut rows, &NotificationCommand::Send(NewNotification { content, ..new })).unwrap();
    assert_eq!(answer["recipient_count"], 2);
    rows
}

#[test]
fn a_silenced_act_leaves_a_row_that_nothing_shows() {
    for key in [None, Some(0)] {
        let mut rows = sent(0, key);
        assert_eq!(rows_of(&rows, 1), [(-id(0).get(), id(0), 0, true)]);
        let of = rows.get::<NotificationRows>();
        assert_eq!((of.entry(user(1), id(0)), of.counts_of(user(1)), of.grouped(user(1), id(0))), (None, Vec::new(), None));
        assert_eq!(rows.user(user(1)), crate::engine::marks::users::User::default(), "no number and no revision");
        let (user, id, kept_from) = (user(1), id(0), 0);
        for command in [
            NotificationCommand::Mark { user, id, read: true, kept_from },
            NotificationCommand::Mark { user, id, read: false, kept_from },
            NotificationCommand::MarkMany { user, which: Which::Named(vec![id]), up_to: i64::MAX, kept_from },
            NotificationCommand::Delete { user, id, kept_from },
        ] {
            assert_eq!(run(&mut rows, &command), Err(Code::NotFound), "{command:?}");
        }
    }
}

#[test]
fn that_row_stays_with_a_withdrawal_and_expires_with_the_notification() {
    for key in [None, Some(0)] {
        let mut rows = sent(0, key);
        let recipients = vec![user(0), user(1)];
        run(&mut rows, &NotificationCommand::Withdraw { id: id(0), recipients: recipients.clone(), kept_from: 0 }).unwrap();
        assert_eq!((rows_of(&rows, 1).len(), rows.revision(user(1))), (1, 0));
        run(&mut rows, &NotificationCommand::Expire { id: id(0), recipients, kept_from: id(1).get() }).unwrap();
        assert_eq!((rows_of(&rows, 0), rows_of(&rows, 1), rows.revision(user(1))), (Vec::new(), Vec::new(), 0));
    }
}
