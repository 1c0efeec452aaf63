//! What two users are to each other, and how each act changes it: one pure function over both
//! directions of a pair.
//!
//! Each direction is nothing, a request to follow, a follow (both may be secret, and special), or a
//! block. `mine` is that of the one who acts. Where a cell names nothing, nothing changes. *follow*
//! stands for all four follows, and *request* for all four requests: which one it becomes is what the
//! act names, else what it was, else public and not special. `any` is nothing, a request or a follow,
//! and stays as it is.
//!
//! | mine, theirs | follow | unfollow | block | unblock |
//! | --- | --- | --- | --- | --- |
//! | nothing, any | follow or request ¹, any | | block, nothing ² | |
//! | request, any | follow or request ³, any | nothing, any | block, nothing ² | |
//! | follow, any | follow, any | nothing, any | block, nothing ² | |
//! | nothing, block | refused: blocked | | block, block ² | |
//! | block, nothing | refused: blocked | | | nothing, nothing |
//! | block, block | refused: blocked | | | nothing, block |
//!
//! | mine, theirs | remove the follower | accept | refuse |
//! | --- | --- | --- | --- |
//! | any, request | | any, follow ³ | any, nothing |
//! | any, follow | any, nothing | refused: no request | |
//! | all others | | refused: no request | |
//!
//! It becomes a request where the other approves follows. ¹ refused where the one who acts follows
//! as many as one may, requests included; ² refused where that one blocks as many as one may; ³
//! refused where the one who follows then follows as many as one may, requests aside: the request
//! stays. Never both a follow and a block: a block severs both follows, ends both requests and
//! forbids new ones, whichever side it is on, with the same refusal. That two follow each other
//! (mutual) is read off, never stored; a secret follow never makes it so, and neither does a request.

use serde::{Deserialize, Serialize};

/// One direction of a pair: what one user is to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Relation {
    #[default]
    Nothing,
    /// One has asked to follow the other.
    Requests(FollowOptions),
    /// One follows the other.
    Follows(FollowOptions),
    /// One blocks the other.
    Blocks,
}

/// How one follows another, or is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FollowOptions {
    /// Whether only the two of them see it.
    pub secret: bool,
    /// Whether the other is special to the follower.
    pub special: bool,
}

impl Relation {
    /// How one follows the other, if so.
    #[must_use]
    pub fn options(self) -> Option<FollowOptions> {
        match self {
            Self::Follows(options) => Some(options),
            Self::Nothing | Self::Requests(_) | Self::Blocks => None,
        }
    }

    /// How one has asked to follow the other, if so.
    #[must_use]
    pub fn requested(self) -> Option<FollowOptions> {
        match self {
            Self::Requests(options) => Some(options),
            Self::Nothing | Self::Follows(_) | Self::Blocks => None,
        }
    }

    /// Whether everybody may see that one follows the other.
    #[must_use]
    pub fn is_public(self) -> bool {
        self.options().is_some_and(|options| !options.secret)
    }
}

/// Both directions of a pair, as the one who acts sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PairState {
    /// What the one who acts is to the other.
    pub mine: Relation,
    /// What the other is to the one who acts.
    pub theirs: Relation,
}

impl PairState {
    /// Whether both follow each other, for everybody to see.
    #[must_use]
    pub fn is_mutual(self) -> bool {
        self.mine.is_public() && self.theirs.is_public()
    }
}

/// What one user does about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Follows the other, or follows otherwise than before; what is not named stays.
    Follow {
        /// Whether only the two of them are to see it.
        secret: Option<bool>,
        /// Whether the other is to be special.
        special: Option<bool>,
    },
    /// Follows the other no longer, or takes back the request.
    Unfollow,
    /// Makes the other follow no longer.
    RemoveFollower,
    /// Accepts the other's request.
    AcceptRequest,
    /// Refuses the other's request.
    RefuseRequest,
    /// Blocks the other.
    Block,
    /// Blocks the other no longer.
    Unblock,
}

