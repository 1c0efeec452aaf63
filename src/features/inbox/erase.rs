//! What is left of inboxes when a user is erased: its own goes, and what it wrote or got becomes
//! tombstones in the inboxes of its peers, which have no gaps. Their chats with it leave their lists, and
//! stop being unread.

use super::Direct;
use super::changes::{end_unread, set_direct};
use super::rows::InboxRows;
use crate::base::clock::UnixMs;
use crate::base::error::{Problem, Result};
use crate::base::ids::UserId;
use crate::db::{Column, DbResult, Statement, Type, in_time};
use crate::engine::erased;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};
use crate::features::removals::{Engines, Place, Progress, Step, delete_pages, user_of};

/// How many chats one batch looks at, how many commands it has, and how many rows each changes.
const CHATS_AT_ONCE: i64 = 5000;
const COMMANDS_AT_ONCE: usize = 20;
const ROWS_AT_ONCE: i64 = 500;

/// There is no index of peers: the chats are walked through.
static CHATS: Statement = Statement::one(
    "select d.user_id, d.peer_id
    from directs d
    where (d.user_id, d.peer_id) > ($1, $2)
    order by d.user_id, d.peer_id
    limit $3",
    &[("after_user", Type::Int), ("after_peer", Type::Int), ("max_rows", Type::Int)],
);

/// How many rows of a chat are left, up to a bound, and the last of these.
static ROWS: Statement = Statement::one(
    "select count(*), coalesce(max(n.seq), 0)
    from (
        select i.seq
        from inbox i
        where i.user_id = $1 and i.peer_id = $2 and i.peer_id > 0
        order by i.seq
        limit $3
    ) n",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("max_rows", Type::Int)],
);

static OWN: [Statement; 3] = [
    Statement::one(
        "delete from inbox where user_id = $1 and seq in (select i.seq from inbox i where i.user_id = $1 order by i.seq limit $2)",
        &[("user_id", Type::Int), ("max_rows", Type::Int)],
    ),
    Statement::one(
        "delete from directs
        where user_id = $1 and peer_id in (select d.peer_id from directs d where d.user_id = $1 order by d.peer_id limit $2)",
        &[("user_id", Type::Int), ("max_rows", Type::Int)],
    ),
    Statement::one(
        "delete from devices
        where user_id = $1 and device_id in (select d.device_id from devices d where d.user_id = $1 order by d.device_id limit $2)",
        &[("user_id", Type::Int), ("max_rows", Type::Int)],
    ),
];

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    [&CHATS, &ROWS].into_iter().chain(&OWN).collect()
}

/// The steps that remove a user as a peer, and its own inbox with its devices.
#[must_use]
pub fn steps() -> Vec<Step> {
    vec![
        Step::new("directs", &["directs"], |engines, subject, place| async move {
            forget_peer(&engines, user_of(subject)?, (place.id, place.seq)).await
        }),
        delete_pages("inbox", &["inbox", "devices"], &OWN),
    ]
}

async fn forget_peer(engines: &Engines, peer: UserId, after: (i64, i64)) -> Result<Progress> {
    let columns = [after.0, after.1, CHATS_AT_ONCE].map(|value| Column::Int(vec![value]));
    let chats: Vec<(i64, i64)> = in_time(engines.db.fetch(&CHATS, &columns)).await?;
    let (mut before, mut commands) = (after, 0);
    for chat in &chats {
        if let (Ok(user), true) = (UserId::try_from(chat.0), chat.1 == peer.get() && chat.0 != peer.get()) {
            let (rows, up_to) = in_time(rows_of(engines, user, peer)).await?;
            let is_last = rows < ROWS_AT_ONCE;
            engines.submit(ForgetPeer { user, peer, up_to, is_last }).await?;
            commands += 1;
            // A peer that is erased, too, keeps its rows until they go with its own inbox.
            if !is_last && !is_erased(engines, user).await? {
                return Ok(Progress::More(Place::of(before.0, before.1)));
            }
        }
        before = *chat;
        if commands >= COMMANDS_AT_ONCE {
            return Ok(Progress::More(Place::of(before.0, before.1)));
        }
    }
    let is_full = i64::try_from(chats.len()).unwrap_or(i64::MAX) >= CHATS_AT_ONCE;
    Ok(if is_full { Progress::More(Place::of(before.0, before.1)) } else { Progress::Done })
}

async fn is_erased(engines: &Engines, user: UserId) -> Result<bool> {
    Ok(!in_time(erased::read(&engines.db, &[user])).await?.is_empty())
}

async fn rows_of(engines: &Engines, user: UserId, peer: UserId) -> DbResult<(i64, i64)> {
    let columns = [user.get(), peer.get(), ROWS_AT_ONCE].map(|value| Column::Int(vec![value]));
    let rows: Vec<(i64, i64)> = engines.db.fetch(&ROWS, &columns).await?;
    Ok(rows.first().copied().unwrap_or_default())
}

/// Rows of a user's chat with a peer that is erased become tombstones, up to a seq. With the last ones
/// the chat goes.
#[derive(Debug, Clone, Copy)]
struct ForgetPeer {
    user: UserId,
    peer: UserId,
    up_to: i64,
    is_last: bool,
}

impl lanes::Command for ForgetPeer {
    fn needs(&self, needs: &mut Needs) {
        needs.user(self.user);
        needs.of::<InboxRows>().directs.insert((self.user, self.peer));
    }

    fn lane_key(&self) -> i64 {
        self.user.get()
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(ROWS_AT_ONCE).unwrap_or(u32::MAX)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        if rows.is_erased(self.user) {
            // Its own rows go anyway.
            return Ok(Answer::no_content());
        }
        rows.get_mut::<InboxRows>().forget_peer(self.user, self.peer, self.up_to);
        rows.revise(self.user, |_| {});
        if self.is_last {
            set_direct(rows, self.user, self.peer, Direct::default(), now);
            // An empty part would still have the peer's name.
            rows.read_entry_again(self.user);
        } else {
            // From the first rows on: what is left of the chat tells no number any more.
            end_unread(rows, self.user, self.peer, now);
        }
        Ok(Answer::no_content())
    }
}
