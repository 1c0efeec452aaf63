//! Receivers who block or mute the actor of a notification: it stays out of their lists for ever, and
//! counts among its recipients all the same ([`Entry::silenced`](super::entry::Entry::silenced)).

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::UserId;
use crate::db::{Column, DbResult, Pipeline, Statement, Type};
use crate::features::silence::{Mute, Silence};

/// Those of these pairs who block (-1) or mute (until when, 0: for ever). A notification has up to
/// 10,000 receivers, so nothing is looked for where nobody does either.
static LOAD: Statement = Statement::new(
    "select b.user_id, b.target_id, cast(-1 as bigint)
    from {rows} r
    join blocks b on b.user_id = r.user_id and b.target_id = r.actor_id
    where exists (select 1 from blocks)
    union all
    select m.user_id, m.target_id, m.until
    from {rows} r
    join mutes m on m.user_id = r.user_id and m.target_id = r.actor_id
    where exists (select 1 from mutes)",
    &[("user_id", Type::Int), ("actor_id", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
pub(super) fn statements() -> [&'static Statement; 1] {
    [&LOAD]
}

pub(super) async fn load(pipeline: &Pipeline, asked: &BTreeSet<(UserId, UserId)>) -> DbResult<Vec<((UserId, UserId), Silence)>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let columns =
        [asked.iter().map(|(user, _)| user.get()).collect(), asked.iter().map(|(_, actor)| actor.get()).collect()].map(Column::Int);
    let rows: Vec<(i64, i64, i64)> = pipeline.fetch(&LOAD, columns).await?;
    let mut found = BTreeMap::<_, Silence>::new();
    for (user, actor, until) in rows {
        let (Ok(user), Ok(actor)) = (UserId::try_from(user), UserId::try_from(actor)) else { continue };
        let silence = found.entry((user, actor)).or_default();
        if until < 0 {
            silence.blocked = true;
        } else {
            silence.mute = Some(Mute::from_row(until));
        }
    }
    Ok(found.into_iter().collect())
}
