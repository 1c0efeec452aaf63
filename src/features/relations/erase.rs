//! What is left of relations when a user is erased: nothing. Follows, requests, blocks and mutes go in
//! both directions, with exact counts of the others, and a badge that the user raised falls. The only
//! event is `user_erased`.

use std::collections::BTreeSet;

use super::Badges;
use super::badge;
use super::command::{end, set_silence};
use super::mute_command;
use super::requests;
use super::rows::{Received, RelationRows, need_block, need_mute, set_block};
use crate::base::clock::UnixMs;
use crate::base::error::{Problem, Result};
use crate::base::ids::UserId;
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};
use crate::engine::pairs::Pair;
use crate::features::inbox::end_unread;
use crate::features::inbox::rows::InboxRows;
use crate::features::removals::{Progress, Step, delete_own, user_of};

/// How many others one batch has at most.
const OTHERS_AT_ONCE: i64 = 100;

/// Others to whom the user is something, or who are something to the user; of each sort the first. With a row of the
/// user's side of a relation comes since when it is, else -1.
static RELATED: Statement = Statement::one(
    "select * from (select f.followee_id as other_id, cast(-1 as bigint) as since from following f where f.follower_id = $1 order by f.followee_id limit $2) a
    union
    select * from (select f.follower_id as other_id, f.since from followers f where f.followee_id = $1 order by f.since limit $2) b
    union
    select * from (select f.follower_id as other_id, f.since from secret_followers f where f.followee_id = $1 order by f.since limit $2) c
    union
    select * from (select s.followee_id as other_id, cast(-1 as bigint) as since from sent_requests s where s.follower_id = $1 order by s.followee_id limit $2) d
    union
    select * from (select r.follower_id as other_id, r.since from follow_requests r where r.followee_id = $1 order by r.since limit $2) e
    union
    select * from (select b.target_id as other_id, cast(-1 as bigint) as since from blocks b where b.user_id = $1 order by b.target_id limit $2) f
    union
    select * from (select b.user_id as other_id, cast(-1 as bigint) as since from blocks b where b.target_id = $1 and b.since >= 0 order by b.user_id limit $2) g
    union
    select * from (select m.target_id as other_id, cast(-1 as bigint) as since from mutes m where m.user_id = $1 order by m.target_id limit $2) h
    union
    select * from (select m.user_id as other_id, cast(-1 as bigint) as since from mutes m where m.target_id = $1 and m.since >= 0 order by m.user_id limit $2) i",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
);

/// What the user's own relations counted, whom the user accepts, and how many followers the user had.
static OWN: [Statement; 3] = [
    Statement::one("delete from relation_counts where user_id = $1", &[("user_id", Type::Int)]),
    Statement::one("delete from follower_counts where user_id = $1", &[("user_id", Type::Int)]),
    Statement::one("delete from approval_ends where user_id = $1", &[("user_id", Type::Int)]),
];

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    std::iter::once(&RELATED).chain(&OWN).collect()
}

/// The steps that remove a user's relations, and the badges that new followers and requests raise.
#[must_use]
pub fn steps(badges: Badges) -> Vec<Step> {
    let tables = &["following", "followers", "secret_followers", "sent_requests", "follow_requests", "blocks", "mutes"];
    let relations = Step::new("relations", tables, move |engines, subject, _| {
        let badges = badges.clone();
        async move {
            let user = user_of(subject)?;
            let (others, received) = related(&engines.db, user).await?;
            if others.is_empty() {
                return Ok(Progress::Done);
            }
            let more = Progress::More(Default::default());
            engines.submit(EraseRelations { user, others, received, badges }).await.map(|()| more)
        }
    });
    vec![relations, delete_own("relation_counts", &["relation_counts", "follower_counts", "approval_ends"], &OWN)]
}

/// Some others, and what rows the user's side has of them.
async fn related(db: &Db, user: UserId) -> DbResult<(BTreeSet<UserId>, Vec<Received>)> {
    let columns = [user.get(), OTHERS_AT_ONCE].map(|value| Column::Int(vec![value]));
    let rows: Vec<(i64, i64)> = db.fetch(&RELATED, &columns).await?;
    let found: Vec<_> = rows.into_iter().filter_map(|(other, since)| Some((UserId::try_from(other).ok()?, UnixMs(since)))).collect();
    let others: BTreeSet<_> = found.iter().map(|(other, _)| *other).collect();
    let others: BTreeSet<_> = others.into_iter().take(usize::try_from(OTHERS_AT_ONCE).unwrap_or(usize::MAX)).collect();
    let received = found.into_iter().filter(|(other, since)| others.contains(other) && since.0 >= 0);
    let received = received.map(|(other, since)| (Pair { follower: other, followee: user }, since)).collect();
    Ok((others, received))
}

/// Ends all that a user and these others are to each other.
#[derive(Debug, Clone)]
struct EraseRelations {
    user: UserId,
    others: BTreeSet<UserId>,
    received: Vec<Received>,
    badges: Badges,
}

impl EraseRelations {
    /// Both directions of each pair.
    fn pairs(&self) -> impl Iterator<Item = Pair> {
        let pairs = self.others.iter().map(|other| Pair { follower: self.user, followee: *other });
        pairs.flat_map(|pair| [pair, pair.reversed()])
    }
}

impl lanes::Command for EraseRelations {
    fn needs(&self, needs: &mut Needs) {
        needs.user(self.user);
        for pair in self.pairs() {
            need_block(needs, pair);
            need_mute(needs, pair);
            badge::need(needs, pair, &self.badges);
            needs.of::<InboxRows>().directs.insert((pair.follower, pair.followee));
        }
    }

    fn lane_key(&self) -> i64 {
        self.user.get()
    }

    /// The user that is erased is the reason.
    fn names(&self) -> Names {
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.others.len()).unwrap_or(u32::MAX).max(1)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        for pair in self.pairs() {
            if let Some(follow) = rows.get::<RelationRows>().follow(pair) {
                end(rows, pair, &follow, &self.badges);
            }
            requests::end(rows, pair, self.badges.request.as_ref());
            let relations = rows.get::<RelationRows>();
            let is_silenced = relations.blocks(pair) || relations.mute(pair).is_some();
            if is_silenced && pair.followee == self.user {
                // Else the sums would count the chat until it goes, which comes much later.
                end_unread(rows, pair.follower, self.user, now);
            }
            if rows.get::<RelationRows>().blocks(pair) {
                set_block(rows, pair, None);
                set_silence(rows, pair, now, |silence| silence.blocked = false);
            }
            mute_command::set(rows, pair, None, now);
        }
        self.received.iter().for_each(|row| rows.get_mut::<RelationRows>().remove_received(*row));
        Ok(Answer::no_content())
    }
}
