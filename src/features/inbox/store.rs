//! The rows of `inbox` and `directs` in a batch. All of them belong to one user, whose own row is
//! locked, so they are locked with it.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::try_join4;

use super::needs::ChatKey;
use super::{Direct, Item, Needs, Of, Oldest, Sent, SentKey};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, RowSet, Table};
use crate::engine::marks::Intervals;

/// Those that were sent with these ids, as either side has them. An id may come again after the
/// receiver's row has expired, while the sender's own is kept: then the last one counts.
static LOAD_SENT: Statement = Statement::new(
    "select i.user_id, i.peer_id, i.own, i.client_id, i.seq, i.sent_at
    from {rows} r
    join inbox i on i.user_id = r.user_id and i.peer_id = r.peer_id and i.own = r.own and i.client_id = r.client_id
    where i.client_id <> ''
    order by i.seq",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("own", Type::Int), ("client_id", Type::Text)],
);

/// Whether the user blocks the peer is told of chats, too, that have no row yet.
static LOAD_DIRECTS: Statement = Statement::new(
    "select r.user_id, r.peer_id, coalesce(d.head, 0), coalesce(d.mark, 0), coalesce(d.last_seq, 0), coalesce(d.last_at, 0),
        coalesce(d.muted, 0), coalesce(d.gone, 0), coalesce(d.gone_seqs, ''),
        (select count(*) from blocks b where b.user_id = r.user_id and b.target_id = r.peer_id)
    from {rows} r
    left join directs d on d.user_id = r.user_id and d.peer_id = r.peer_id",
    &[("user_id", Type::Int), ("peer_id", Type::Int)],
);

/// How many messages a peer had sent by a row of the user's inbox; -1 where nothing of the chat is
/// kept up to there.
static LOAD_PLACES: Statement = Statement::new(
    "select r.user_id, r.peer_id, r.up_to, coalesce((
        select i.peer_seq
        from inbox i
        where i.user_id = r.user_id and i.peer_id = r.peer_id and i.peer_id > 0 and i.seq <= r.up_to
        order by i.seq desc
        limit 1
    ), -1)
    from {rows} r",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("up_to", Type::Int)],
);

/// How many chats users have a row for, but nothing in it.
static COUNT_EMPTY_CHATS: Statement = Statement::new(
    "select r.user_id, (select count(*) from directs d where d.user_id = r.user_id and d.last_seq = 0)
    from {rows} r",
    &[("user_id", Type::Int)],
);

static LOAD_OLDEST: Statement = Statement::new(
    "select i.user_id, i.peer_id, i.peer_seq, i.own, i.seq
    from {rows} r
    join inbox i on i.user_id = r.user_id and i.seq <= r.up_to
    where i.peer_id > 0
    order by i.user_id, i.seq",
    &[("user_id", Type::Int), ("up_to", Type::Int)],
);

static INSERT_ROWS: Statement = Statement::insert(
    "inbox",
    &[
        ("user_id", Type::Int),
        ("seq", Type::Int),
        ("sender_id", Type::Int),
        ("peer_id", Type::Int),
        ("peer_seq", Type::Int),
        ("group_id", Type::Int),
        ("group_seq", Type::Int),
        ("own", Type::Int),
        ("recall", Type::Int),
        ("client_id", Type::Text),
        ("content", Type::Content),
        ("put_at", Type::Int),
        ("sent_at", Type::Int),
    ],
);

static DELETE_OLDEST: Statement = Statement::new(
    "delete from inbox
    where (user_id, seq) in (
        select i.user_id, i.seq
        from {rows} r
        join inbox i on i.user_id = r.user_id and i.seq <= r.up_to
    )",
    &[("user_id", Type::Int), ("up_to", Type::Int)],
);

static SAVE_DIRECTS: Statement = Statement::new(
    "insert into directs (user_id, peer_id, head, mark, last_seq, last_at, muted, gone, gone_seqs)
    select user_id, peer_id, head, mark, last_seq, last_at, muted, gone, gone_seqs
    from {rows} r
    where true
    order by user_id, peer_id
    on conflict (user_id, peer_id) do update set
        head = excluded.head,
        mark = excluded.mark,
        last_seq = excluded.last_seq,
        last_at = excluded.last_at,
        muted = excluded.muted,
        gone = excluded.gone,
        gone_seqs = excluded.gone_seqs",
    &[
        ("user_id", Type::Int),
        ("peer_id", Type::Int),
        ("head", Type::Int),
        ("mark", Type::Int),
        ("last_seq", Type::Int),
        ("last_at", Type::Int),
        ("muted", Type::Int),
        ("gone", Type::Int),
        ("gone_seqs", Type::Text),
    ],
);

