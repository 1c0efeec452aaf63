//! The rows of `view_items`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, UserId};
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};
use crate::engine::lanes::Table;
use crate::engine::marks::store::{MarkRow, mark_of_row};
use crate::engine::marks::{Mark, MarkKey};

static LOAD: Statement = Statement::new(
    "select i.stream, i.item_id, i.seq, i.actor_id, i.created_at, i.gone
    from {rows} r
    join view_items i on i.stream = r.stream and i.item_id = r.item_id",
    &[("stream", Type::Text), ("item_id", Type::Text)],
);

static SAVE: Statement = Statement::new(
    "insert into view_items (stream, item_id, seq, actor_id, created_at, gone)
    select stream, item_id, seq, actor_id, created_at, gone
    from {rows} r
    where true
    on conflict (stream, item_id) do update set gone = excluded.gone",
    &[
        ("stream", Type::Text),
        ("item_id", Type::Text),
        ("seq", Type::Int),
        ("actor_id", Type::Int),
        ("created_at", Type::Int),
        ("gone", Type::Int),
    ],
);

/// What does not count for a user in a part of a view: what is gone, and what the user made.
static COUNT_PASSED: Statement = Statement::one(
    "select (select count(*) from view_items i where i.stream = $1 and i.seq > $2 and i.seq <= $3 and i.gone = 1)
        + (select count(*) from view_items i where i.stream = $1 and i.actor_id = $4 and i.actor_id > 0 and i.seq > $2 and i.seq <= $3 and i.gone = 0)",
    &[("stream", Type::Text), ("above", Type::Int), ("up_to", Type::Int), ("actor_id", Type::Int)],
);

/// Of these users' marks of views (kind 4), those that are too many: the ones with the earliest
/// visits, up to a number. It looks at all such marks of each user.
static OLD_VISITS: Statement = Statement::new(
    "select user_id, kind, name, head, mark, retracted, at
    from (
        select m.user_id, m.kind, m.name, m.head, m.mark, m.retracted, m.at, r.keep, r.max_rows,
            row_number() over (partition by m.user_id order by m.at, m.name) as place,
            count(*) over (partition by m.user_id) as visited
        from {rows} r
        join marks m on m.user_id = r.user_id and m.kind = 4
    ) visits
    where place <= visited - keep and place <= max_rows",
    &[("user_id", Type::Int), ("keep", Type::Int), ("max_rows", Type::Int)],
)
.by("user_id");

/// How many marks of a user one visit removes at most: where the setting was lowered, the others go
/// with the next visits.
const MAX_OLD_VISITS: i64 = 100;

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 4] {
    [&LOAD, &SAVE, &COUNT_PASSED, &OLD_VISITS]
}

/// A thing in a view: the view's name in rows, and the thing's id.
pub type ItemKey = (Arc<str>, ClientId);

/// A thing in a view, as its row has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Its position in the view.
    pub seq: i64,
    /// Who made it, if that was said.
    pub actor: Option<UserId>,
    /// When it was put there.
    pub created_at: UnixMs,
    /// Whether it was deleted.
    pub gone: bool,
}

pub type Items = Table<ItemKey, Option<Item>>;

type Row = (String, String, i64, i64, i64, i64);

/// Loads these things, under the locks of their views' heads; the missing ones are left out.
pub async fn load(pipeline: &Pipeline, items: &mut Items, needs: &BTreeSet<ItemKey>) -> DbResult<()> {
    if needs.is_empty() {
        return Ok(());
    }
    let columns = [
        Column::Text(needs.iter().map(|(stream, _)| (**stream).to_owned()).collect()),
        Column::Text(needs.iter().map(|(_, item)| item.to_string()).collect()),
    ];
    let item = |(stream, id, seq, actor, created_at, gone): Row| {
        let item = Item { seq, actor: UserId::try_from(actor).ok(), created_at: UnixMs(created_at), gone: gone == 1 };
        Some(((Arc::from(stream), id.parse().ok()?), Some(item)))
    };
    items.insert_loaded(pipeline.fetch(&LOAD, columns).await?.into_iter().filter_map(item));
    Ok(())
}

pub async fn save(conn: &mut Conn, items: &Items) -> DbResult<()> {
    let changed: Vec<_> = items.changed().filter_map(|(key, item)| Some((key, (*item)?))).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&Item) -> i64| Column::Int(changed.iter().map(|(_, item)| value(item)).collect());
    let columns = [
        Column::Text(changed.iter().map(|((stream, _), _)| (**stream).to_owned()).collect()),
        Column::Text(changed.iter().map(|((_, item), _)| item.to_string()).collect()),
        column(|item| item.seq),
        column(|item| item.actor.map_or(0, UserId::get)),
        column(|item| item.created_at.0),
        column(|item| i64::from(item.gone)),
    ];
    conn.later(&SAVE, &columns).await
}

/// The marks of these users' views that are too many, where so many are kept; under the locks of
/// the users.
pub async fn load_old_visits(pipeline: &Pipeline, users: &BTreeMap<UserId, i64>) -> DbResult<Vec<(MarkKey, Mark)>> {
    let columns = [users.keys().map(|user| user.get()).collect(), users.values().copied().collect(), vec![MAX_OLD_VISITS; users.len()]];
    let rows: Vec<MarkRow> = pipeline.fetch(&OLD_VISITS, columns.map(Column::Int)).await?;
    Ok(rows.into_iter().filter_map(mark_of_row).collect())
}

/// How many things above one position and not above another do not count for a user.
pub async fn count_passed(db: &Db, stream: &str, user: UserId, above: i64, up_to: i64) -> DbResult<i64> {
    let columns =
        [Column::Text(vec![stream.to_owned()]), Column::Int(vec![above]), Column::Int(vec![up_to]), Column::Int(vec![user.get()])];
    let rows: Vec<(i64,)> = db.fetch(&COUNT_PASSED, &columns).await?;
    Ok(rows.first().map_or(0, |(count,)| *count))
}
