//! The statements by which a batch reads and writes `inbox` and `directs` (`rows.rs`).

use std::collections::{BTreeSet, HashMap};

use super::needs::{ChatKey, SentKey};
use super::{Direct, GroupRun, InboxNeeds, Item, Of, Oldest, Sent};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::marks::{Hidden, Intervals};
use crate::features::level::LevelUntil;
use crate::features::silence::{Silence, silence_code};

/// Those that were sent with these ids, as either side has them. An id may come again after the
/// receiver's row has expired, while the sender's own is kept: then the last one counts.
static LOAD_SENT: Statement = Statement::new(
    "select i.user_id, i.peer_id, i.own, i.client_id, i.seq, i.sent_at, i.peer_seq, i.recalled
    from {rows} r
    join inbox i on i.user_id = r.user_id and i.peer_id = r.peer_id and i.own = r.own and i.client_id = r.client_id
    where i.client_id <> ''
    order by i.seq",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("own", Type::Int), ("client_id", Type::Text)],
)
.by("user_id");

/// Whether the user blocks or mutes the peer is told of chats, too, that have no row yet.
static LOAD_DIRECTS: Statement = Statement::new(
    concat!(
        "select r.user_id, r.peer_id, coalesce(d.head, 0), coalesce(d.mark, 0), coalesce(d.last_seq, 0), coalesce(d.last_at, 0),
        coalesce(d.level, 0), coalesce(d.gone, 0), coalesce(d.gone_seqs, ''), coalesce(d.level_until, 0), coalesce(d.read_seq, 0),
        coalesce(d.again, 0), coalesce(d.unread_from, 0), coalesce(d.recalled, 0), coalesce(d.hidden, ''),
        ",
        silence_code!("r.user_id", "r.peer_id"),
        "
    from {rows} r
    left join directs d on d.user_id = r.user_id and d.peer_id = r.peer_id"
    ),
    &[("user_id", Type::Int), ("peer_id", Type::Int)],
)
.by("user_id");

/// How many messages a peer had sent by a row of the user's inbox, which is the chat's last message
/// by then, and how many later messages of the peer were recalled; -1 where nothing of the chat is
/// kept up to there.
static LOAD_PLACES: Statement = Statement::new(
    "select r.user_id, r.peer_id, r.up_to, coalesce((
        select i.peer_seq
        from inbox i
        where i.user_id = r.user_id and i.peer_id = r.peer_id and i.peer_id > 0 and i.seq <= r.up_to and i.recall = 0
        order by i.seq desc
        limit 1
    ), -1), coalesce((
        select i.seq
        from inbox i
        where i.user_id = r.user_id and i.peer_id = r.peer_id and i.peer_id > 0 and i.seq <= r.up_to and i.recall = 0
        order by i.seq desc
        limit 1
    ), 0), (
        select count(*)
        from inbox i
        where i.user_id = r.user_id and i.peer_id = r.peer_id and i.peer_id > 0 and i.seq > r.up_to and i.own = 0 and i.recall = 0
            and i.recalled = 1
    )
    from {rows} r",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("up_to", Type::Int)],
)
.by("user_id");

/// How many chats users have a row for, but nothing in it.
static COUNT_EMPTY_CHATS: Statement = Statement::new(
    "select r.user_id, (select count(*) from directs d where d.user_id = r.user_id and d.last_seq = 0)
    from {rows} r",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// The first row of each user that is kept; 0 where none is.
static LOAD_EARLIEST: Statement = Statement::new(
    "select r.user_id, coalesce((select i.seq from inbox i where i.user_id = r.user_id order by i.seq limit 1), 0)
    from {rows} r",
    &[("user_id", Type::Int)],
)
.by("user_id");

static LOAD_OLDEST: Statement = Statement::new(
    "select i.user_id, i.peer_id, i.peer_seq, i.own + i.recall, i.seq, i.recalled
    from {rows} r
    join inbox i on i.user_id = r.user_id and i.seq <= r.up_to
    where +i.peer_id > 0
    order by i.user_id, i.seq",
    &[("user_id", Type::Int), ("up_to", Type::Int)],
)
.by("user_id");

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
        ("other_seq", Type::Int),
        ("recalled", Type::Int),
    ],
);

