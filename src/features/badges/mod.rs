//! Counter badges: mentions, likes, private messages; one number for each user and name, raised by
//! services and read by the user.
//!
//! The rule itself is [`Mark`]; this file turns requests into [`BadgeCommand`]s over it. `http.rs` has
//! the routes.

pub mod http;
pub mod summary;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{Name, UserId};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::marks::{Kind, MAX_MARKS_BYTES, MAX_RETRACTED_RUNS, MarkKey, Refused};

/// How many counters a user may have.
pub const MAX_BADGES: usize = 100;

/// The largest step of one increment.
pub const MAX_STEP: i64 = 1_000_000;

/// A badge after a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BadgeOut {
    /// The badge.
    pub badge: Name,
    /// The number of unread items.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The number of increments ever made. After an increment, it is the position of that
    /// increment, to be sent to retract as `at`.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// A badge in a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserBadgeOut {
    /// The user.
    pub user_id: UserId,
    /// The badge and its numbers.
    #[serde(flatten)]
    pub badge: BadgeOut,
}

/// The results of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserBadgesOut {
    /// One result for each item, in the order of the request. Items of one user show the revision
    /// after the whole batch.
    pub items: Vec<UserBadgeOut>,
}

impl UserBadgesOut {
    /// A retraction that changes nothing raises no revision, but a later item of its user may.
    fn new(rows: &Rows, mut items: Vec<UserBadgeOut>) -> Self {
        for item in &mut items {
            item.badge.revision = rows.revision(item.user_id);
        }
        Self { items }
    }
}

/// A user after the deletion of a badge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeletedBadgeOut {
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 919)]
    pub revision: i64,
}

/// What a reset of many badges answers inside; the route answers with the unread summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResetOut {
    pub(crate) revision: i64,
}

/// One item of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Increment {
    pub user: UserId,
    pub badge: Name,
    /// By how many, 1 to [`MAX_STEP`].
    pub by: i64,
}

/// What is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retract {
    /// The thing at this position.
    At(i64),
    /// The newest so many unread things.
    Newest(i64),
}

/// One retraction of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retraction {
    pub user: UserId,
    pub badge: Name,
    /// What is gone.
    pub what: Retract,
}

/// A write to one user's badges, or a batch of writes to many users'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadgeCommand {
    /// More happened.
    Increment(Increment),
    /// More happened in many places: all or nothing.
    IncrementMany(Vec<Increment>),
    /// Something is gone.
    Retract(Retraction),
    /// Something is gone in many places: all or nothing.
    RetractMany(Vec<Retraction>),
    /// The user has read one badge, up to a position or up to its head.
    Reset {
        user: UserId,
        badge: Name,
        /// How far; None: all that is there now.
        up_to: Option<i64>,
    },
    /// The user has read several badges up to positions, or all of them up to their heads.
    ResetMany {
        /// Whose badges.
        user: UserId,
        /// Which ones and how far; None: every counter.
        up_to: Option<BTreeMap<Name, i64>>,
    },
    /// A badge of a user goes. Its head is kept for when it is raised again.
    Delete { user: UserId, badge: Name },
}

