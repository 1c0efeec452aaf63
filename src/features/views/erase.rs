//! What is left of views when a user is erased: items stay, without the one who made them. No number of
//! others changes, as an item counts for all but its maker.

use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::db::{Column, Statement, Type, in_time};
use crate::failpoint;
use crate::features::removals::{Engines, Place, Progress, Step, delete_pages, user_of};

/// How many items one batch looks at.
const ITEMS_AT_ONCE: i64 = 2000;

static ITEMS: Statement = Statement::one(
    "select i.stream, i.item_id, i.actor_id
    from view_items i
    where (i.stream, i.item_id) > ($1, $2)
    order by i.stream, i.item_id
    limit $3",
    &[("after_stream", Type::Text), ("after_item", Type::Text), ("max_rows", Type::Int)],
);

/// An item keeps its maker where another one has made it again meanwhile.
static FORGET: Statement = Statement::new(
    "update view_items
    set actor_id = 0
    from {rows} r
    where view_items.stream = r.stream and view_items.item_id = r.item_id and view_items.actor_id = r.maker",
    &[("stream", Type::Text), ("item_id", Type::Text), ("maker", Type::Int)],
)
.by("stream");

static OWN: [Statement; 1] = [Statement::one(
    "delete from marks
    where user_id = $1 and (kind, name) in (select m.kind, m.name from marks m where m.user_id = $1 order by m.kind, m.name limit $2)",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
)];

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    [&ITEMS, &FORGET].into_iter().chain(&OWN).collect()
}

/// The steps that remove a user as a maker of items and as a visitor.
#[must_use]
pub fn steps() -> Vec<Step> {
    vec![
        Step::new("view_items", &["view_items"], |engines, subject, place| async move {
            forget_maker(&engines, user_of(subject)?, place).await
        }),
        delete_pages("marks", &["marks"], &OWN),
    ]
}

/// There is no index of makers: the items are walked through. The place has the item as `stream item`,
/// which both have no space.
async fn forget_maker(engines: &Engines, maker: UserId, place: Place) -> Result<Progress> {
    let (stream, item) = place.name.split_once(' ').unwrap_or_default();
    let columns = [Column::Text(vec![stream.to_owned()]), Column::Text(vec![item.to_owned()]), Column::Int(vec![ITEMS_AT_ONCE])];
    let rows: Vec<(String, String, i64)> = in_time(engines.db.fetch(&ITEMS, &columns)).await?;
    let (streams, items): (Vec<_>, Vec<_>) =
        rows.iter().filter(|(.., actor)| *actor == maker.get()).map(|(stream, item, _)| (stream.clone(), item.clone())).unzip();
    if !streams.is_empty() {
        failpoint("views::before_forget");
        let makers = Column::Int(vec![maker.get(); items.len()]);
        let columns = [Column::Text(streams), Column::Text(items), makers];
        in_time(engines.db.run(&FORGET, &columns)).await?;
    }
    let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= ITEMS_AT_ONCE;
    let next = |(stream, item, _): &(String, String, i64)| Progress::More(Place { name: format!("{stream} {item}"), ..Place::default() });
    Ok(rows.last().filter(|_| is_full).map_or(Progress::Done, next))
}