/// A row for each message of a run. On Postgres what only direct messages have is null and takes no
/// room; on SQLite zeros and empty texts take none either.
static INSERT_RUNS: Statement = Statement::each(
    "insert into inbox (user_id, seq, sender_id, peer_id, peer_seq, group_id, group_seq, own, recall, client_id, content, put_at, sent_at)
    select r.user_id, r.after + j.key + 1, 0, 0, 0, r.group_id, j.value, r.own, r.recall, '', '', r.put_at, 0
    from {rows} r
    cross join json_each('[' || replace(r.seqs, ' ', ',') || ']') j",
    "insert into inbox (user_id, seq, group_id, group_seq, own, recall, put_at)
    select r.user_id, r.after + j.place, r.group_id, j.group_seq, r.own, r.recall, r.put_at
    from {rows} r
    cross join lateral unnest(cast(string_to_array(r.seqs, ' ') as bigint[])) with ordinality j (group_seq, place)",
    &[
        ("user_id", Type::Int),
        ("after", Type::Int),
        ("group_id", Type::Int),
        ("seqs", Type::Text),
        ("own", Type::Int),
        ("recall", Type::Int),
        ("put_at", Type::Int),
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
)
.by("user_id");

static SAVE_DIRECTS: Statement = Statement::new(
    "insert into directs (user_id, peer_id, head, mark, last_seq, last_at, level, gone, gone_seqs, level_until, read_seq, again,
        unread_from, recalled, hidden)
    select user_id, peer_id, head, mark, last_seq, last_at, level, gone, gone_seqs, level_until, read_seq, again, unread_from, recalled,
        hidden
    from {rows} r
    where true
    order by user_id, peer_id
    on conflict (user_id, peer_id) do update set
        head = excluded.head,
        mark = excluded.mark,
        last_seq = excluded.last_seq,
        last_at = excluded.last_at,
        level = excluded.level,
        gone = excluded.gone,
        gone_seqs = excluded.gone_seqs,
        level_until = excluded.level_until,
        read_seq = excluded.read_seq,
        again = excluded.again,
        unread_from = excluded.unread_from,
        recalled = excluded.recalled,
        hidden = excluded.hidden",
    &[
        ("user_id", Type::Int),
        ("peer_id", Type::Int),
        ("head", Type::Int),
        ("mark", Type::Int),
        ("last_seq", Type::Int),
        ("last_at", Type::Int),
        ("level", Type::Int),
        ("gone", Type::Int),
        ("gone_seqs", Type::Text),
        ("level_until", Type::Int),
        ("read_seq", Type::Int),
        ("again", Type::Int),
        ("unread_from", Type::Int),
        ("recalled", Type::Int),
        ("hidden", Type::Text),
    ],
);

