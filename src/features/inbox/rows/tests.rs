//! What a batch finds of rows that it has removed.

use super::*;
use crate::base::ids::ClientId;
use crate::engine::lanes::{Command as _, Rows};
use crate::features::inbox::InboxCommand;

/// Rows 1 to 3 are unread messages of user 2 in the inbox of user 1, and the batch removes the first two.
#[test]
fn what_the_batch_has_removed_is_not_found() {
    let [user, peer] = [1, 2].map(|id| UserId::try_from(id).unwrap());
    let client = |seq: i64| format!("c{seq}").parse::<ClientId>().unwrap();
    let key = |seq: i64| (user, peer, false, client(seq));
    let mut rows = InboxRows::default();
    let sent = |seq: i64| Sent { seq, at: UnixMs(1), peer_seq: seq, recalled: seq == 2 };
    rows.sent.insert_loaded((1..=3).map(|seq| (key(seq), Some(sent(seq)))));
    let direct = Direct { head: 3, recalled: 1, last_seq: 3, ..Direct::default() };
    rows.directs.insert_loaded([((user, peer), direct.clone())]);
    rows.places.insert((user, peer, 1), Place { peer_seq: 1, seq: 1, recalled_after: 1 });
    rows.places.insert((user, peer, 2), Place { peer_seq: 2, seq: 2, recalled_after: 0 });
    let read_at_one = |rows: &InboxRows| {
        let mut direct = rows.direct(user, peer);
        direct.read(rows.place(user, peer, 1), 1);
        direct.unread()
    };
    assert_eq!(read_at_one(&rows), 1);

    let mut kept = direct;
    for seq in 1..=2 {
        kept.expire(&Oldest { peer, peer_seq: seq, own: false, recalled: seq == 2, seq });
    }
    rows.set_direct(user, peer, kept);
    rows.remove(user, 2);
    assert_eq!((1..=3).map(|seq| rows.sent(&key(seq)).is_some()).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(read_at_one(&rows), 1);
    assert_eq!(rows.place(user, peer, 2), Place { peer_seq: 2, seq: 2, recalled_after: 0 });
}

/// Rows 1 and 3 are messages of user 2 in the inbox of user 1, and row 2 is one of user 3. All are loaded to expire.
fn expiring() -> (Rows, InboxCommand) {
    let [user, peer, other] = [1, 2, 3].map(|id| UserId::try_from(id).unwrap());
    let mut rows = Rows::new(crate::app::ROW_SETS);
    let inbox = rows.get_mut::<InboxRows>();
    let row = |peer, peer_seq, seq| Oldest { peer, peer_seq, own: false, recalled: false, seq };
    inbox.oldest.insert(user, vec![row(peer, 1, 1), row(other, 1, 2), row(peer, 2, 3)]);
    let direct = |head, last_seq| Direct { head, last_seq, ..Direct::default() };
    inbox.directs.insert_loaded([((user, peer), direct(2, 3)), ((user, other), direct(1, 2))]);
    (rows, InboxCommand::Expire { user, up_to: 3, rows: 3, seen_since: UnixMs(0) })
}

/// The chats that the batch writes, and how many messages have expired in each.
fn written(rows: &Rows) -> Vec<(i64, i64)> {
    rows.get::<InboxRows>().directs.changed().map(|((_, peer), direct)| (peer.get(), direct.gone)).collect()
}

#[test]
fn a_chat_with_an_erased_peer_does_not_come_back_as_its_rows_expire() {
    let [user, peer] = [1, 2].map(|id| UserId::try_from(id).unwrap());
    let (mut rows, expire) = expiring();
    let inbox = rows.get_mut::<InboxRows>();
    inbox.forget_peer(user, peer, 1);
    assert_eq!(inbox.oldest(user).iter().map(|row| row.seq).collect::<Vec<_>>(), [2, 3], "up to the row that was named");
    inbox.forget_peer(user, peer, 3);
    inbox.set_direct(user, peer, Direct::default());
    rows.settle();
    expire.apply(&mut rows, UnixMs(1)).unwrap();
    assert_eq!(written(&rows), [(2, 0), (3, 1)]);
    assert_eq!(rows.get::<InboxRows>().direct(user, peer), Direct::default(), "it is removed");
}

#[test]
fn the_chats_of_an_erased_user_do_not_come_back_as_its_rows_expire() {
    let user = UserId::try_from(1).unwrap();
    let (mut rows, expire) = expiring();
    expire.apply(&mut rows, UnixMs(1)).unwrap();
    assert_eq!(written(&rows), [(2, 2), (3, 1)]);
    rows.undo();
    rows.erase(user);
    rows.settle();
    expire.apply(&mut rows, UnixMs(1)).unwrap();
    assert!(written(&rows).is_empty());
    assert_eq!(rows.get::<InboxRows>().gone.get(&user), 3, "the rows go");
}