/// Chats that say nothing any more.
static DELETE_DIRECTS: Statement = Statement::new(
    "delete from directs
    where (user_id, peer_id) in (select user_id, peer_id from {rows} r)",
    &[("user_id", Type::Int), ("peer_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 9] {
    [
        &LOAD_SENT,
        &LOAD_DIRECTS,
        &LOAD_PLACES,
        &COUNT_EMPTY_CHATS,
        &LOAD_OLDEST,
        &INSERT_ROWS,
        &DELETE_OLDEST,
        &SAVE_DIRECTS,
        &DELETE_DIRECTS,
    ]
}

#[derive(Debug, Default)]
pub struct InboxRows {
    /// Those that the batch makes: no other is loaded.
    rows: Table<(UserId, i64), Option<(Item, UnixMs)>>,
    sent: Table<SentKey, Option<Sent>>,
    directs: Table<ChatKey, Direct>,
    /// Whether the user blocks the peer, where the chat is loaded. The row is that of `blocks`,
    /// which is written elsewhere.
    blocked: Table<ChatKey, bool>,
    empty_chats: Table<UserId, i64>,
    /// Up to which seq rows are to go.
    gone: Table<UserId, i64>,
    places: HashMap<(UserId, UserId, i64), i64>,
    oldest: HashMap<UserId, Vec<Oldest>>,
}

/// A row of `directs`.
type DirectRow = (i64, i64, i64, i64, i64, i64, i64, i64, String, i64);

fn direct_of_row(row: DirectRow) -> Option<(ChatKey, Direct, bool)> {
    let (user, peer, head, mark, last_seq, last_at, muted, gone, gone_seqs, blocked) = row;
    let direct =
        Direct { head, mark, last_seq, last_at: UnixMs(last_at), muted: muted == 1, gone, gone_seqs: Intervals::parse(&gone_seqs) };
    Some(((UserId::try_from(user).ok()?, UserId::try_from(peer).ok()?), direct, blocked > 0))
}

async fn load_sent(pipeline: &Pipeline, needs: &Needs) -> DbResult<Vec<(i64, i64, i64, String, i64, i64)>> {
    if needs.sent.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        Column::Int(needs.sent.iter().map(|(user, ..)| user.get()).collect()),
        Column::Int(needs.sent.iter().map(|(_, peer, ..)| peer.get()).collect()),
        Column::Int(needs.sent.iter().map(|(_, _, own, _)| i64::from(*own)).collect()),
        Column::Text(needs.sent.iter().map(|(.., client)| client.as_str().to_owned()).collect()),
    ];
    pipeline.fetch(&LOAD_SENT, columns).await
}

async fn load_oldest(pipeline: &Pipeline, needs: &Needs) -> DbResult<HashMap<UserId, Vec<Oldest>>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    if needs.oldest.is_empty() {
        return Ok(found);
    }
    let columns =
        [Column::Int(needs.oldest.keys().map(|user| user.get()).collect()), Column::Int(needs.oldest.values().copied().collect())];
    for (user, peer, peer_seq, own, seq) in pipeline.fetch::<(i64, i64, i64, i64, i64)>(&LOAD_OLDEST, columns).await? {
        let (Ok(user), Ok(peer)) = (UserId::try_from(user), UserId::try_from(peer)) else { continue };
        found.entry(user).or_default().push(Oldest { peer, peer_seq, own: own == 1, seq });
    }
    Ok(found)
}

async fn load_directs(pipeline: &Pipeline, directs: &BTreeSet<ChatKey>) -> DbResult<Vec<DirectRow>> {
    if directs.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        Column::Int(directs.iter().map(|(user, _)| user.get()).collect()),
        Column::Int(directs.iter().map(|(_, peer)| peer.get()).collect()),
    ];
    pipeline.fetch(&LOAD_DIRECTS, columns).await
}

async fn load_places(pipeline: &Pipeline, needs: &Needs) -> DbResult<Vec<(i64, i64, i64, i64)>> {
    if needs.places.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        Column::Int(needs.places.iter().map(|(user, ..)| user.get()).collect()),
        Column::Int(needs.places.iter().map(|(_, peer, _)| peer.get()).collect()),
        Column::Int(needs.places.iter().map(|(.., up_to)| *up_to).collect()),
    ];
    pipeline.fetch(&LOAD_PLACES, columns).await
}

async fn count_empty_chats(pipeline: &Pipeline, needs: &Needs) -> DbResult<Vec<(i64, i64)>> {
    if needs.empty_chats.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&COUNT_EMPTY_CHATS, [Column::Int(needs.empty_chats.iter().map(|user| user.get()).collect())]).await
}