impl lanes::Command for BadgeCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Increment(item) => needs.mark(item.user, Kind::Counter, &item.badge),
            Self::IncrementMany(items) => items.iter().for_each(|item| needs.mark(item.user, Kind::Counter, &item.badge)),
            Self::Retract(item) => needs.mark(item.user, Kind::Counter, &item.badge),
            Self::RetractMany(items) => items.iter().for_each(|item| needs.mark(item.user, Kind::Counter, &item.badge)),
            Self::Reset { user, badge, .. } | Self::Delete { user, badge } => needs.mark(*user, Kind::Counter, badge),
            Self::ResetMany { user, up_to: Some(up_to) } => {
                // It may be empty.
                needs.user(*user);
                up_to.keys().for_each(|badge| needs.mark(*user, Kind::Counter, badge));
            }
            Self::ResetMany { user, up_to: None } => needs.user(*user),
        }
    }

    fn lane_key(&self) -> i64 {
        match self {
            Self::Increment(item) => item.user.get(),
            Self::IncrementMany(items) => items.first().map_or(0, |item| item.user.get()),
            Self::Retract(item) => item.user.get(),
            Self::RetractMany(items) => items.first().map_or(0, |item| item.user.get()),
            Self::Reset { user, .. } | Self::ResetMany { user, .. } | Self::Delete { user, .. } => user.get(),
        }
    }

    fn names(&self) -> Names {
        let items = |users: Vec<UserId>| users.into_iter().enumerate().map(|(at, user)| (user, format!("/items/{at}/user_id"))).collect();
        match self {
            Self::Increment(item) => vec![in_path(item.user)],
            Self::IncrementMany(all) => items(all.iter().map(|item| item.user).collect()),
            Self::Retract(item) => vec![in_path(item.user)],
            Self::RetractMany(all) => items(all.iter().map(|item| item.user).collect()),
            Self::Reset { user, .. } | Self::ResetMany { user, .. } | Self::Delete { user, .. } => vec![in_path(*user)],
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::IncrementMany(items) => u32::try_from(items.len()).unwrap_or(u32::MAX),
            Self::RetractMany(items) => u32::try_from(items.len()).unwrap_or(u32::MAX),
            _ => 1,
        }
    }

    fn apply(&self, rows: &mut Rows, _now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Increment(item) => {
                increment(rows, item, "")?;
                Ok(Answer::ok(badge_out(rows, item.user, &item.badge)))
            }
            Self::IncrementMany(items) => Ok(Answer::ok(increment_many(rows, items)?)),
            Self::Retract(item) => {
                retract(rows, item, "")?;
                Ok(Answer::ok(badge_out(rows, item.user, &item.badge)))
            }
            Self::RetractMany(items) => Ok(Answer::ok(retract_many(rows, items)?)),
            Self::Reset { user, badge, up_to } => {
                reset(rows, *user, badge, *up_to);
                Ok(Answer::ok(badge_out(rows, *user, badge)))
            }
            Self::ResetMany { user, up_to } => {
                match up_to {
                    Some(up_to) => up_to.iter().for_each(|(badge, up_to)| reset(rows, *user, badge, Some(*up_to))),
                    None => reset_all(rows, *user),
                }
                Ok(Answer::ok(ResetOut { revision: rows.revision(*user) }))
            }
            Self::Delete { user, badge } => {
                rows.delete_counter(*user, badge);
                Ok(Answer::ok(DeletedBadgeOut { revision: rows.revision(*user) }))
            }
        }
    }
}

fn badge_out(rows: &Rows, user: UserId, badge: &Name) -> BadgeOut {
    let mark = rows.mark(user, Kind::Counter, badge);
    BadgeOut { badge: badge.clone(), unread: mark.unread(), head: mark.head(), revision: rows.revision(user) }
}

/// `pointer` is where the item stands in the body: empty for a single increment.
fn increment(rows: &mut Rows, item: &Increment, pointer: &str) -> Result<(), Problem> {
    let mut mark = rows.mark(item.user, Kind::Counter, &item.badge);
    if !rows.has_counter(item.user, &item.badge) && rows.counters(item.user) >= MAX_BADGES {
        // Without the id: answers are kept, and must not name a user who is erased since.
        let detail = format!("The user has reached the limit of {MAX_BADGES} badges.");
        return Err(located(Problem::new(Code::TooMany, detail), pointer, "/badge", "exceeds the limit of badges for this user"));
    }
    if let Err(refused) = mark.advance(item.by) {
        return Err(located(refusal(refused, item.by), pointer, "/by", "the badge would pass its highest head"));
    }
    rows.set_mark(item.user, Kind::Counter, &item.badge, mark);
    Ok(())
}

/// In a batch, names the item at fault.
fn located(problem: Problem, pointer: &str, field: &str, detail: &str) -> Problem {
    if pointer.is_empty() { problem } else { problem.at(format!("{pointer}{field}"), detail) }
}

fn increment_many(rows: &mut Rows, items: &[Increment]) -> Result<UserBadgesOut, Problem> {
    let mut after = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        increment(rows, item, &format!("/items/{at}"))?;
        after.push(UserBadgeOut { user_id: item.user, badge: badge_out(rows, item.user, &item.badge) });
    }
    Ok(UserBadgesOut::new(rows, after))
}

