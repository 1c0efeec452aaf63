//! What a recount compares of the streams that users share: the head of each, and the positions
//! that were taken back in it, against the rows of the things themselves.
//!
//! | stream | rows | head | taken back |
//! | --- | --- | --- | --- |
//! | posts of a creator, view | `posts`, `view_items`; those that are not gone may be swept | at least the highest position of a row | the rows that are gone |
//! | group | `group_messages`, which go from the lowest on | the same | every position without a message that is not recalled: those that have expired, too; all of a group that is deleted. `mentions.rs` compares what mentions all |
//! | channel | `notices`, which all stay | the same | every position without a notice; which are withdrawn, the notices themselves say |
//! | broadcast state | none of its own | at least every position of it that a notice, a channel or a dot names | |
//!
//! So a head that is too low is found in every stream but a dot's, of which there are no rows. One
//! that is too high is found where all rows stay: nothing is at the positions above the last row.
//! It is not taken down again, as users' marks may stand there, and what comes next would lie below
//! them; the positions count as taken back. Of posts and views it cannot be told from rows that
//! were swept. What was taken back is compared by number, above the stream's floor: below it
//! nothing is stored.
//!
//! Unlike users' numbers these are guarded by one lock, that of the head, so a repair counts again
//! under it and writes what it has counted. It signs as a lane of its own, so that running nodes
//! hear of it as they hear of every change.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::distributed;
use super::living::lock_living;
use super::{Difference, What, mentions};
use crate::base::clock::Clock;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::heads::store as heads;
use crate::engine::lanes;
use crate::engine::marks::{Intervals, Kind, MAX_SHARED_RUNS, Stream, StreamKey};

const OWNERS: &[(&str, Type)] = &[("owner_id", Type::Int)];
const NAMES: &[(&str, Type)] = &[("name", Type::Text)];
const AFTER: &[(&str, Type)] = &[("after", Type::Text), ("max_rows", Type::Int)];
const RUNS_OF_OWNER: &[(&str, Type)] = &[("owner_id", Type::Int), ("above", Type::Int), ("below", Type::Int), ("max_rows", Type::Int)];
const RUNS_OF_NAME: &[(&str, Type)] = &[("name", Type::Text), ("above", Type::Int), ("below", Type::Int), ("max_rows", Type::Int)];

/// Each stream as its row has it, the highest position of its things, how many of them above the
/// floor are gone (posts, views) or there (the others), and how many are gone in all (posts).
static COUNT_POSTS: Statement = Statement::new(
    "select r.owner_id, '', coalesce(h.head, 0), coalesce(h.retracted, ''), coalesce(h.floor, 0), coalesce(h.position, 0),
        coalesce((select max(p.seq) from posts p where p.user_id = r.owner_id), 0),
        (select count(*) from posts p where p.user_id = r.owner_id and p.gone = 1 and p.seq > coalesce(h.floor, 0)),
        (select count(*) from posts p where p.user_id = r.owner_id and p.gone = 1)
    from {rows} r
    left join heads h on h.owner_id = r.owner_id and h.kind = 5 and h.name = ''
    order by r.owner_id",
    OWNERS,
)
.by("owner_id");

static COUNT_GROUPS: Statement = Statement::new(
    "select r.owner_id, '', coalesce(h.head, 0), coalesce(h.retracted, ''), coalesce(h.floor, 0), coalesce(h.position, 0),
        coalesce((select max(m.seq) from group_messages m where m.group_id = r.owner_id), 0),
        (select count(*) from group_messages m where m.group_id = r.owner_id and m.recalled = 0 and m.seq > coalesce(h.floor, 0)
            and coalesce(h.position, 0) = 0),
        cast(0 as bigint)
    from {rows} r
    left join heads h on h.owner_id = r.owner_id and h.kind = 6 and h.name = ''
    order by r.owner_id",
    OWNERS,
)
.by("owner_id");

static COUNT_VIEWS: Statement = Statement::new(
    "select cast(0 as bigint), r.name, coalesce(h.head, 0), coalesce(h.retracted, ''), coalesce(h.floor, 0), coalesce(h.position, 0),
        coalesce((select max(i.seq) from view_items i where i.stream = r.name), 0),
        (select count(*) from view_items i where i.stream = r.name and i.gone = 1 and i.seq > coalesce(h.floor, 0)),
        cast(0 as bigint)
    from {rows} r
    left join heads h on h.owner_id = 0 and h.kind = 4 and h.name = r.name
    order by r.name",
    NAMES,
)
.distributed(distributed::COUNT_VIEWS);