impl InboxRows {
    /// Puts a row into an inbox.
    pub(super) fn put(&mut self, user: UserId, seq: i64, item: Item, now: UnixMs) {
        if let Of::Direct { peer, client, sent_at, .. } = &item.of {
            self.sent.set(&(user, *peer, item.own, client.clone()), Some(Sent { seq, at: *sent_at }));
        }
        self.rows.set(&(user, seq), Some((item, now)));
    }

    /// Where a message with this id is, if it was sent before.
    #[must_use]
    pub fn sent(&self, key: &SentKey) -> Option<Sent> {
        self.sent.get(key)
    }

    /// A user's side of a direct chat.
    #[must_use]
    pub fn direct(&self, user: UserId, peer: UserId) -> Direct {
        self.directs.get(&(user, peer))
    }

    pub(super) fn set_direct(&mut self, user: UserId, peer: UserId, direct: Direct) {
        self.directs.set(&(user, peer), direct);
    }

    pub(super) fn set_blocked(&mut self, user: UserId, peer: UserId, blocked: bool) {
        self.blocked.set(&(user, peer), blocked);
    }

    /// Whether the user blocks the peer.
    #[must_use]
    pub fn is_blocked(&self, user: UserId, peer: UserId) -> bool {
        self.blocked.get(&(user, peer))
    }

    /// Whether a chat counts in no sum: it is muted, or the user blocks the peer.
    #[must_use]
    pub fn is_silent(&self, user: UserId, peer: UserId) -> bool {
        self.is_blocked(user, peer) || self.direct(user, peer).muted
    }

    /// How many unread messages of a chat count in sums.
    pub(super) fn counted(&self, user: UserId, peer: UserId) -> i64 {
        if self.is_silent(user, peer) { 0 } else { self.direct(user, peer).unread() }
    }

    /// How many messages the peer had sent by this row of the user's inbox; None where nothing of
    /// the chat is kept up to there.
    #[must_use]
    pub fn place(&self, user: UserId, peer: UserId, up_to: i64) -> Option<i64> {
        // What the batch itself has made is looked at first, as it comes after all that is stored.
        let new = self.rows.from(&(user, 0)).take_while(|((of, seq), _)| *of == user && *seq <= up_to);
        let of_peer = new.filter_map(|(_, row)| match &row.as_ref()?.0.of {
            Of::Direct { peer: of, peer_seq, .. } if *of == peer => Some(*peer_seq),
            _ => None,
        });
        of_peer.last().or_else(|| self.places.get(&(user, peer, up_to)).copied().filter(|place| *place >= 0))
    }

    /// How many chats a user has a row for, but nothing in it.
    #[must_use]
    pub fn empty_chats(&self, user: UserId) -> i64 {
        self.empty_chats.get(&user)
    }

    /// So many more of those, or fewer.
    pub fn add_empty_chats(&mut self, user: UserId, more: i64) {
        let count = self.empty_chats(user);
        self.empty_chats.set(&user, count + more);
    }

    /// The direct messages of a user that may go, in the order of seq.
    #[must_use]
    pub fn oldest(&self, user: UserId) -> &[Oldest] {
        self.oldest.get(&user).map_or(&[], Vec::as_slice)
    }

    /// A user's rows up to this seq go.
    pub fn remove(&mut self, user: UserId, up_to: i64) {
        self.gone.set(&user, up_to.max(self.gone.get(&user)));
    }
}

/// A row that is made: whose and which number, what it holds and since when.
type NewRow<'a> = (&'a (UserId, i64), &'a (Item, UnixMs));

