//! A hash of ids for maps in memory: one multiplication.
//!
//! A user with credentials can choose ids: any caller may ask about anyone. With a multiplier that
//! everybody knows, such a caller could find many ids of one bucket. So each process draws its own.
//! For two given ids, few multipliers have them meet. The multiplier leaves the process in no way,
//! and a table's order is never shown, so that nobody can search for ids that meet.

use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

use rand::RngExt as _;

/// This process's multiplier. It is odd, so that no two ids have the same product.
static MULTIPLIER: LazyLock<u64> = LazyLock::new(|| rand::rng().random::<u64>() | 1);

/// Makes the hashers of maps by id, or by names that the operator or the program chooses. Texts that
/// callers choose do not belong into such a map.
#[derive(Debug, Clone, Copy)]
pub struct IdHash {
    multiplier: u64,
}

impl Default for IdHash {
    fn default() -> Self {
        Self { multiplier: *MULTIPLIER }
    }
}

impl BuildHasher for IdHash {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher { multiplier: self.multiplier, hash: 0 }
    }
}

/// The hash of an id in the making.
#[derive(Debug, Clone, Copy)]
pub struct IdHasher {
    multiplier: u64,
    hash: u64,
}

impl Hasher for IdHasher {
    fn write_u64(&mut self, id: u64) {
        let product = u128::from(self.hash ^ id) * u128::from(self.multiplier);
        // The upper half depends on the upper bits of the id, the lower half on the lower ones.
        // Tables look at either end, so both ends get both.
        let bytes = product.to_le_bytes();
        let (low, high) = bytes.split_at(8);
        let half = |half: &[u8]| half.try_into().map(u64::from_le_bytes).unwrap_or_default();
        self.hash = half(low) ^ half(high);
    }

    fn write_i64(&mut self, id: i64) {
        self.write_u64(id.cast_unsigned());
    }

    /// Keys of other types: eight bytes at a time.
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(padded));
        }
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::UserId;

    /// How many of these ids come into the fullest of 4096 buckets, by the lowest bits and by those
    /// that choose a shard.
    fn fullest(ids: impl Iterator<Item = i64>) -> [usize; 2] {
        let (mut low, mut high) = (vec![0; 4096], vec![0; 4096]);
        for id in ids {
            let hash = usize::try_from(IdHash::default().hash_one(UserId::try_from(id).unwrap())).unwrap();
            low[hash % 4096] += 1;
            high[(hash >> 32) % 4096] += 1;
        }
        [low, high].map(|buckets| buckets.into_iter().max().unwrap())
    }

    #[test]
    fn ids_of_every_usual_form_are_spread() {
        // Sixteen to a bucket on average. One in the worst place would be thousands.
        const MOST: usize = 300;
        for shift in [0, 8, 12, 16, 22, 32, 40, 46] {
            let fullest = fullest((1..=65_536_i64).map(|id| id << shift));
            assert!(fullest.iter().all(|most| *most < MOST), "{fullest:?} with {shift} zeros behind");
        }
    }

    #[test]
    fn equal_ids_have_equal_hashes_and_texts_have_some() {
        let hash = IdHash::default();
        assert_eq!(hash.hash_one(7_i64), hash.hash_one(7_u64));
        assert_ne!(hash.hash_one(7_i64), hash.hash_one(8_i64));
        assert_ne!(hash.hash_one("mention"), hash.hash_one("comment"));
    }
}
