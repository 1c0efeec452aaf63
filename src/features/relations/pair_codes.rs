//! What two users are to each other, as one number.

use super::state::{FollowOptions, PairState, Relation};
use crate::features::silence::Mute;

/// One mutes the other, for ever or until the time that the row has.
pub(super) const MUTES: u8 = 64;
pub(super) const MUTES_UNTIL: u8 = 128;

/// How far the bits of the other direction stand to the left.
const THEIRS: u32 = 4;

/// A follow and a block together, which there never are: a request in place of a follow, of one's own.
const REQUEST: u8 = 1 + 8;

/// What two users are to each other as a number, as one of them sees that. For each direction: 1
/// for a follow, 2 more if it is secret. Of one's own: 4 more if the other is special, 8 for a
/// block, and both for a request, with the same for its options. The other direction counts
/// sixteenfold; whom the other one blocks or has asked to follow, and who is special to it, is not
/// told.
#[must_use]
pub(super) fn code(pair_state: PairState) -> u8 {
    let options = |options: FollowOptions| 2 * u8::from(options.secret) + 4 * u8::from(options.special);
    let mine = match pair_state.mine {
        Relation::Nothing => 0,
        Relation::Requests(of) => REQUEST + options(of),
        Relation::Follows(of) => 1 + options(of),
        Relation::Blocks => 8,
    };
    let theirs = pair_state.theirs.options().map_or(0, |of| 1 + options(FollowOptions { special: false, ..of }));
    mine + (theirs << THEIRS)
}

/// What a mute adds to such a number. It may have ended: then the row says so, or is gone.
#[must_use]
pub(super) fn mute_code(mute: Option<Mute>) -> u8 {
    match mute {
        None => 0,
        Some(Mute { until: None }) => MUTES,
        Some(Mute { until: Some(_) }) => MUTES_UNTIL,
    }
}

/// What such a number says.
#[must_use]
pub(super) fn pair_state(code: u8) -> PairState {
    let options = |bits: u8| FollowOptions { secret: bits & 2 != 0, special: bits & 4 != 0 };
    let relation = |bits: u8| match bits {
        _ if bits & REQUEST == REQUEST => Relation::Requests(options(bits)),
        _ if bits & 8 != 0 => Relation::Blocks,
        _ if bits & 1 != 0 => Relation::Follows(options(bits)),
        _ => Relation::Nothing,
    };
    PairState { mine: relation(code & 15), theirs: relation((code >> THEIRS) & 3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_what_the_one_who_looks_is_told() {
        let options = [(false, false), (true, false), (false, true), (true, true)]
            .map(|(secret, special)| Relation::Follows(FollowOptions { secret, special }));
        let requests = options.map(|follow| Relation::Requests(follow.options().unwrap()));
        for mine in options.into_iter().chain(requests).chain([Relation::Nothing, Relation::Blocks]) {
            for theirs in options.into_iter().chain(requests).chain([Relation::Nothing]) {
                let theirs_as_told = match theirs {
                    Relation::Follows(options) => Relation::Follows(FollowOptions { special: false, ..options }),
                    Relation::Requests(_) => Relation::Nothing,
                    other => other,
                };
                let told = pair_state(code(PairState { mine, theirs }));
                assert_eq!(told, PairState { mine, theirs: theirs_as_told }, "who is special to the other is not told, nor who is asked");
            }
            let blocked = PairState { mine, theirs: Relation::Blocks };
            assert_eq!(code(blocked), code(PairState { mine, theirs: Relation::Nothing }), "a block by the other is not told");
        }
    }
}
