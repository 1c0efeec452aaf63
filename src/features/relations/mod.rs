//! Who follows whom, openly or in secret, who has asked to, who is special to whom, and who blocks
//! whom: the acts, the lists, the counts, and what two users are to each other.
//!
//! `state.rs` is the rule: what each act makes of a pair. A follow is two rows, one for each side's
//! list, and a step of each side's count, in one transaction; a block is a row of its own. That two
//! users follow each other (mutual) is derived from the rows of both directions. A pair is locked
//! as a whole, whichever way it is changed, so that of two who act at once one comes after the
//! other.
//!
//! A request to follow is like a follow: two rows, and a step of each side's count of requests
//! (`requests.rs`, `request_store.rs`). `approvals.rs` accepts the requests of a user who approves
//! follows no longer.
//!
//! `command.rs` applies acts to the rows of a batch, `deferred.rs` and `worker.rs` those that are
//! accepted before they are done, `store.rs` has the SQL of that, `lists.rs` that of pages,
//! `whole_lists.rs` that of whole lists; `lookups.rs` answers look-ups and whole lists from the caches,
//! or by `lookup_store.rs` from SQL, `pair_codes.rs` has what two users are to each other as a number;
//! `hot_users.rs` keeps what strangers are shown of much-read users, `familiar.rs` finds familiar
//! followers. `http.rs` has the routes that change something, `list_http.rs` and `lookup_http.rs` those
//! that read.

pub mod approvals;
mod badge;
mod command;
mod config;
mod deferred;
mod distributed;
pub mod erase;
pub mod export;
pub mod exported;
mod familiar;
pub mod familiar_http;
pub mod familiar_store;
mod hot_users;
pub mod http;
pub mod list_http;
pub mod lists;
mod lists_part;
mod lookup_batch;
pub mod lookup_http;
pub mod lookup_store;
mod lookups;
mod mute_command;
pub mod mute_http;
mod mute_store;
mod pair_codes;
pub mod request_http;
mod request_store;
mod requests;
pub mod rows;
pub mod state;
pub mod store;
pub mod whole_lists;
pub mod worker;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::badge::Badges;
pub use self::command::{PairAction, RelationCommand, Terms, apply_action};
pub use self::config::{FollowConfig, RaisedBadge, RelationConfig};
pub use self::familiar::FamiliarReader;
pub use self::hot_users::HotUsers;
pub use self::lookups::{Lookups, WholeList};
use self::state::{FollowOptions, PairState, Relation};
pub use self::whole_lists::Related;
use crate::base::clock::UnixMs;
use crate::base::ids::{Name, UserId};
pub use crate::engine::pairs::Pair;
use crate::features::silence::Mute;

/// A follow, as its rows have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    /// Since when.
    pub since: UnixMs,
    /// How much the followee had posted by then: the feed counts what came after it.
    pub mark: i64,
    /// Whether it is secret, and whether the followee is special.
    pub options: FollowOptions,
    /// What it raised, to be taken back with it; None where it raised nothing.
    pub raised: Option<Raised>,
}

/// A request to follow, as its rows have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Since when.
    pub since: UnixMs,
    /// How the follow is to be.
    pub options: FollowOptions,
    /// What it raised, to be taken back with it; None where it raised nothing.
    pub raised: Option<Raised>,
}

/// A direction of a pair that a batch changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// Who is something else to whom.
    pub pair: Pair,
    /// What the first was to the second.
    pub before: Relation,
    /// What it is now.
    pub after: Relation,
}

impl Changed {
    /// Of whom strangers are now shown something else: the follower, and the followee. A secret
    /// follow shows in the number of the followee's followers alone.
    fn shown_to_strangers(self) -> [Option<UserId>; 2] {
        let Pair { follower, followee } = self.pair;
        let openly = self.before.is_public() != self.after.is_public();
        let number = self.before.options().is_some() != self.after.options().is_some();
        [Some(follower).filter(|_| openly), Some(followee).filter(|_| openly || number)]
    }

    /// Whether the second is now told something else of the first: not of a block, nor who is
    /// special.
    fn is_told_to_the_other(self) -> bool {
        let told = |relation: Relation| relation.options().map(|options| options.secret);
        told(self.before) != told(self.after)
    }
}

/// The step of a counter badge that a new follower, or a new request, made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    /// Which badge of the followee: another one may be set by the time that it ends.
    pub badge: Name,
    /// To which head.
    pub at: i64,
}

/// What a user's own relations count, beside the follows themselves, which the user's row counts;
/// and when its lists changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Own {
    /// How many of the follows are secret.
    pub secret: i64,
    /// How many of those followed are special.
    pub special: i64,
    /// How many the user blocks.
    pub blocked: i64,
    /// How many requests to follow of the user are open.
    pub requests: i64,
    /// When the lists changed.
    pub versions: Versions,
}

impl Own {
    /// All but when the list of those whom the user follows changed: the user's row has that.
    fn beside_following(self) -> Self {
        Self { versions: Versions { following: 0, ..self.versions }, ..self }
    }
}