/// Chats that say nothing any more.
static DELETE_DIRECTS: Statement = Statement::new(
    "delete from directs
    where (user_id, peer_id) in (select user_id, peer_id from {rows} r)",
    &[("user_id", Type::Int), ("peer_id", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 11] {
    [
        &LOAD_SENT,
        &LOAD_DIRECTS,
        &LOAD_PLACES,
        &COUNT_EMPTY_CHATS,
        &LOAD_EARLIEST,
        &LOAD_OLDEST,
        &INSERT_ROWS,
        &INSERT_RUNS,
        &DELETE_OLDEST,
        &SAVE_DIRECTS,
        &DELETE_DIRECTS,
    ]
}

/// A row of `directs`.
pub(super) type DirectRow = (i64, i64, i64, i64, i64, i64, i64, i64, String, i64, i64, i64, i64, i64, String, i64);

pub(super) fn direct_of_row(row: DirectRow) -> Option<(ChatKey, Direct, Silence)> {
    let (user, peer, head, mark, last_seq, last_at, level, gone, gone_seqs, until, read_seq, again, unread_from, recalled, hidden, silence) =
        row;
    let (last_at, level, gone_seqs) = (UnixMs(last_at), LevelUntil::from_row(level, until), Intervals::parse(&gone_seqs));
    let hidden = Hidden::from_row(&hidden);
    let direct = Direct { head, mark, again, unread_from, recalled, read_seq, last_seq, last_at, level, gone, gone_seqs, hidden };
    Some(((UserId::try_from(user).ok()?, UserId::try_from(peer).ok()?), direct, Silence::from_code(silence)))
}

/// A row of [`LOAD_SENT`].
pub(super) type SentRow = (i64, i64, i64, String, i64, i64, i64, i64);

pub(super) fn sent_of_row((user, peer, own, client, seq, at, peer_seq, recalled): SentRow) -> Option<(SentKey, Option<Sent>)> {
    let key = (UserId::try_from(user).ok()?, UserId::try_from(peer).ok()?, own == 1, client.parse().ok()?);
    Some((key, Some(Sent { seq, at: UnixMs(at), peer_seq, recalled: recalled == 1 })))
}

pub(super) async fn load_sent(pipeline: &Pipeline, sent: &BTreeSet<SentKey>) -> DbResult<Vec<SentRow>> {
    if sent.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        Column::Int(sent.iter().map(|(user, ..)| user.get()).collect()),
        Column::Int(sent.iter().map(|(_, peer, ..)| peer.get()).collect()),
        Column::Int(sent.iter().map(|(_, _, own, _)| i64::from(*own)).collect()),
        Column::Text(sent.iter().map(|(.., client)| client.as_str().to_owned()).collect()),
    ];
    pipeline.fetch(&LOAD_SENT, columns).await
}

pub(super) async fn load_oldest(pipeline: &Pipeline, needs: &InboxNeeds) -> DbResult<HashMap<UserId, Vec<Oldest>>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    if needs.oldest.is_empty() {
        return Ok(found);
    }
    let columns =
        [Column::Int(needs.oldest.keys().map(|user| user.get()).collect()), Column::Int(needs.oldest.values().copied().collect())];
    for (user, peer, peer_seq, own, seq, recalled) in pipeline.fetch::<(i64, i64, i64, i64, i64, i64)>(&LOAD_OLDEST, columns).await? {
        let (Ok(user), Ok(peer)) = (UserId::try_from(user), UserId::try_from(peer)) else { continue };
        found.entry(user).or_default().push(Oldest { peer, peer_seq, own: own > 0, recalled: recalled == 1, seq });
    }
    Ok(found)
}

pub(super) async fn load_directs(pipeline: &Pipeline, directs: &BTreeSet<ChatKey>) -> DbResult<Vec<DirectRow>> {
    if directs.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        Column::Int(directs.iter().map(|(user, _)| user.get()).collect()),
        Column::Int(directs.iter().map(|(_, peer)| peer.get()).collect()),
    ];
    pipeline.fetch(&LOAD_DIRECTS, columns).await
}

pub(super) async fn load_places(pipeline: &Pipeline, needs: &InboxNeeds) -> DbResult<Vec<(i64, i64, i64, i64, i64, i64)>> {
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

pub(super) async fn count_empty_chats(pipeline: &Pipeline, needs: &InboxNeeds) -> DbResult<Vec<(i64, i64)>> {
    if needs.empty_chats.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&COUNT_EMPTY_CHATS, [Column::Int(needs.empty_chats.iter().map(|user| user.get()).collect())]).await
}

pub(super) async fn load_earliest(pipeline: &Pipeline, needs: &InboxNeeds) -> DbResult<Vec<(i64, i64)>> {
    if needs.earliest.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_EARLIEST, [Column::Int(needs.earliest.iter().map(|user| user.get()).collect())]).await
}

/// A row that is made: whose and which number, what it holds and since when.
pub(super) type NewRow<'a> = (&'a (UserId, i64), &'a (Item, UnixMs));

/// Who sent a direct message.
fn sender_of(owner: UserId, item: &Item) -> i64 {
    let (Of::Direct { peer, .. } | Of::DirectRecall { peer, .. }) = &item.of;
    if item.own { owner } else { *peer }.get()
}