/// What there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The one who acts: one more follow or request.
    pub follow: bool,
    /// The one who acts: a follow in place of a request.
    pub accepted: bool,
    /// The other: a follow in place of a request.
    pub accepted_of_other: bool,
    /// The one who acts: one more block.
    pub block: bool,
}

/// Why an act changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// One of the two blocks the other: it is not told which.
    Blocked,
    /// The one who acts follows as many as one may.
    FollowingLimit,
    /// The other does.
    FollowingLimitOfOther,
    /// The one who acts blocks as many as one may.
    BlockLimit,
    /// The other has not asked to follow.
    NoRequest,
}

/// What a pair is after an act: the table above. `approves` says whether the other approves follows.
///
/// # Errors
/// The refusal; then the pair stays as it is.
pub fn step(pair: PairState, act: Act, room: Room, approves: bool) -> Result<PairState, Refusal> {
    let PairState { mine, theirs } = pair;
    match (act, mine, theirs) {
        (Act::Follow { .. }, Relation::Blocks, _) | (Act::Follow { .. }, _, Relation::Blocks) => Err(Refusal::Blocked),
        (Act::Follow { secret, special }, ..) => {
            let before = mine.options().or(mine.requested()).unwrap_or_default();
            let options = FollowOptions { secret: secret.unwrap_or(before.secret), special: special.unwrap_or(before.special) };
            Ok(PairState { mine: follow(mine, options, room, approves)?, theirs })
        }
        (Act::Unfollow, Relation::Follows(_) | Relation::Requests(_), _) => Ok(PairState { mine: Relation::Nothing, theirs }),
        (Act::RemoveFollower, _, Relation::Follows(_)) | (Act::RefuseRequest, _, Relation::Requests(_)) => {
            Ok(PairState { mine, theirs: Relation::Nothing })
        }
        (Act::AcceptRequest, _, Relation::Requests(_)) if !room.accepted_of_other => Err(Refusal::FollowingLimitOfOther),
        (Act::AcceptRequest, _, Relation::Requests(options)) => Ok(PairState { mine, theirs: Relation::Follows(options) }),
        (Act::AcceptRequest, ..) => Err(Refusal::NoRequest),
        (Act::Block, Relation::Blocks, _) => Ok(pair),
        (Act::Block, ..) if !room.block => Err(Refusal::BlockLimit),
        (Act::Block, ..) => {
            let theirs = if theirs == Relation::Blocks { Relation::Blocks } else { Relation::Nothing };
            Ok(PairState { mine: Relation::Blocks, theirs })
        }
        (Act::Unblock, Relation::Blocks, _) => Ok(PairState { mine: Relation::Nothing, theirs }),
        (Act::Unfollow | Act::RemoveFollower | Act::RefuseRequest | Act::Unblock, ..) => Ok(pair),
    }
}

