//! Which posts a count of the feed took in: what the token of a feed says (docs/adr/0016).
//!
//! A *horizon* is a cut through the posts of all creators. For each lane it has the last batch that
//! the node had heard of. A post knows the lane and the batch that wrote it, so the horizon says of
//! each post whether it was there. Creators who posted while the horizon was taken are named beside
//! it, with the head that was counted. So its size does not depend on how many a user follows.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest as _, Sha256};

use super::Snapshot;
use super::snapshot::{pull, push};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::engine::lanes::RETIRED_MS;

/// The most characters of a token that is taken. A token has about 20 for each lane of the last
/// hour.
pub const MAX_TOKEN_CHARS: usize = 256 * 1024;

/// The first byte: how the rest is to be read.
const FORMAT: u8 = 1;

/// How many bytes of a hash follow the rest. They find mistakes, and keep nothing secret: a token
/// that somebody makes up marks no more as seen than a reset without a token.
const CHECK_BYTES: usize = 8;

/// What a lane wrote that the horizon does not name: it began after the horizon, or it ended at least
/// an hour before it, after which the rows of lanes go. Half of that tells these two apart, however
/// the clocks of nodes differ.
const LANE_GONE_MS: i64 = RETIRED_MS / 2;

/// Who wrote a row, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The lane; 0 in rows from before posts had stamps.
    pub lane_id: i64,
    /// The lane's number for it.
    pub batch: i64,
    pub at: UnixMs,
}

/// Which posts were there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Horizon {
    /// When it was taken.
    pub at: UnixMs,
    /// How far each lane was.
    pub lanes: BTreeMap<i64, i64>,
    /// Creators of whom another head was counted than the lanes say.
    pub counted: Snapshot,
}

impl Horizon {
    /// Whether this was written by then.
    #[must_use]
    pub fn covers(&self, stamp: Stamp) -> bool {
        match self.lanes.get(&stamp.lane_id) {
            _ if stamp.lane_id == 0 => true,
            Some(batch) => stamp.batch <= *batch,
            None => stamp.at.0 < self.at.0 - LANE_GONE_MS,
        }
    }

    /// As a token of this user's feed.
    #[must_use]
    pub fn encode(&self, user: UserId) -> String {
        let mut bytes = vec![FORMAT];
        for number in [user.get(), self.at.0, i64::try_from(self.lanes.len()).unwrap_or(i64::MAX)] {
            push(&mut bytes, number);
        }
        let mut before = 0;
        for (lane, batch) in &self.lanes {
            push(&mut bytes, lane - before);
            push(&mut bytes, *batch);
            before = *lane;
        }
        bytes.extend(self.counted.encode());
        let check = Sha256::digest(&bytes);
        bytes.extend(check.iter().take(CHECK_BYTES));
        BASE64.encode(bytes)
    }

    /// Reads a token; None where it is not one of this user's feed.
    #[must_use]
    pub fn decode(token: &str, user: UserId) -> Option<Self> {
        if token.len() > MAX_TOKEN_CHARS {
            return None;
        }
        let bytes = BASE64.decode(token).ok()?;
        let (bytes, check) = bytes.split_at_checked(bytes.len().checked_sub(CHECK_BYTES)?)?;
        if Sha256::digest(bytes).get(..CHECK_BYTES) != Some(check) {
            return None;
        }
        let mut rest = bytes.strip_prefix(&[FORMAT])?;
        if pull(&mut rest)? != user.get() {
            return None;
        }
        let (at, count) = (UnixMs(pull(&mut rest)?), pull(&mut rest)?);
        let (mut lanes, mut lane) = (BTreeMap::new(), 0_i64);
        for _ in 0..count {
            lane = lane.checked_add(pull(&mut rest)?)?;
            lanes.insert(lane, pull(&mut rest)?);
        }
        Some(Self { at, lanes, counted: Snapshot::decode(rest)? })
    }
}

/// Looks for the head that a creator had at a horizon, among the creator's posts: those up to it
/// were there, and those above were not. Most have few above, so the search begins at the present
/// head.
#[derive(Debug)]
pub(super) struct Search {
    /// Posts up to here were there.
    low: i64,
    /// Posts above here were not.
    high: i64,
    /// How far below `high` the next look is, while every post so far was above the horizon.
    step: i64,
    found: bool,
}

impl Search {
    pub(super) fn up_to(head: i64) -> Self {
        Self { low: 0, high: head, step: 1, found: false }
    }

    /// Which post to ask for next; None where the head is known.
    pub(super) fn next(&self) -> Option<i64> {
        let gap = self.high - self.low;
        let below = if self.found { gap / 2 } else { self.step - 1 };
        (gap > 0).then(|| (self.high - below).max(self.low + 1))
    }