/// The revisions at which a user's own lists changed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Versions {
    pub following: i64,
    pub blocks: i64,
    pub mutes: i64,
    /// Those of open requests of the user.
    pub requests: i64,
}

impl Versions {
    /// The revision at which anything that the user is to others changed last.
    #[must_use]
    pub fn relations(self) -> i64 {
        self.following.max(self.blocks).max(self.mutes).max(self.requests)
    }
}

/// A mute, as its row has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Muted {
    pub since: UnixMs,
    pub mute: Mute,
}

/// What is added to the counts of a user whom others follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fans {
    /// How many followers more, or less.
    pub followers: i64,
    /// How many mutual follows more, or less.
    pub mutuals: i64,
    /// How many open requests more, or less.
    pub requests: i64,
}

/// The counts of a user's relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// The number of users that the user follows.
    pub following: i64,
    /// The number of followers.
    pub followers: i64,
    /// How many of them go both ways, for everybody to see.
    pub mutuals: i64,
    /// How many of those that the user follows are secret.
    pub secret: i64,
    /// How many of them are special.
    pub special: i64,
    /// How many the user blocks.
    pub blocked: i64,
    /// How many requests of others are open.
    pub requests: i64,
    /// How many requests of the user are open.
    pub requests_sent: i64,
}

/// A user in a list of relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    pub user: UserId,
    /// When the follow or the block began.
    pub since: UnixMs,
    /// How one follows the other; of a block, nothing.
    pub options: FollowOptions,
    /// Whether both do, for everybody to see.
    pub mutual: bool,
}

/// The relation of another user to a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RelationOut {
    /// The other user.
    pub user_id: UserId,
    /// The relation.
    #[serde(flatten)]
    #[schema(inline)]
    pub pair_state: PairStateOut,
}

/// The relation between two users, as one of them can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct PairStateOut {
    /// Whether the user follows the other user.
    pub following: bool,
    /// Whether the user has asked to follow the other user, who has not answered yet.
    pub requested: bool,
    /// Whether the follow, or the request, is visible only to the two users.
    pub secret: bool,
    /// Whether the other user is special to the user.
    pub special: bool,
    /// Whether the other user follows the user.
    pub followed_by: bool,
    /// Whether the two users follow each other, neither in secret.
    pub mutual: bool,
    /// Whether the user blocks the other user. The opposite direction is not disclosed.
    pub blocking: bool,
    /// Whether the user mutes the other user. The opposite direction is not disclosed.
    pub muting: bool,
}

impl PairStateOut {
    /// What the two are to each other, and whether the one who looks mutes the other.
    #[must_use]
    pub fn new(pair_state: PairState, muting: bool) -> Self {
        let (follow, request) = (pair_state.mine.options(), pair_state.mine.requested());
        let options = follow.or(request);
        Self {
            following: follow.is_some(),
            requested: request.is_some(),
            secret: options.is_some_and(|options| options.secret),
            special: options.is_some_and(|options| options.special),
            followed_by: pair_state.theirs.options().is_some(),
            mutual: pair_state.is_mutual(),
            blocking: pair_state.mine == Relation::Blocks,
            muting,
        }
    }
}

impl RelationOut {
    /// What this other is to the user, in this state of the pair.
    #[must_use]
    pub fn new(other: UserId, pair_state: PairState, muting: bool) -> Self {
        Self { user_id: other, pair_state: PairStateOut::new(pair_state, muting) }
    }
}

/// The relation after a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangedRelationOut {
    /// The relation.
    #[serde(flatten)]
    #[schema(inline)]
    pub relation: RelationOut,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// A step of an import: a follow that was made, or taken back, at some time elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowStep {
    /// Who and whom.
    pub pair: Pair,
    /// When the follow was made, and how; None takes it back.
    pub follow: Option<(UnixMs, FollowOptions)>,
    /// Whether it is yet to be accepted.
    pub requested: bool,
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImportedFollows {
    /// Follows, and requests to follow, that were not there before.
    pub followed: u64,
    /// Follows and requests that were taken back.
    pub unfollowed: u64,
    /// Steps that found things as they wanted them.
    pub known: u64,
    /// Follows beyond the limit.
    pub over_limit: u64,
    /// Follows that a block forbids, and those of erased users.
    pub blocked: u64,
    /// Steps that were given up, as writes of the same two users that were accepted before are
    /// still not done.
    pub pending: u64,
    /// The places in the batch of steps that wait for such writes: nothing of them is done yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<usize>,
}

/// Places in one batch say nothing in a sum.
impl std::ops::AddAssign for ImportedFollows {
    fn add_assign(&mut self, more: Self) {
        self.followed += more.followed;
        self.unfollowed += more.unfollowed;
        self.known += more.known;
        self.over_limit += more.over_limit;
        self.blocked += more.blocked;
        self.pending += more.pending;
    }
}

#[cfg(test)]
mod tests;
