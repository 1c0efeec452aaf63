//! Accepts all open requests of a user who approves follows no longer.
//!
//! The switch writes a row of `approval_ends` in its transaction. It holds the lock of the user's
//! approval alone, which each follow shares: so after it there are no new requests, and the list of
//! those that are open gets shorter until it is empty. Every node goes through the rows; what two
//! nodes do at once, the second finds done.

use std::sync::Arc;

use futures_util::StreamExt as _;

use super::command::{PairAction, Terms, apply_action};
use super::request_store::{self, ApprovalChange};
use super::requests;
use super::rows::RelationRows;
use super::state::Act;
use crate::base::clock::UnixMs;
use crate::base::error::{Problem, Result};
use crate::base::ids::UserId;
use crate::db::Db;
use crate::engine::lanes::{self, Answer, Job, Lanes, Names, Needs, Rows};
use crate::engine::pairs::{self, Pair};

/// How many users one look finds whose requests are to be accepted.
const USERS_AT_ONCE: i64 = 100;

/// How many of them are under way at once.
const UNDER_WAY: usize = 8;

/// How many requests of a user are accepted in one transaction.
const REQUESTS_AT_ONCE: i64 = 100;

/// What it takes to switch whether a user approves follows.
pub fn need_switch(needs: &mut Needs, user: UserId) {
    needs.user(user);
    pairs::need_approval(needs, user);
}

/// The user approves follows no longer: those who have asked to follow are to be accepted.
pub fn begin(rows: &mut Rows, user: UserId, now: UnixMs) {
    rows.get_mut::<RelationRows>().approval_ends.set(&user, Some(ApprovalChange::Begin(now)));
}

/// Accepts these requests of a user who approves follows no longer. One beyond the limit of the user
/// who asks is dropped.
#[derive(Debug, Clone)]
pub(super) struct AcceptOpen {
    pub(super) user: UserId,
    /// When the user switched.
    pub(super) since: UnixMs,
    /// Who has asked, and when. Nobody: there are no more.
    pub(super) fans: Vec<(UserId, UnixMs)>,
    pub(super) terms: Terms,
}

impl AcceptOpen {
    fn action(&self, fan: UserId, act: Act) -> PairAction {
        PairAction { pair: Pair { follower: self.user, followee: fan }, act }
    }

    /// The end, unless the user has switched again in this batch.
    fn end(&self, rows: &mut Rows) {
        let ends = &mut rows.get_mut::<RelationRows>().approval_ends;
        if ends.get(&self.user).is_none() {
            ends.set(&self.user, Some(ApprovalChange::End(self.since)));
        }
    }
}

impl lanes::Command for AcceptOpen {
    fn needs(&self, needs: &mut Needs) {
        needs.user(self.user);
        needs.of::<RelationRows>();
        for (fan, _) in &self.fans {
            // Where the side of a fan without a row is lost, the next try finds that row, and removes the other side.
            needs.user(*fan);
            self.action(*fan, Act::AcceptRequest).needs(&self.terms, needs);
        }
    }

    fn lane_key(&self) -> i64 {
        self.user.get()
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.fans.len()).unwrap_or(u32::MAX).max(1)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        // What is left of the requests of an erased user ends with its other relations.
        if self.fans.is_empty() || rows.is_erased(self.user) || rows.user(self.user).settings.approves_follows() {
            self.end(rows);
            return Ok(Answer::no_content());
        }
        for (fan, asked_at) in &self.fans {
            let pair = Pair { follower: *fan, followee: self.user };
            if rows.get::<RelationRows>().request(pair).is_none() {
                // Another node has accepted it, it was taken back, or the fan's side is lost: then this one goes, too.
                rows.get_mut::<RelationRows>().remove_received((pair, *asked_at));
            } else if rows.is_erased(*fan) {
                // No event tells of it, as of nothing else that ends with an erased user.
                requests::end(rows, pair, self.terms.badges.request.as_ref());
            } else if apply_action(rows, &self.action(*fan, Act::AcceptRequest), &self.terms, now).is_err() {
                apply_action(rows, &self.action(*fan, Act::RefuseRequest), &self.terms, now)?;
            }
        }
        Ok(Answer::no_content())
    }
}

/// One look, and some of the requests of each user that it found. How many users that was.
pub(super) async fn round(db: &Db, lanes: &Lanes, terms: &Terms) -> Result<usize> {
    let users = request_store::accepting(db, USERS_AT_ONCE).await?;
    let found = users.len();
    let accept = |(user, since)| async move {
        let fans = request_store::oldest(db, user, REQUESTS_AT_ONCE).await?;
        let command = Arc::new(AcceptOpen { user, since, fans, terms: terms.clone() });
        lanes.submit(Job { command, key: None }).await.map(|_| ())
    };
    let outcomes: Vec<Result<()>> = futures_util::stream::iter(users.into_iter().map(accept)).buffer_unordered(UNDER_WAY).collect().await;
    outcomes.into_iter().collect::<Result<()>>()?;
    Ok(found)
}