    /// Whether the post at this place was there.
    pub(super) fn tell(&mut self, at: i64, was_there: bool) {
        if was_there {
            (self.low, self.found) = (at, true);
        } else {
            (self.high, self.step) = (at - 1, self.step.saturating_mul(2));
        }
    }

    pub(super) fn head(&self) -> i64 {
        self.low
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user(id: i64) -> UserId {
        id.try_into().unwrap()
    }

    fn horizon(lanes: &[(i64, i64)], counted: &[(i64, i64)]) -> Horizon {
        let counted = Snapshot::new(counted.iter().map(|(creator, head)| (user(*creator), *head)).collect());
        Horizon { at: UnixMs(1_800_000_000_000), lanes: lanes.iter().copied().collect(), counted }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            lanes in prop::collection::vec((1..=i64::MAX, 0..1_000_000_i64), 0..40),
            counted in prop::collection::vec((1..=i64::MAX, 1..=crate::base::ids::MAX_HEAD), 0..40),
            of in 1..=i64::MAX,
        ) {
            let horizon = horizon(&lanes, &counted);
            prop_assert_eq!(Horizon::decode(&horizon.encode(user(of)), user(of)), Some(horizon));
        }

        #[test]
        fn what_is_not_a_token_is_none(text in ".{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(Horizon::decode(&text, user(1)), None);
            prop_assert_eq!(Horizon::decode(&BASE64.encode(&bytes), user(1)), None);
            // Also where the hash is right.
            let mut whole = [&[FORMAT, 1][..], &bytes].concat();
            let check = Sha256::digest(&whole);
            whole.extend(check.iter().take(CHECK_BYTES));
            if let Some(read) = Horizon::decode(&BASE64.encode(&whole), user(1)) {
                prop_assert!(read.counted.len() <= bytes.len());
            }
        }

        #[test]
        fn the_search_finds_the_last_post_that_was_there(head in 0..100_000_i64, percent in 0..=100_i64) {
            let last = head * percent / 100;
            let (mut search, mut looks) = (Search::up_to(head), 0);
            while let Some(at) = search.next() {
                search.tell(at, at <= last);
                looks += 1;
            }
            prop_assert_eq!(search.head(), last);
            prop_assert!(looks <= 36, "{} looks", looks);
        }
    }

    #[test]
    fn a_token_is_one_users_and_bounded() {
        let token = horizon(&[(7, 3)], &[(9, 2)]).encode(user(1));
        assert!(Horizon::decode(&token, user(1)).is_some());
        assert_eq!(Horizon::decode(&token, user(2)), None, "of somebody else");
        for at in 0..token.len() {
            let mut other = token.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(Horizon::decode(&String::from_utf8(other).unwrap(), user(1)), None, "changed at {at}");
        }
        assert_eq!(Horizon::decode(&"A".repeat(MAX_TOKEN_CHARS + 1), user(1)), None);
        let lanes: Vec<_> = (1..=40).map(|n| (n * (i64::MAX / 41), 1_000_000 + n)).collect();
        let long = horizon(&lanes, &[]).encode(user(i64::MAX));
        assert!(long.len() <= 40 * 20, "{} characters for 40 lanes", long.len());
    }

    #[test]
    fn a_horizon_tells_what_was_there() {
        let horizon = horizon(&[(7, 3)], &[]);
        let at = |lane_id, batch, age_ms| Stamp { lane_id, batch, at: UnixMs(horizon.at.0 - age_ms) };
        assert!(horizon.covers(at(7, 3, 0)) && horizon.covers(at(7, 2, -5)));
        assert!(!horizon.covers(at(7, 4, 0)) && !horizon.covers(at(7, 4, LANE_GONE_MS * 4)), "times do not matter there");
        assert!(!horizon.covers(at(8, 1, 0)) && !horizon.covers(at(8, 1, LANE_GONE_MS)), "a lane that began later");
        assert!(horizon.covers(at(8, 9, LANE_GONE_MS + 1)), "a lane that ended long before");
        assert!(horizon.covers(at(0, 0, 0)), "from before posts had stamps");
    }

    #[test]
    fn few_posts_above_are_few_looks() {
        for above in 0..4 {
            let (mut search, mut looks) = (Search::up_to(1_000_000), 0);
            while let Some(at) = search.next() {
                search.tell(at, at <= 1_000_000 - above);
                looks += 1;
                if search.found && search.high - search.low <= 1 {
                    break;
                }
            }
            assert!(looks <= 3 + above, "{looks} looks for {above}");
        }
    }
}
