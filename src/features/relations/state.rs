//! What two users are to each other, and how each act changes it: one pure function over both
//! directions of a pair.
//!
//! Each direction is nothing, a follow (which may be secret, and special), or a block. `mine` is
//! that of the one who acts. Where a cell names nothing, nothing changes. *follow* stands for all
//! four follows: which one it becomes is what the act names, else what it was, else public and not
//! special.
//!
//! | mine, theirs | follow | unfollow | remove the follower | block | unblock |
//! | --- | --- | --- | --- | --- | --- |
//! | nothing, nothing | follow, nothing ¹ | | | block, nothing ² | |
//! | nothing, follow | follow, follow ¹ | | nothing, nothing | block, nothing ² | |
//! | nothing, block | refused: blocked | | | block, block ² | |
//! | follow, nothing | follow, nothing | nothing, nothing | | block, nothing ² | |
//! | follow, follow | follow, follow | nothing, follow | follow, nothing | block, nothing ² | |
//! | block, nothing | refused: blocked | | | | nothing, nothing |
//! | block, block | refused: blocked | | | | nothing, block |
//!
//! ¹ refused where the one who acts follows as many as one may; ² refused where that one blocks as many as one may. Never both a follow and a block: a block
//! severs both follows and forbids new ones, whichever side it is on, with the same refusal. That
//! two follow each other (mutual) is read off, never stored; a secret follow never makes it so.

use serde::{Deserialize, Serialize};

/// One direction of a pair: what one user is to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Relation {
    #[default]
    Nothing,
    /// One follows the other.
    Follows(FollowOptions),
    /// One blocks the other.
    Blocks,
}

/// How one follows another.
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
            Self::Nothing | Self::Blocks => None,
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
    /// Follows the other no longer.
    Unfollow,
    /// Makes the other follow no longer.
    RemoveFollower,
    /// Blocks the other.
    Block,
    /// Blocks the other no longer.
    Unblock,
}

/// What the one who acts has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// One more follow.
    pub follow: bool,
    /// One more block.
    pub block: bool,
}

/// Why an act changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// One of the two blocks the other: it is not told which.
    Blocked,
    /// The one who acts follows as many as one may.
    FollowingLimit,
    /// The one who acts blocks as many as one may.
    BlockLimit,
}