fn inbox_columns(rows: &[NewRow<'_>]) -> [Column; 13] {
    let number = |value: fn(&Item) -> i64| Column::Int(rows.iter().map(|(_, (item, _))| value(item)).collect());
    let text = |value: fn(&Item) -> &str| Column::Text(rows.iter().map(|(_, (item, _))| value(item).to_owned()).collect());
    [
        Column::Int(rows.iter().map(|((user, _), _)| user.get()).collect()),
        Column::Int(rows.iter().map(|((_, seq), _)| *seq).collect()),
        number(|item| item.sender.get()),
        number(|item| if let Of::Direct { peer, .. } = &item.of { peer.get() } else { 0 }),
        number(|item| if let Of::Direct { peer_seq, .. } = &item.of { *peer_seq } else { 0 }),
        number(|item| if let Of::Group { group, .. } | Of::Recall { group, .. } = &item.of { group.get() } else { 0 }),
        number(|item| if let Of::Group { seq, .. } | Of::Recall { seq, .. } = &item.of { *seq } else { 0 }),
        number(|item| i64::from(item.own)),
        number(|item| i64::from(matches!(item.of, Of::Recall { .. }))),
        text(|item| if let Of::Direct { client, .. } = &item.of { client.as_str() } else { "" }),
        text(|item| if let Of::Direct { content, .. } = &item.of { content } else { "" }),
        Column::Int(rows.iter().map(|(_, (_, at))| at.0).collect()),
        number(|item| if let Of::Direct { sent_at, .. } = &item.of { sent_at.0 } else { 0 }),
    ]
}

impl RowSet for InboxRows {
    type Needs = Needs;

    fn statements() -> Vec<&'static Statement> {
        statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, needs: &Needs) -> DbResult<()> {
        // With the chats that the oldest rows are of.
        let directs = async {
            let oldest = load_oldest(pipeline, needs).await?;
            let of_oldest = oldest.iter().flat_map(|(user, rows)| rows.iter().map(|row| (*user, row.peer)));
            let directs = load_directs(pipeline, &needs.directs.iter().copied().chain(of_oldest).collect()).await?;
            Ok((oldest, directs))
        };
        let (sent, (oldest, directs), places, empty_chats) =
            try_join4(load_sent(pipeline, needs), directs, load_places(pipeline, needs), count_empty_chats(pipeline, needs)).await?;
        let sent = sent.into_iter().filter_map(|(user, peer, own, client, seq, at)| {
            let key = (UserId::try_from(user).ok()?, UserId::try_from(peer).ok()?, own == 1, client.parse().ok()?);
            Some((key, Some(Sent { seq, at: UnixMs(at) })))
        });
        self.sent.insert_loaded(sent);
        self.oldest = oldest;
        for (chat, direct, blocked) in directs.into_iter().filter_map(direct_of_row) {
            self.directs.insert_loaded([(chat, direct)]);
            self.blocked.insert_loaded([(chat, blocked)]);
        }
        for (user, peer, up_to, place) in places {
            let (Ok(user), Ok(peer)) = (UserId::try_from(user), UserId::try_from(peer)) else { continue };
            self.places.insert((user, peer, up_to), place);
        }
        self.empty_chats.insert_loaded(empty_chats.into_iter().filter_map(|(user, count)| Some((UserId::try_from(user).ok()?, count))));
        Ok(())
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, _batch: Batch) -> DbResult<()> {
        let gone: Vec<_> = self.gone.changed().collect();
        if !gone.is_empty() {
            let columns = [
                Column::Int(gone.iter().map(|(user, _)| user.get()).collect()),
                Column::Int(gone.iter().map(|(_, up_to)| **up_to).collect()),
            ];
            conn.later(&DELETE_OLDEST, &columns).await?;
        }
        let rows: Vec<_> = self.rows.changed().filter_map(|(key, row)| Some((key, row.as_ref()?))).collect();
        if !rows.is_empty() {
            conn.insert(&INSERT_ROWS, &inbox_columns(&rows)).await?;
        }
        let (empty, directs): (Vec<_>, Vec<_>) = self.directs.changed().partition(|(_, direct)| **direct == Direct::default());
        if !empty.is_empty() {
            let columns = [
                Column::Int(empty.iter().map(|((user, _), _)| user.get()).collect()),
                Column::Int(empty.iter().map(|((_, peer), _)| peer.get()).collect()),
            ];
            conn.later(&DELETE_DIRECTS, &columns).await?;
        }
        if !directs.is_empty() {
            let column = |value: fn(&Direct) -> i64| Column::Int(directs.iter().map(|(_, direct)| value(direct)).collect());
            let columns = [
                Column::Int(directs.iter().map(|((user, _), _)| user.get()).collect()),
                Column::Int(directs.iter().map(|((_, peer), _)| peer.get()).collect()),
                column(|direct| direct.head),
                column(|direct| direct.mark),
                column(|direct| direct.last_seq),
                column(|direct| direct.last_at.0),
                column(|direct| i64::from(direct.muted)),
                column(|direct| direct.gone),
                Column::Text(directs.iter().map(|(_, direct)| direct.gone_seqs.to_string()).collect()),
            ];
            conn.later(&SAVE_DIRECTS, &columns).await?;
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.rows.settle();
        self.sent.settle();
        self.directs.settle();
        self.blocked.settle();
        self.empty_chats.settle();
        self.gone.settle();
    }

    fn undo(&mut self) {
        self.rows.undo();
        self.sent.undo();
        self.directs.undo();
        self.blocked.undo();
        self.empty_chats.undo();
        self.gone.undo();
    }
}
