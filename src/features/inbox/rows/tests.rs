//! What a batch finds of rows that it has removed.

use super::*;
use crate::base::ids::ClientId;

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