fn retract_many(rows: &mut Rows, items: &[Retraction]) -> Result<UserBadgesOut, Problem> {
    let mut after = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        retract(rows, item, &format!("/items/{at}"))?;
        after.push(UserBadgeOut { user_id: item.user, badge: badge_out(rows, item.user, &item.badge) });
    }
    Ok(UserBadgesOut::new(rows, after))
}

/// `pointer` is where the item stands in the body: empty for a single retraction.
fn retract(rows: &mut Rows, item: &Retraction, pointer: &str) -> Result<(), Problem> {
    let Retraction { user, badge, what } = item;
    let mut mark = rows.mark(*user, Kind::Counter, badge);
    let runs = mark.retracted().runs();
    let (done, position, field) = match *what {
        Retract::At(at) => (mark.retract_at(at).map(|_| ()), at, "/at"),
        Retract::Newest(n) => (mark.retract_newest(n).map(|_| ()), n, "/by"),
    };
    done.map_err(|refused| located(refusal(refused, position), pointer, field, "cannot be retracted"))?;
    if mark.retracted().runs() > runs && rows.marks_bytes(*user) > MAX_MARKS_BYTES {
        let detail = "The user has too many separate runs of retracted positions in all badges. Reset some badges first.";
        return Err(located(Problem::new(Code::TooMany, detail), pointer, field, "exceeds the limit of separate runs for this user"));
    }
    rows.set_mark(*user, Kind::Counter, badge, mark);
    Ok(())
}

fn reset(rows: &mut Rows, user: UserId, badge: &Name, up_to: Option<i64>) {
    let mut mark = rows.mark(user, Kind::Counter, badge);
    mark.read(up_to);
    rows.set_mark(user, Kind::Counter, badge, mark);
}

fn reset_all(rows: &mut Rows, user: UserId) {
    for name in rows.names_of(user, Kind::Counter) {
        let key = MarkKey { user, kind: Kind::Counter, name };
        let mut mark = rows.mark_at(&key);
        mark.read(None);
        rows.set_mark_at(&key, mark);
    }
}

fn refusal(refused: Refused, value: i64) -> Problem {
    match refused {
        Refused::HeadFull => Problem::new(Code::TooMany, "The badge has reached the highest possible head, 2^53-1."),
        Refused::UnknownPosition => Problem::new(Code::NotFound, format!("No increment of this badge returned head {value}.")),
        Refused::TooManyRuns => Problem::new(
            Code::TooMany,
            format!("A badge can have at most {MAX_RETRACTED_RUNS} separate runs of retracted positions. Reset it first."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lanes::Command as _;
    use crate::engine::marks::{MAX_MARKS_BYTES, UserMarks};

    #[test]
    fn gaps_in_all_badges_together_are_bounded() {
        let (user, badge): (UserId, Name) = (1.try_into().unwrap(), "like".parse().unwrap());
        let gaps: Vec<_> = (0..500).map(|n| (1_000_000 + 2 * n).to_string()).collect();
        let other = format!(" 2000000 1500000 {}", gaps.join(" "));
        let marks =
            |badges: usize| (0..badges).map(|n| format!("c:b{n}{other}")).chain(["c:like 9 9".to_owned()]).collect::<Vec<_>>().join(";");
        let retract = |rows: &mut Rows, at| {
            BadgeCommand::Retract(Retraction { user, badge: badge.clone(), what: Retract::At(at) }).apply(rows, UnixMs(1))
        };
        let mut rows = Rows::new(&[]);
        rows.revise(user, |row| row.marks = UserMarks::from_row(&marks(4)));
        retract(&mut rows, 5).unwrap();
        rows.revise(user, |row| row.marks = UserMarks::from_row(&marks(17)));
        assert!(rows.marks_bytes(user) > MAX_MARKS_BYTES);
        assert_eq!(retract(&mut rows, 5).unwrap_err().code, Code::TooMany);
        retract(&mut rows, 1).unwrap();
        assert_eq!(rows.mark(user, Kind::Counter, &badge).unread(), 8, "what is next to the mark is no gap");
    }
}