fn inbox_columns(rows: &[NewRow<'_>]) -> [Column; 15] {
    let number = |value: fn(&Item) -> i64| Column::Int(rows.iter().map(|(_, (item, _))| value(item)).collect());
    let text = |value: fn(&Item) -> &str| Column::Text(rows.iter().map(|(_, (item, _))| value(item).to_owned()).collect());
    [
        Column::Int(rows.iter().map(|((user, _), _)| user.get()).collect()),
        Column::Int(rows.iter().map(|((_, seq), _)| *seq).collect()),
        Column::Int(rows.iter().map(|((user, _), (item, _))| sender_of(*user, item)).collect()),
        number(|item| match &item.of {
            Of::Direct { peer, .. } | Of::DirectRecall { peer, .. } => peer.get(),
        }),
        number(|item| match &item.of {
            Of::Direct { peer_seq, .. } | Of::DirectRecall { peer_seq, .. } => *peer_seq,
        }),
        number(|_| 0),
        number(|item| if let Of::DirectRecall { seq, .. } = &item.of { *seq } else { 0 }),
        number(|item| i64::from(item.own)),
        number(|item| i64::from(matches!(item.of, Of::DirectRecall { .. }))),
        text(|item| if let Of::Direct { client, .. } = &item.of { client.as_str() } else { "" }),
        text(|item| if let Of::Direct { content, .. } = &item.of { content } else { "" }),
        Column::Int(rows.iter().map(|(_, (_, at))| at.0).collect()),
        number(|item| if let Of::Direct { sent_at, .. } = &item.of { sent_at.0 } else { 0 }),
        number(|item| if let Of::Direct { other_seq, .. } = &item.of { *other_seq } else { 0 }),
        number(|item| i64::from(matches!(item.of, Of::Direct { recalled: true, .. }))),
    ]
}

pub(super) async fn insert_rows(conn: &mut Conn, rows: &[NewRow<'_>]) -> DbResult<()> {
    conn.later(&INSERT_ROWS, &inbox_columns(rows)).await
}

/// Runs that are made: whose and behind which number, which messages and since when.
pub(super) type NewRun<'a> = (&'a (UserId, i64), &'a (GroupRun, UnixMs));

pub(super) async fn insert_runs(conn: &mut Conn, runs: &[NewRun<'_>]) -> DbResult<()> {
    let number = |value: fn(&GroupRun) -> i64| Column::Int(runs.iter().map(|(_, (run, _))| value(run)).collect());
    let columns = [
        Column::Int(runs.iter().map(|((user, _), _)| user.get()).collect()),
        Column::Int(runs.iter().map(|((_, after), _)| *after).collect()),
        number(|run| run.group.get()),
        Column::Text(runs.iter().map(|(_, (run, _))| run.seqs.to_string()).collect()),
        number(|run| i64::from(run.own)),
        number(|run| i64::from(run.recall)),
        Column::Int(runs.iter().map(|(_, (_, at))| at.0).collect()),
    ];
    conn.later(&INSERT_RUNS, &columns).await
}

/// Removes each user's rows up to a seq.
pub(super) async fn delete_oldest(conn: &mut Conn, gone: &[(&UserId, &i64)]) -> DbResult<()> {
    let columns =
        [Column::Int(gone.iter().map(|(user, _)| user.get()).collect()), Column::Int(gone.iter().map(|(_, up_to)| **up_to).collect())];
    conn.later(&DELETE_OLDEST, &columns).await
}

pub(super) async fn save_directs(conn: &mut Conn, directs: &[(&ChatKey, &Direct)]) -> DbResult<()> {
    let column = |value: fn(&Direct) -> i64| Column::Int(directs.iter().map(|(_, direct)| value(direct)).collect());
    let [users, peers] = chat_columns(directs);
    let columns = [
        users,
        peers,
        column(|direct| direct.head),
        column(|direct| direct.mark),
        column(|direct| direct.last_seq),
        column(|direct| direct.last_at.0),
        column(|direct| direct.level.row().0),
        column(|direct| direct.gone),
        Column::Text(directs.iter().map(|(_, direct)| direct.gone_seqs.to_string()).collect()),
        column(|direct| direct.level.row().1),
        column(|direct| direct.read_seq),
        column(|direct| direct.again),
        column(|direct| direct.unread_from),
        column(|direct| direct.recalled),
        Column::Text(directs.iter().map(|(_, direct)| direct.hidden.to_row()).collect()),
    ];
    conn.later(&SAVE_DIRECTS, &columns).await
}

pub(super) async fn delete_directs(conn: &mut Conn, directs: &[(&ChatKey, &Direct)]) -> DbResult<()> {
    conn.later(&DELETE_DIRECTS, &chat_columns(directs)).await
}

fn chat_columns(directs: &[(&ChatKey, &Direct)]) -> [Column; 2] {
    [
        Column::Int(directs.iter().map(|((user, _), _)| user.get()).collect()),
        Column::Int(directs.iter().map(|((_, peer), _)| peer.get()).collect()),
    ]
}
