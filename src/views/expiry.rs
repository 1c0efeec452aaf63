//! Old things in views go, where a setting says so: the row that makes an id count once. No number changes: what is unread is counted from head and mark.
//!
//! Two sorts of rows are needed for counting and stay: of what was deleted, and of what a user made itself and has not passed with its mark, which is then not
//! to count for that user. The latter go when their maker has been there again. A sweep walks the old rows in the order of their age and passes by those that
//! stay; it goes on in the next sweep where the last one stopped, so that they cannot keep it from the others.

use clap::Args;

use crate::clock::{DAY_MS, UnixMs};
use crate::db::{Column, DbResult, Statement, Type};
use crate::state::AppState;

/// How views are kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Views")]
pub struct ViewConfig {
    /// For how many days the id of a thing in a view is known: that long a repeat counts once and the thing can be deleted. 0: for ever.
    #[arg(long, env = "HEADMARK_VIEW_ITEM_TTL_DAYS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub view_item_ttl_days: u32,
}

/// How many old rows one round of a sweep looks at.
const ROUND_ROWS: i64 = 1000;

/// How many rounds one sweep has at most.
const ROUNDS: u32 = 100;

/// With whether it may go: its maker, if one is named, has passed it, or was never there and will begin after it. Marks never go back, so that stays so.
static OLD: Statement = Statement::one(
    "select i.created_at, i.stream, i.item_id,
        cast(case when i.actor_id = 0 then 1
            when exists (select 1 from marks m where m.user_id = i.actor_id and m.kind = 4 and m.name = i.stream and m.mark < i.seq) then 0
            else 1
        end as bigint)
    from view_items i
    where i.gone = 0 and (i.created_at, i.stream, i.item_id) > ($1, $2, $3) and i.created_at < $4
    order by i.created_at, i.stream, i.item_id
    limit $5",
    &[("after_at", Type::Int), ("after_stream", Type::Text), ("after_item", Type::Text), ("before", Type::Int), ("max_rows", Type::Int)],
);

/// Looked at again whether it was deleted meanwhile, as then its row is needed.
static REMOVE: Statement = Statement::new(
    "delete from view_items
    where (stream, item_id) in (select stream, item_id from {rows} r) and gone = 0",
    &[("stream", Type::Text), ("item_id", Type::Text)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&OLD, &REMOVE]
}

/// Where a walk through the old rows is: the last one that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    at: i64,
    stream: String,
    item: String,
}

impl Default for Walk {
    fn default() -> Self {
        Self { at: i64::MIN, stream: String::new(), item: String::new() }
    }
}

/// Removes old rows, in bounded rounds, and goes on from where the walk is; at the end it begins anew. Returns how many rows were removed.
///
/// # Errors
/// The driver's own.
pub async fn sweep(state: &AppState, walk: &mut Walk) -> DbResult<u64> {
    let days = i64::from(state.views.view_item_ttl_days);
    let before = UnixMs(state.clock.now().0 - days * DAY_MS);
    let mut removed = 0;
    for _ in 0..ROUNDS {
        if days == 0 || state.draining.is_cancelled() {
            break;
        }
        let columns = [
            Column::Int(vec![walk.at]),
            Column::Text(vec![walk.stream.clone()]),
            Column::Text(vec![walk.item.clone()]),
            Column::Int(vec![before.0]),
            Column::Int(vec![ROUND_ROWS]),
        ];
        let old: Vec<(i64, String, String, i64)> = state.db.fetch(&OLD, &columns).await?;
        let may_go = |pick: fn(&(i64, String, String, i64)) -> &String| {
            Column::Text(old.iter().filter(|(.., may_go)| *may_go == 1).map(|row| pick(row).clone()).collect())
        };
        if old.iter().any(|(.., may_go)| *may_go == 1) {
            let columns = [may_go(|(_, stream, ..)| stream), may_go(|(_, _, item, _)| item)];
            removed += state.db.connect().await?.run(&REMOVE, &columns).await?;
        }
        match old.into_iter().next_back() {
            Some((at, stream, item, _)) => *walk = Walk { at, stream, item },
            None => {
                *walk = Walk::default();
                break;
            }
        }
    }
    Ok(removed)
}
