//! What is left of notifications when a user is erased. Those that name it as their actor are withdrawn,
//! and say nothing any more. As a recipient it is none any more, read or not. Its list goes.

use std::collections::BTreeSet;

use super::NotificationConfig;
use super::rows::NotificationRows;
use super::{reads, rules, sent_store};
use crate::base::clock::UnixMs;
use crate::base::error::{Problem, Result};
use crate::base::ids::{NotificationId, UserId};
use crate::db::{Column, Pipeline, Statement, Type, in_time};
use crate::engine::events::NotificationChange;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};
use crate::engine::marks::users::lock_users;
use crate::features::removals::{Engines, Place, Progress, Step, delete_own, user_of};

/// How many notifications one batch looks at, and how many of them it withdraws.
const LOOKED_AT_ONCE: i64 = 2000;
const WITHDRAWN_AT_ONCE: usize = 10;

/// How many rows of the user's own list one batch removes.
const RECEIVED_AT_ONCE: i64 = 500;

/// With the contents of those that may name the user: there is no index of actors.
static SENT: Statement = Statement::one(
    "select n.notification_id, case when n.content like $3 then n.content else '' end
    from notifications n
    where n.notification_id > $1
    order by n.notification_id
    limit $2",
    &[("after", Type::Int), ("max_rows", Type::Int), ("pattern", Type::Text)],
);

static GROUPED: Statement = Statement::one(
    "select g.notification_id, g.entry_id, g.seq
    from grouped_notifications g
    where g.user_id = $1
    order by g.entry_id, g.seq
    limit $2",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
);

static DELETE_GROUPED: Statement = Statement::new(
    "delete from grouped_notifications
    where (user_id, entry_id, seq) in (select user_id, entry_id, seq from {rows} r)",
    &[("user_id", Type::Int), ("entry_id", Type::Int), ("seq", Type::Int)],
)
.by("user_id");

/// Entries, each with whether it is the row of one notification.
static ENTRIES: Statement = Statement::one(
    "select n.notification_id, n.seq, case when n.group_key = '' then 1 else 0 end
    from notification_receivers n
    where n.user_id = $1
    order by n.seq
    limit $2",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
);

static DELETE_ENTRIES: Statement = Statement::new(
    "delete from notification_receivers
    where (user_id, seq) in (select user_id, seq from {rows} r)",
    &[("user_id", Type::Int), ("seq", Type::Int)],
)
.by("user_id");

static RECEIVED_BY_ONE_LESS: Statement = Statement::new(
    "update notifications
    set recipients = notifications.recipients - 1
    from {rows} r
    where notifications.notification_id = r.notification_id and notifications.recipients > 0",
    &[("notification_id", Type::Int)],
)
.by("notification_id");

static OWN: [Statement; 1] = [Statement::one("delete from notification_types where user_id = $1", &[("user_id", Type::Int)])];

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    [&SENT, &GROUPED, &DELETE_GROUPED, &ENTRIES, &DELETE_ENTRIES, &RECEIVED_BY_ONE_LESS].into_iter().chain(&OWN).collect()
}

/// The steps that remove a user as an actor and as a recipient.
#[must_use]
pub fn steps(config: &NotificationConfig) -> Vec<Step> {
    let config = config.clone();
    vec![
        Step::new("notifications", &["notifications"], move |engines, subject, place| {
            let kept_from = config.kept_from(engines.clock.now());
            async move { withdraw(&engines, user_of(subject)?, place.id, kept_from).await }
        }),
        Step::new("notification_lists", &["notification_receivers", "grouped_notifications"], |engines, subject, _| async move {
            in_time(remove_received(&engines, user_of(subject)?)).await.map_err(Into::into)
        }),
        delete_own("notification_types", &["notification_types"], &OWN),
    ]
}

