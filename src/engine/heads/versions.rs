//! Which state of the shared heads an answer shows.

use crate::base::clock::UnixMs;
use crate::engine::marks::Kind;

/// Who writes a batch, as its rows tell.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    pub lane_id: i64,
    /// The lane's number for it.
    pub batch: i64,
    /// To which slot of counts that are spread out the lane adds.
    pub slot: i64,
    /// When it is written.
    pub now: UnixMs,
}

impl Batch {
    /// A number above 0 that no other batch has, also of a lane whose last batches a failover has
    /// lost: lanes draw their ids, and none uses a number twice.
    #[must_use]
    pub fn stamp(self) -> i64 {
        // Odd, so that each number gives another product.
        const SPREAD: i64 = 0x1E37_79B9_7F4A_7C15;
        ((self.lane_id ^ self.batch.wrapping_mul(SPREAD)) & i64::MAX).max(1)
    }
}

/// The versions of the shared heads that an answer was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Versions {
    /// All of them added up. Clients see it as `shared_revision`: of two answers at one revision,
    /// the lower is older.
    pub sum: i64,
    /// A fingerprint of each head with its version. Two nodes that heard of different changes may
    /// show the same sum, but not the same fingerprint. The order of the heads does not matter.
    pub fingerprint: u64,
}

impl Versions {
    /// With the head of one more stream: `id` tells it apart from the others of its kind.
    pub fn add(&mut self, kind: Kind, id: u64, version: i64) {
        let stream = mix(id.wrapping_add(kind.code().cast_unsigned() << 56));
        self.sum = self.sum.saturating_add(version);
        self.fingerprint = self.fingerprint.wrapping_add(mix(stream ^ version.cast_unsigned()));
    }

    /// With one thing whose time has come, so that the answer changed without a write: the level of
    /// a chat that ended. Time goes on, so the sum never falls.
    pub fn add_ended(&mut self, kind: Kind, id: u64) {
        let stream = mix(id.wrapping_add(kind.code().cast_unsigned() << 56));
        self.sum = self.sum.saturating_add(1);
        // No version is -1, which this is.
        self.fingerprint = self.fingerprint.wrapping_add(mix(!stream));
    }

    /// With all heads of `more`, none of which are here yet.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self { sum: self.sum.saturating_add(more.sum), fingerprint: self.fingerprint.wrapping_add(more.fingerprint) }
    }
}

/// Spreads the bits of a number (the last step of SplitMix64), so that sums of mixed numbers do not
/// collide by mistake.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(heads: &[(u64, i64)]) -> Versions {
        let mut versions = Versions::default();
        heads.iter().for_each(|(id, version)| versions.add(Kind::Group, *id, *version));
        versions
    }

    #[test]
    fn equal_sums_of_different_versions_are_told_apart() {
        let (one, other) = (versions(&[(1, 5), (2, 3)]), versions(&[(1, 4), (2, 4)]));
        assert_eq!(one.sum, other.sum);
        assert_ne!(one.fingerprint, other.fingerprint);
        assert_ne!(versions(&[(1, 3), (2, 5)]).fingerprint, one.fingerprint, "whose version it is counts");
        assert_eq!(versions(&[(2, 3), (1, 5)]), one, "the order does not");
        assert_eq!(versions(&[(1, 5)]).and(versions(&[(2, 3)])), one);
        let mut posts = Versions::default();
        posts.add(Kind::Post, 1, 5);
        assert_ne!(posts, versions(&[(1, 5)]), "nor do a group and a creator of one id pass for each other");
    }

    #[test]
    fn what_ended_is_another_version() {
        let before = versions(&[(1, 5), (2, 3)]);
        let mut after = before;
        after.add_ended(Kind::Group, 2);
        assert_eq!(after.sum, before.sum + 1);
        assert_ne!(after.fingerprint, before.fingerprint);
        for heads in [[(1, 6), (2, 3)], [(1, 5), (2, 4)]] {
            assert_ne!(versions(&heads).fingerprint, after.fingerprint, "a head that moved instead is another answer");
        }
    }
}