/// What a pair is after an act: the table above.
///
/// # Errors
/// The refusal; then the pair stays as it is.
pub fn step(pair: PairState, act: Act, room: Room) -> Result<PairState, Refusal> {
    let PairState { mine, theirs } = pair;
    match (act, mine, theirs) {
        (Act::Follow { .. }, Relation::Blocks, _) | (Act::Follow { .. }, _, Relation::Blocks) => Err(Refusal::Blocked),
        (Act::Follow { .. }, Relation::Nothing, _) if !room.follow => Err(Refusal::FollowingLimit),
        (Act::Follow { secret, special }, ..) => {
            let before = mine.options().unwrap_or_default();
            let options = FollowOptions { secret: secret.unwrap_or(before.secret), special: special.unwrap_or(before.special) };
            Ok(PairState { mine: Relation::Follows(options), theirs })
        }
        (Act::Unfollow, Relation::Follows(_), _) => Ok(PairState { mine: Relation::Nothing, theirs }),
        (Act::RemoveFollower, _, Relation::Follows(_)) => Ok(PairState { mine, theirs: Relation::Nothing }),
        (Act::Block, Relation::Blocks, _) => Ok(pair),
        (Act::Block, ..) if !room.block => Err(Refusal::BlockLimit),
        (Act::Block, ..) => {
            let theirs = if theirs == Relation::Blocks { Relation::Blocks } else { Relation::Nothing };
            Ok(PairState { mine: Relation::Blocks, theirs })
        }
        (Act::Unblock, Relation::Blocks, _) => Ok(PairState { mine: Relation::Nothing, theirs }),
        (Act::Unfollow | Act::RemoveFollower | Act::Unblock, ..) => Ok(pair),
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

    const ROOMY: Room = Room { follow: true, block: true };

    /// Every state of a pair that can be: five by five without blocks, and three with.
    fn every_pair() -> Vec<PairState> {
        let unblocked: Vec<_> = [Relation::Nothing].into_iter().chain(FOLLOWS.map(Relation::Follows)).collect();
        let mut pairs: Vec<_> =
            unblocked.iter().flat_map(|mine| unblocked.iter().map(|theirs| PairState { mine: *mine, theirs: *theirs })).collect();
        let blocked = [(Relation::Blocks, Relation::Nothing), (Relation::Nothing, Relation::Blocks), (Relation::Blocks, Relation::Blocks)];
        pairs.extend(blocked.map(|(mine, theirs)| PairState { mine, theirs }));
        pairs
    }

    fn every_act() -> Vec<Act> {
        let maybe = [None, Some(false), Some(true)];
        let mut acts: Vec<_> = maybe.iter().flat_map(|secret| maybe.map(|special| Act::Follow { secret: *secret, special })).collect();
        acts.extend([Act::Unfollow, Act::RemoveFollower, Act::Block, Act::Unblock]);
        acts
    }

    /// The letter of a direction in the table below.
    fn letter(relation: Relation) -> char {
        match relation {
            Relation::Nothing => '-',
            Relation::Follows(_) => 'f',
            Relation::Blocks => 'b',
        }
    }

    /// The table of the module, once more and by hand: mine and theirs before, and after each act;
    /// `!` is a refusal.
    const TABLE: [(&str, [&str; 5]); 7] = [
        ("--", ["f-", "--", "--", "b-", "--"]),
        ("-f", ["ff", "-f", "--", "b-", "-f"]),
        ("-b", ["!", "-b", "-b", "bb", "-b"]),
        ("f-", ["f-", "--", "f-", "b-", "f-"]),
        ("ff", ["ff", "-f", "f-", "b-", "ff"]),
        ("b-", ["!", "b-", "b-", "b-", "--"]),
        ("bb", ["!", "bb", "bb", "bb", "-b"]),
    ];

    fn column(act: Act) -> usize {
        match act {
            Act::Follow { .. } => 0,
            Act::Unfollow => 1,
            Act::RemoveFollower => 2,
            Act::Block => 3,
            Act::Unblock => 4,
        }
    }

    #[test]
    fn every_cell_of_the_table_is_as_it_says() {
        let mut cached_heads = 0;
        for pair in every_pair() {
            let name = String::from_iter([letter(pair.mine), letter(pair.theirs)]);
            let (_, row) = TABLE.iter().find(|(before, _)| *before == name).unwrap();
            for act in every_act() {
                let after = step(pair, act, ROOMY);
                let shown = after.map_or("!".to_owned(), |after| String::from_iter([letter(after.mine), letter(after.theirs)]));
                assert_eq!(shown, row[column(act)], "{pair:?} {act:?}");
                cached_heads += 1;
                let Ok(after) = after else { continue };
                assert!(every_pair().contains(&after), "{after:?} can be");
                if pair.theirs.options().is_some() && after.theirs.options().is_some() {
                    assert_eq!(after.theirs, pair.theirs, "how the other follows is not the actor's to change");
                }
                match (act, after.mine) {
                    (Act::Follow { secret, special }, Relation::Follows(options)) => {
                        let before = pair.mine.options().unwrap_or_default();
                        assert_eq!(
                            options,
                            FollowOptions { secret: secret.unwrap_or(before.secret), special: special.unwrap_or(before.special) }
                        );
                    }
                    (_, Relation::Follows(_)) => assert_eq!(after.mine, pair.mine),
                    _ => {}
                }
                assert_eq!(step(after, act, ROOMY), Ok(after), "a repeat changes nothing");
            }
        }
        assert_eq!(cached_heads, 28 * 13);
    }

    #[test]
    fn without_room_only_what_would_take_it_is_refused() {
        let full = Room { follow: false, block: false };
        for pair in every_pair() {
            for act in every_act() {
                let expected = match (act, pair.mine, pair.theirs) {
                    (Act::Follow { .. }, Relation::Nothing, theirs) if theirs != Relation::Blocks => Err(Refusal::FollowingLimit),
                    (Act::Block, mine, _) if mine != Relation::Blocks => Err(Refusal::BlockLimit),
                    _ => step(pair, act, ROOMY),
                };
                assert_eq!(step(pair, act, full), expected, "{pair:?} {act:?}");
            }
        }
    }

    #[test]
    fn the_refusal_does_not_tell_who_blocks() {
        let refused: Vec<_> = every_pair()
            .into_iter()
            .filter(|pair| [pair.mine, pair.theirs].contains(&Relation::Blocks))
            .map(|pair| step(pair, Act::Follow { secret: None, special: None }, Room { follow: false, block: false }))
            .collect();
        assert_eq!(refused, [Err(Refusal::Blocked); 3]);
    }

    #[test]
    fn mutual_is_symmetric_and_never_made_by_a_secret_follow() {
        for pair in every_pair() {
            let other = PairState { mine: pair.theirs, theirs: pair.mine };
            assert_eq!(pair.is_mutual(), other.is_mutual());
            let secret = [pair.mine, pair.theirs].iter().any(|relation| relation.options().is_some_and(|options| options.secret));
            assert!(!(secret && pair.is_mutual()));
        }
    }
}
