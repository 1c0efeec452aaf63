//! What two users are to each other, and how each act changes it: one pure function over both directions of a pair.
//!
//! Each direction is nothing, a follow (which may be secret, and special), or a block. `mine` is that of the one who acts. Where a cell names nothing, nothing
//! changes. *follow* stands for all four follows: which one it becomes is what the act names, else what it was, else public and not special.
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
//! severs both follows and forbids new ones, whichever side it is on, with the same refusal. That two follow each other (mutual) is read off, never stored; a secret follow
//! never makes it so.

use serde::{Deserialize, Serialize};

/// One direction of a pair: what one user is to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Stance {
    /// Nothing.
    #[default]
    Nothing,
    /// One follows the other.
    Follows(Manner),
    /// One blocks the other.
    Blocks,
}

/// How one follows another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Manner {
    /// Whether only the two of them see it.
    pub secret: bool,
    /// Whether the other is special to the follower.
    pub special: bool,
}

impl Stance {
    /// How one follows the other, if so.
    #[must_use]
    pub fn manner(self) -> Option<Manner> {
        match self {
            Self::Follows(manner) => Some(manner),
            Self::Nothing | Self::Blocks => None,
        }
    }

    /// Whether everybody may see that one follows the other.
    #[must_use]
    pub fn is_public(self) -> bool {
        self.manner().is_some_and(|manner| !manner.secret)
    }
}

/// Both directions of a pair, as the one who acts sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Standing {
    /// What the one who acts is to the other.
    pub mine: Stance,
    /// What the other is to the one who acts.
    pub theirs: Stance,
}

impl Standing {
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
pub fn step(pair: Standing, act: Act, room: Room) -> Result<Standing, Refusal> {
    let Standing { mine, theirs } = pair;
    match (act, mine, theirs) {
        (Act::Follow { .. }, Stance::Blocks, _) | (Act::Follow { .. }, _, Stance::Blocks) => Err(Refusal::Blocked),
        (Act::Follow { .. }, Stance::Nothing, _) if !room.follow => Err(Refusal::FollowingLimit),
        (Act::Follow { secret, special }, ..) => {
            let before = mine.manner().unwrap_or_default();
            let manner = Manner { secret: secret.unwrap_or(before.secret), special: special.unwrap_or(before.special) };
            Ok(Standing { mine: Stance::Follows(manner), theirs })
        }
        (Act::Unfollow, Stance::Follows(_), _) => Ok(Standing { mine: Stance::Nothing, theirs }),
        (Act::RemoveFollower, _, Stance::Follows(_)) => Ok(Standing { mine, theirs: Stance::Nothing }),
        (Act::Block, Stance::Blocks, _) => Ok(pair),
        (Act::Block, ..) if !room.block => Err(Refusal::BlockLimit),
        (Act::Block, ..) => {
            let theirs = if theirs == Stance::Blocks { Stance::Blocks } else { Stance::Nothing };
            Ok(Standing { mine: Stance::Blocks, theirs })
        }
        (Act::Unblock, Stance::Blocks, _) => Ok(Standing { mine: Stance::Nothing, theirs }),
        (Act::Unfollow | Act::RemoveFollower | Act::Unblock, ..) => Ok(pair),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLLOWS: [Manner; 4] = [
        Manner { secret: false, special: false },
        Manner { secret: true, special: false },
        Manner { secret: false, special: true },
        Manner { secret: true, special: true },
    ];

    const ROOMY: Room = Room { follow: true, block: true };

    /// Every state of a pair that can be: five by five without blocks, and three with.
    fn every_pair() -> Vec<Standing> {
        let unblocked: Vec<_> = [Stance::Nothing].into_iter().chain(FOLLOWS.map(Stance::Follows)).collect();
        let mut pairs: Vec<_> =
            unblocked.iter().flat_map(|mine| unblocked.iter().map(|theirs| Standing { mine: *mine, theirs: *theirs })).collect();
        let blocked = [(Stance::Blocks, Stance::Nothing), (Stance::Nothing, Stance::Blocks), (Stance::Blocks, Stance::Blocks)];
        pairs.extend(blocked.map(|(mine, theirs)| Standing { mine, theirs }));
        pairs
    }

    fn every_act() -> Vec<Act> {
        let maybe = [None, Some(false), Some(true)];
        let mut acts: Vec<_> = maybe.iter().flat_map(|secret| maybe.map(|special| Act::Follow { secret: *secret, special })).collect();
        acts.extend([Act::Unfollow, Act::RemoveFollower, Act::Block, Act::Unblock]);
        acts
    }

    /// The letter of a direction in the table below.
    fn letter(stance: Stance) -> char {
        match stance {
            Stance::Nothing => '-',
            Stance::Follows(_) => 'f',
            Stance::Blocks => 'b',
        }
    }

    /// The table of the module, once more and by hand: mine and theirs before, and after each act; `!` is a refusal.
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
        let mut cells = 0;
        for pair in every_pair() {
            let name = String::from_iter([letter(pair.mine), letter(pair.theirs)]);
            let (_, row) = TABLE.iter().find(|(before, _)| *before == name).unwrap();
            for act in every_act() {
                let after = step(pair, act, ROOMY);
                let shown = after.map_or("!".to_owned(), |after| String::from_iter([letter(after.mine), letter(after.theirs)]));
                assert_eq!(shown, row[column(act)], "{pair:?} {act:?}");
                cells += 1;
                let Ok(after) = after else { continue };
                assert!(every_pair().contains(&after), "{after:?} can be");
                if pair.theirs.manner().is_some() && after.theirs.manner().is_some() {
                    assert_eq!(after.theirs, pair.theirs, "how the other follows is not the actor's to change");
                }
                match (act, after.mine) {
                    (Act::Follow { secret, special }, Stance::Follows(manner)) => {
                        let before = pair.mine.manner().unwrap_or_default();
                        assert_eq!(manner, Manner { secret: secret.unwrap_or(before.secret), special: special.unwrap_or(before.special) });
                    }
                    (_, Stance::Follows(_)) => assert_eq!(after.mine, pair.mine),
                    _ => {}
                }
                assert_eq!(step(after, act, ROOMY), Ok(after), "a repeat changes nothing");
            }
        }
        assert_eq!(cells, 28 * 13);
    }

    #[test]
    fn without_room_only_what_would_take_it_is_refused() {
        let full = Room { follow: false, block: false };
        for pair in every_pair() {
            for act in every_act() {
                let expected = match (act, pair.mine, pair.theirs) {
                    (Act::Follow { .. }, Stance::Nothing, theirs) if theirs != Stance::Blocks => Err(Refusal::FollowingLimit),
                    (Act::Block, mine, _) if mine != Stance::Blocks => Err(Refusal::BlockLimit),
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
            .filter(|pair| [pair.mine, pair.theirs].contains(&Stance::Blocks))
            .map(|pair| step(pair, Act::Follow { secret: None, special: None }, Room { follow: false, block: false }))
            .collect();
        assert_eq!(refused, [Err(Refusal::Blocked); 3]);
    }

    #[test]
    fn mutual_is_symmetric_and_never_made_by_a_secret_follow() {
        for pair in every_pair() {
            let other = Standing { mine: pair.theirs, theirs: pair.mine };
            assert_eq!(pair.is_mutual(), other.is_mutual());
            let secret = [pair.mine, pair.theirs].iter().any(|stance| stance.manner().is_some_and(|manner| manner.secret));
            assert!(!(secret && pair.is_mutual()));
        }
    }
}