async fn withdraw(engines: &Engines, actor: UserId, after: i64, kept_from: i64) -> Result<Progress> {
    let columns = [Column::Int(vec![after]), Column::Int(vec![LOOKED_AT_ONCE]), Column::Text(vec![format!("%\"actor_id\":\"{actor}\"%")])];
    let rows: Vec<(i64, String)> = in_time(engines.db.fetch(&SENT, &columns)).await?;
    let mut withdrawn = 0;
    for (id, content) in rows.iter().filter(|(_, content)| !content.is_empty()) {
        let is_of_actor = serde_json::from_str::<super::Content>(content).is_ok_and(|content| content.actor_id == Some(actor));
        let Some(notification) = NotificationId::try_from(*id).ok().filter(|_| is_of_actor) else { continue };
        let recipients = in_time(reads::recipients(&engines.db, notification)).await?;
        engines.submit(WithdrawOfErased { id: notification, recipients, kept_from }).await?;
        withdrawn += 1;
        if withdrawn >= WITHDRAWN_AT_ONCE {
            return Ok(Progress::More(Place::id(*id)));
        }
    }
    let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= LOOKED_AT_ONCE;
    Ok(rows.last().filter(|_| is_full).map_or(Progress::Done, |(id, _)| Progress::More(Place::id(*id))))
}

/// Withdraws a notification from all lists, as far as that was not done, and forgets what it said.
#[derive(Debug, Clone)]
struct WithdrawOfErased {
    id: NotificationId,
    recipients: Vec<UserId>,
    kept_from: i64,
}

impl lanes::Command for WithdrawOfErased {
    fn needs(&self, needs: &mut Needs) {
        self.recipients.iter().for_each(|user| needs.user(*user));
        let of = needs.of::<NotificationRows>();
        of.notifications.insert(self.id);
        of.holders.extend(self.recipients.iter().map(|user| (self.id, *user)));
    }

    fn lane_key(&self) -> i64 {
        self.recipients.first().map_or(0, |user| user.get())
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.recipients.len()).unwrap_or(u32::MAX).max(1)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let Some(before) = rows.get::<NotificationRows>().notification(self.id) else { return Ok(Answer::no_content()) };
        let silent = super::Notification { stored: "{}".to_owned(), ..(*before).clone() };
        if rows.get::<NotificationRows>().is_withdrawn(self.id) == Some(false) {
            // Without the actor.
            rules::tell(rows, self.id, &silent, NotificationChange::Withdrawn, now);
            rows.get_mut::<NotificationRows>().withdraw(self.id);
            self.recipients.iter().for_each(|user| rules::take_out(rows, *user, self.id, self.kept_from));
        }
        rows.get_mut::<NotificationRows>().edit(self.id, silent);
        Ok(Answer::no_content())
    }
}

/// Under the lock of the user's row, so that a notification has one recipient less, whoever removes
/// rows at the same time, and `read_count` falls in the same moment.
async fn remove_received(engines: &Engines, user: UserId) -> crate::db::DbResult<Progress> {
    let mut conn = engines.db.connect().await?;
    conn.begin().await?;
    let pipeline = Pipeline::default();
    pipeline.run(&mut conn, lock_users(&pipeline, &[user])).await?;
    let page = [user.get(), RECEIVED_AT_ONCE].map(|value| Column::Int(vec![value]));
    let grouped: Vec<(i64, i64, i64)> = conn.fetch(&GROUPED, &page).await?;
    let owner = |rows: usize| Column::Int(vec![user.get(); rows]);
    let (received, found) = if grouped.is_empty() {
        let entries: Vec<(i64, i64, i32)> = conn.fetch(&ENTRIES, &page).await?;
        if !entries.is_empty() {
            let seqs = Column::Int(entries.iter().map(|(_, seq, _)| *seq).collect());
            conn.later(&DELETE_ENTRIES, &[owner(entries.len()), seqs]).await?;
        }
        let found = entries.len();
        (entries.into_iter().filter(|(.., alone)| *alone == 1).map(|(id, ..)| id).collect::<Vec<_>>(), found)
    } else {
        let column = |value: fn(&(i64, i64, i64)) -> i64| Column::Int(grouped.iter().map(value).collect());
        conn.later(&DELETE_GROUPED, &[owner(grouped.len()), column(|(_, entry, _)| *entry), column(|(.., seq)| *seq)]).await?;
        (grouped.iter().map(|(id, ..)| *id).collect(), grouped.len())
    };
    if !received.is_empty() {
        // In the order of their ids: two users' lists may have them in different orders.
        let ids: BTreeSet<_> = received.iter().filter_map(|id| NotificationId::try_from(*id).ok()).collect();
        pipeline.run(&mut conn, sent_store::lock(&pipeline, &ids)).await?;
        conn.later(&RECEIVED_BY_ONE_LESS, &[Column::Int(received)]).await?;
    }
    conn.commit().await?;
    Ok(if found > 0 { Progress::More(Place::default()) } else { Progress::Done })
}