/// What one is to the other who follows that one like this.
fn follow(before: Relation, options: FollowOptions, room: Room, approves: bool) -> Result<Relation, Refusal> {
    match before {
        Relation::Nothing if !room.follow => Err(Refusal::FollowingLimit),
        Relation::Nothing | Relation::Requests(_) if approves => Ok(Relation::Requests(options)),
        Relation::Requests(_) if !room.accepted => Err(Refusal::FollowingLimit),
        _ => Ok(Relation::Follows(options)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLLOWS: [FollowOptions; 4] = [
        FollowOptions { secret: false, special: false },
        FollowOptions { secret: true, special: false },
        FollowOptions { secret: false, special: true },
        FollowOptions { secret: true, special: true },
    ];

    const ROOMY: Room = Room { follow: true, accepted: true, accepted_of_other: true, block: true };
    const FULL: Room = Room { follow: false, accepted: false, accepted_of_other: false, block: false };

    /// Every state of a pair that can be: nine by nine without blocks, and three with.
    fn every_pair() -> Vec<PairState> {
        let unblocked: Vec<_> =
            [Relation::Nothing].into_iter().chain(FOLLOWS.map(Relation::Requests)).chain(FOLLOWS.map(Relation::Follows)).collect();
        let mut pairs: Vec<_> =
            unblocked.iter().flat_map(|mine| unblocked.iter().map(|theirs| PairState { mine: *mine, theirs: *theirs })).collect();
        let blocked = [(Relation::Blocks, Relation::Nothing), (Relation::Nothing, Relation::Blocks), (Relation::Blocks, Relation::Blocks)];
        pairs.extend(blocked.map(|(mine, theirs)| PairState { mine, theirs }));
        pairs
    }

    fn every_act() -> Vec<Act> {
        let maybe = [None, Some(false), Some(true)];
        let mut acts: Vec<_> = maybe.iter().flat_map(|secret| maybe.map(|special| Act::Follow { secret: *secret, special })).collect();
        acts.extend([Act::Unfollow, Act::RemoveFollower, Act::AcceptRequest, Act::RefuseRequest, Act::Block, Act::Unblock]);
        acts
    }

    /// The letter of a direction in the table below.
    fn letter(relation: Relation) -> char {
        match relation {
            Relation::Nothing => '-',
            Relation::Requests(_) => 'r',
            Relation::Follows(_) => 'f',
            Relation::Blocks => 'b',
        }
    }

    /// The table of the module, once more and by hand: mine and theirs before, and after each act,
    /// where a follow needs no approval and where it does; `!` is a refusal.
    const TABLE: [(&str, [&str; 8]); 12] = [
        ("--", ["f-", "r-", "--", "--", "!", "--", "b-", "--"]),
        ("-r", ["fr", "rr", "-r", "-r", "-f", "--", "b-", "-r"]),
        ("-f", ["ff", "rf", "-f", "--", "!", "-f", "b-", "-f"]),
        ("r-", ["f-", "r-", "--", "r-", "!", "r-", "b-", "r-"]),
        ("rr", ["fr", "rr", "-r", "rr", "rf", "r-", "b-", "rr"]),
        ("rf", ["ff", "rf", "-f", "r-", "!", "rf", "b-", "rf"]),
        ("f-", ["f-", "f-", "--", "f-", "!", "f-", "b-", "f-"]),
        ("fr", ["fr", "fr", "-r", "fr", "ff", "f-", "b-", "fr"]),
        ("ff", ["ff", "ff", "-f", "f-", "!", "ff", "b-", "ff"]),
        ("-b", ["!", "!", "-b", "-b", "!", "-b", "bb", "-b"]),
        ("b-", ["!", "!", "b-", "b-", "!", "b-", "b-", "--"]),
        ("bb", ["!", "!", "bb", "bb", "!", "bb", "bb", "-b"]),
    ];

    fn column(act: Act, approves: bool) -> usize {
        match act {
            Act::Follow { .. } => usize::from(approves),
            Act::Unfollow => 2,
            Act::RemoveFollower => 3,
            Act::AcceptRequest => 4,
            Act::RefuseRequest => 5,
            Act::Block => 6,
            Act::Unblock => 7,
        }
    }

    fn options(relation: Relation) -> Option<FollowOptions> {
        relation.options().or(relation.requested())
    }

    #[test]
    fn every_cell_of_the_table_is_as_it_says() {
        let mut cells = 0;
        for (pair, approves) in every_pair().into_iter().flat_map(|pair| [(pair, false), (pair, true)]) {
            let name = String::from_iter([letter(pair.mine), letter(pair.theirs)]);
            let (_, row) = TABLE.iter().find(|(before, _)| *before == name).unwrap();
            for act in every_act() {
                let after = step(pair, act, ROOMY, approves);
                let shown = after.map_or("!".to_owned(), |after| String::from_iter([letter(after.mine), letter(after.theirs)]));
                assert_eq!(shown, row[column(act, approves)], "{pair:?} {act:?} {approves}");
                cells += 1;
                let Ok(after) = after else { continue };
                assert!(every_pair().contains(&after), "{after:?} can be");
                if let (Some(before), Some(after)) = (options(pair.theirs), options(after.theirs)) {
                    assert_eq!(after, before, "how the other follows is not the actor's to change");
                }
                match (act, options(after.mine)) {
                    (Act::Follow { secret, special }, Some(after)) => {
                        let before = options(pair.mine).unwrap_or_default();
                        let expected =
                            FollowOptions { secret: secret.unwrap_or(before.secret), special: special.unwrap_or(before.special) };
                        assert_eq!(after, expected);
                    }
                    (_, Some(_)) => assert_eq!(after.mine, pair.mine),
                    _ => {}
                }
                if act != Act::AcceptRequest {
                    assert_eq!(step(after, act, ROOMY, approves), Ok(after), "a repeat changes nothing");
                }
            }
        }
        assert_eq!(cells, 84 * 15 * 2);
    }

    #[test]
    fn without_room_only_what_would_take_it_is_refused() {
        for (pair, approves) in every_pair().into_iter().flat_map(|pair| [(pair, false), (pair, true)]) {
            for act in every_act() {
                let expected = match (act, pair.mine, pair.theirs) {
                    (Act::Follow { .. }, Relation::Nothing, theirs) if theirs != Relation::Blocks => Err(Refusal::FollowingLimit),
                    (Act::Follow { .. }, Relation::Requests(_), _) if !approves => Err(Refusal::FollowingLimit),
                    (Act::AcceptRequest, _, Relation::Requests(_)) => Err(Refusal::FollowingLimitOfOther),
                    (Act::Block, mine, _) if mine != Relation::Blocks => Err(Refusal::BlockLimit),
                    _ => step(pair, act, ROOMY, approves),
                };
                assert_eq!(step(pair, act, FULL, approves), expected, "{pair:?} {act:?}");
            }
        }
    }

    #[test]
    fn a_full_list_with_requests_turns_them_into_follows_one_by_one() {
        let asked = PairState { mine: Relation::Requests(FOLLOWS[1]), theirs: Relation::Nothing };
        let room = Room { accepted: true, ..FULL };
        let act = Act::Follow { secret: None, special: None };
        assert_eq!(step(asked, act, room, false), Ok(PairState { mine: Relation::Follows(FOLLOWS[1]), ..asked }));
        let received = PairState { mine: asked.theirs, theirs: asked.mine };
        let room = Room { accepted_of_other: true, ..FULL };
        assert_eq!(step(received, Act::AcceptRequest, room, true), Ok(PairState { theirs: Relation::Follows(FOLLOWS[1]), ..received }));
    }

    #[test]
    fn the_refusal_does_not_tell_who_blocks() {
        let refused: Vec<_> = every_pair()
            .into_iter()
            .filter(|pair| [pair.mine, pair.theirs].contains(&Relation::Blocks))
            .map(|pair| [false, true].map(|approves| step(pair, Act::Follow { secret: None, special: None }, FULL, approves)))
            .collect();
        assert_eq!(refused, [[Err(Refusal::Blocked); 2]; 3]);
    }

    #[test]
    fn mutual_is_symmetric_and_never_made_by_a_secret_follow() {
        for pair in every_pair() {
            let other = PairState { mine: pair.theirs, theirs: pair.mine };
            assert_eq!(pair.is_mutual(), other.is_mutual());
            let secret = [pair.mine, pair.theirs].iter().any(|relation| relation.options().is_some_and(|options| options.secret));
            let both = [pair.mine, pair.theirs].iter().all(|relation| relation.options().is_some());
            assert_eq!(pair.is_mutual(), both && !secret);
        }
    }
}