static COUNT_CHANNELS: Statement = Statement::new(
    "select cast(0 as bigint), r.name, coalesce(h.head, 0), coalesce(h.retracted, ''), coalesce(h.floor, 0), coalesce(h.position, 0),
        coalesce((select max(n.seq) from notices n where n.channel = r.name), 0),
        (select count(*) from notices n where n.channel = r.name and n.seq > coalesce(h.floor, 0)),
        cast(0 as bigint)
    from {rows} r
    left join heads h on h.owner_id = 0 and h.kind = 2 and h.name = r.name
    order by r.name",
    NAMES,
);

static COUNT_BOARD: Statement = Statement::new(
    "select cast(0 as bigint), '', coalesce((select h.head from heads h where h.owner_id = 0 and h.kind = 7 and h.name = ''), 0), '',
        cast(0 as bigint), cast(0 as bigint), coalesce(max(named.at), 0), cast(0 as bigint), cast(0 as bigint)
    from (
        select max(n.changed) as at from notices n
        union all
        select max(n.position) from notices n
        union all
        select max(h.position) from heads h where h.owner_id = 0 and h.kind in (2, 3)
    ) named",
    &[],
);

static NEXT_VIEWS: Statement = Statement::one(
    "select name
    from (
        select name from (select h.name from heads h where h.owner_id = 0 and h.kind = 4 and h.name > $1 order by h.name limit $2) a
        union
        select stream from (select distinct i.stream from view_items i where i.stream > $1 order by i.stream limit $2) b
    ) names
    order by name
    limit $2",
    AFTER,
);

static NEXT_CHANNELS: Statement = Statement::one(
    "select name
    from (
        select name from (select h.name from heads h where h.owner_id = 0 and h.kind = 2 and h.name > $1 order by h.name limit $2) a
        union
        select channel from (select distinct n.channel from notices n where n.channel > $1 order by n.channel limit $2) b
    ) names
    order by name
    limit $2",
    AFTER,
);

/// The newest runs of posts, or of things in views, that are gone, above one position and below
/// another.
static RUNS_OF_POSTS: Statement = Statement::one(
    "select min(seq), max(seq)
    from (
        select p.seq, p.seq - row_number() over (order by p.seq) as island
        from posts p
        where p.user_id = $1 and p.gone = 1 and p.seq > $2 and p.seq < $3
    ) numbered
    group by island
    order by 1 desc
    limit $4",
    RUNS_OF_OWNER,
);

static RUNS_OF_VIEWS: Statement = Statement::one(
    "select min(seq), max(seq)
    from (
        select i.seq, i.seq - row_number() over (order by i.seq) as island
        from view_items i
        where i.stream = $1 and i.gone = 1 and i.seq > $2 and i.seq < $3
    ) numbered
    group by island
    order by 1 desc
    limit $4",
    RUNS_OF_NAME,
);

/// The newest runs of positions, above one and below another, at which nothing is.
static RUNS_OF_GROUPS: Statement = Statement::one(
    "select before + 1, seq - 1
    from (
        select seq, lag(seq, 1, $2) over (order by seq) as before
        from (
            select m.seq from group_messages m where m.group_id = $1 and m.recalled = 0 and m.seq > $2
            union all
            select cast($3 as bigint)
        ) there
    ) pairs
    where seq > before + 1
    order by seq desc
    limit $4",
    RUNS_OF_OWNER,
);

static RUNS_OF_CHANNELS: Statement = Statement::one(
    "select before + 1, seq - 1
    from (
        select seq, lag(seq, 1, $2) over (order by seq) as before
        from (
            select n.seq from notices n where n.channel = $1 and n.seq > $2
            union all
            select cast($3 as bigint)
        ) there
    ) pairs
    where seq > before + 1
    order by seq desc
    limit $4",
    RUNS_OF_NAME,
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 11] {
    [
        &COUNT_POSTS,
        &COUNT_GROUPS,
        &COUNT_VIEWS,
        &COUNT_CHANNELS,
        &COUNT_BOARD,
        &NEXT_VIEWS,
        &NEXT_CHANNELS,
        &RUNS_OF_POSTS,
        &RUNS_OF_GROUPS,
        &RUNS_OF_VIEWS,
        &RUNS_OF_CHANNELS,
    ]
}

