//! Numbers that no two nodes and no two calls share, for fill tokens. Not secret: who may speak to
//! the cache may read it.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// The odd constant of splitmix64: its multiples run through all 64-bit numbers before one repeats.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A sequence of distinct numbers that begins at a random place.
#[derive(Debug)]
pub(super) struct Nonces(AtomicU64);

impl Nonces {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(RandomState::new().hash_one(STEP)))
    }

    /// The next number. The mixing is a bijection, so that a sequence does not repeat.
    pub(super) fn next(&self) -> u64 {
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