/// Some streams of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum Streams<'a> {
    /// The posts of these creators.
    Posts(&'a [i64]),
    /// The messages of these groups.
    Groups(&'a [i64]),
    /// These views.
    Views(&'a [String]),
    /// These channels.
    Channels(&'a [String]),
    BroadcastState,
}

/// A stream as its row has it, and what the rows of its things say.
struct Counted {
    key: StreamKey,
    head: i64,
    retracted: Intervals,
    floor: i64,
    position: i64,
    /// The highest position of any of its things.
    highest: i64,
    /// How many things above the floor are gone (posts, views), or there.
    above: i64,
    /// How many posts are gone.
    gone: i64,
}

type CountRow = (i64, String, i64, String, i64, i64, i64, i64, i64);

impl Counted {
    fn of_row(kind: Kind, (owner, name, head, retracted, floor, position, highest, above, gone): CountRow) -> Self {
        let key = StreamKey { owner, kind, name: name.into() };
        Self { key, head, retracted: Intervals::parse(&retracted), floor, position, highest, above, gone }
    }

    /// What the head is at least.
    fn least_head(&self) -> i64 {
        self.head.max(self.highest)
    }

    /// How many positions above the floor are to be taken back.
    fn retracted_counted(&self) -> i64 {
        if matches!(self.key.kind, Kind::Post | Kind::View) { self.above } else { (self.least_head() - self.floor - self.above).max(0) }
    }

    fn differences(&self) -> impl Iterator<Item = Difference> + use<> {
        let kind = self.key.kind;
        let mut numbers = vec![(What::Head(kind), self.head, self.least_head())];
        if kind != Kind::BroadcastState {
            let stored = self.retracted.count_within(self.floor, self.least_head());
            numbers.push((What::Retracted(kind), stored, self.retracted_counted()));
        }
        if kind == Kind::Post {
            numbers.push((What::PostsGone, self.position, self.gone));
        }
        let (owner, name) = (self.key.owner, Some(Arc::clone(&self.key.name)).filter(|name| !name.is_empty()));
        let differing = numbers.into_iter().filter(|(_, stored, counted)| stored != counted);
        differing.map(move |(what, stored, counted)| Difference { name: name.clone(), ..Difference::new(owner, what, stored, counted) })
    }
}

async fn read(conn: &mut Conn, streams: Streams<'_>) -> DbResult<Vec<Counted>> {
    let (kind, rows): (_, Vec<CountRow>) = match streams {
        Streams::Posts(owners) => (Kind::Post, conn.fetch(&COUNT_POSTS, &[Column::Int(owners.to_vec())]).await?),
        Streams::Groups(owners) => (Kind::Group, conn.fetch(&COUNT_GROUPS, &[Column::Int(owners.to_vec())]).await?),
        Streams::Views(names) => (Kind::View, conn.fetch(&COUNT_VIEWS, &[Column::Text(names.to_vec())]).await?),
        Streams::Channels(names) => (Kind::Broadcast, conn.fetch(&COUNT_CHANNELS, &[Column::Text(names.to_vec())]).await?),
        Streams::BroadcastState => (Kind::BroadcastState, conn.fetch(&COUNT_BOARD, &[]).await?),
    };
    Ok(rows.into_iter().map(|row| Counted::of_row(kind, row)).collect())
}

/// Compares these streams. Each comparison is one statement, and so of one moment.
pub(super) async fn count(conn: &mut Conn, streams: Streams<'_>) -> DbResult<Vec<Difference>> {
    let mut found: Vec<_> = read(conn, streams).await?.iter().flat_map(Counted::differences).collect();
    if let Streams::Groups(groups) = streams {
        found.extend(mentions::count(conn, groups).await?);
    }
    Ok(found)
}

/// The next views after a name, or the next channels.
pub(super) async fn next_names(conn: &mut Conn, kind: Kind, after: &str, max_rows: i64) -> DbResult<Vec<String>> {
    let statement = if kind == Kind::View { &NEXT_VIEWS } else { &NEXT_CHANNELS };
    let columns = [Column::Text(vec![after.to_owned()]), Column::Int(vec![max_rows])];
    let rows: Vec<(String,)> = conn.fetch(statement, &columns).await?;
    Ok(rows.into_iter().map(|(name,)| name).collect())
}

/// Counts these streams again, inside a transaction, under the locks of their heads, and writes
/// what the rows say.
pub(super) async fn repair(conn: &mut Conn, found: &[Difference]) -> DbResult<()> {
    let mut keys: BTreeSet<StreamKey> = found.iter().filter_map(Difference::stream).collect();
    if keys.iter().any(|key| key.kind == Kind::Broadcast) {
        // Nodes read the channels again when the broadcast state has changed.
        keys.insert(StreamKey::broadcast_state());
    }
    let pipeline = Pipeline::default();
    let all: Vec<_> = keys.iter().cloned().collect();
    let there: BTreeSet<_> = pipeline.run(conn, heads::load(&pipeline, &all)).await?.into_iter().map(|(key, _)| key).collect();
    // A head that is made for a creator who is erased would stay for ever. Before the heads, as in every transaction.
    let missing = |key: &StreamKey| key.kind == Kind::Post && !there.contains(key);
    let creators: BTreeSet<_> = keys.iter().filter(|key| missing(key)).map(|key| key.owner).collect();
    let living = lock_living(conn, &creators.into_iter().collect::<Vec<_>>()).await?;
    keys.retain(|key| !missing(key) || living.contains(&key.owner));
    if keys.is_empty() {
        return Ok(());
    }
    let keys: Vec<_> = keys.into_iter().collect();
    let heads::Locked { found, made } = pipeline.run(conn, heads::lock(&pipeline, &keys)).await?;
    if made.iter().any(|key| key.kind == Kind::Post && !missing(key)) {
        // It went meanwhile, as its creator is being erased.
        return Err(sqlx::Error::RowNotFound);
    }
    let locked: std::collections::BTreeMap<_, _> = found.into_iter().collect();
    let mut repaired = Vec::with_capacity(keys.len());
    for key in keys {
        let stream = locked.get(&key).cloned().unwrap_or_default();
        let stream = rebuilt(conn, &key, stream).await?;
        repaired.push((key, stream));
    }
    let batch = lanes::announce(conn, Clock::System.now()).await?;
    heads::save(conn, &repaired.iter().map(|(key, stream)| (key, stream)).collect::<Vec<_>>(), batch).await
}

/// A locked stream as its rows have it.
async fn rebuilt(conn: &mut Conn, key: &StreamKey, mut stream: Stream) -> DbResult<Stream> {
    let (owner, name) = ([key.owner], [(*key.name).to_owned()]);
    let streams = match key.kind {
        Kind::Post => Streams::Posts(&owner),
        Kind::Group => Streams::Groups(&owner),
        Kind::View => Streams::Views(&name),
        Kind::Broadcast => Streams::Channels(&name),
        _ => Streams::BroadcastState,
    };
    let Some(counted) = read(conn, streams).await?.into_iter().next() else { return Ok(stream) };
    let raised = (counted.least_head() - stream.head).max(0);
    stream.head = counted.least_head();
    // More than messages alone raise it by, so that readers read the rows again (`other_changes`).
    stream.version += raised + 1;
    match key.kind {
        // One more, so that those who compare heads see that there is something new.
        Kind::BroadcastState => stream.head += 1,
        Kind::Post => stream.position = counted.gone,
        Kind::Group => stream.mention_all = mentions::runs(conn, key.owner).await?.1,
        _ => {}
    }
    if key.kind == Kind::Group && stream.is_deleted_group() {
        (stream.retracted, stream.floor, stream.mention_all) = Default::default();
        stream.expire(stream.head);
    } else if key.kind != Kind::BroadcastState {
        (stream.retracted, stream.floor) = runs(conn, key, &stream).await?;
    }
    Ok(stream)
}

/// The positions of a stream that are to be taken back, and the floor above which they are. As many
/// runs as a stream keeps at hand, the newest; of a channel all.
async fn runs(conn: &mut Conn, key: &StreamKey, stream: &Stream) -> DbResult<(Intervals, i64)> {
    let most = if key.kind == Kind::Broadcast { usize::MAX } else { MAX_SHARED_RUNS };
    let limit = i64::try_from(most.saturating_add(1)).unwrap_or(i64::MAX);
    let (statement, whose) = match key.kind {
        Kind::Post => (&RUNS_OF_POSTS, Column::Int(vec![key.owner])),
        Kind::Group => (&RUNS_OF_GROUPS, Column::Int(vec![key.owner])),
        Kind::View => (&RUNS_OF_VIEWS, Column::Text(vec![(*key.name).to_owned()])),
        _ => (&RUNS_OF_CHANNELS, Column::Text(vec![(*key.name).to_owned()])),
    };
    let places = [stream.floor, stream.head + 1, limit].map(|place| Column::Int(vec![place]));
    let columns: Vec<_> = std::iter::once(whose).chain(places).collect();
    let newest: Vec<(i64, i64)> = conn.fetch(statement, &columns).await?;
    let mut retracted = Intervals::default();
    newest.iter().take(most).for_each(|(from, to)| retracted.insert(*from, *to));
    Ok((retracted, newest.get(most).map_or(stream.floor, |(_, to)| *to)))
}
