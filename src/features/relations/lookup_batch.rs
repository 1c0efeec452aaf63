//! What a look-up asks for, and what of it is known so far.

use super::Pair;
use super::pair_codes::{self, MUTES, MUTES_UNTIL};
use super::state::PairState;
use crate::base::ids::UserId;

/// What the second of a pair is to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looked(u8);

impl Looked {
    /// What the two are to each other, as the first sees it.
    #[must_use]
    pub fn pair_state(self) -> PairState {
        pair_codes::pair_state(self.0)
    }

    /// Whether the first mutes the second; None where only the row tells whether that has ended.
    #[must_use]
    pub fn mutes(self) -> Option<bool> {
        if self.0 & MUTES_UNTIL == 0 { Some(self.0 & MUTES != 0) } else { None }
    }
}

/// What is asked for: sorted and without repeats, with what is known of each.
pub(super) struct LookupBatch {
    pub(super) pairs: Vec<Pair>,
    codes: Vec<Option<u8>>,
}

impl LookupBatch {
    pub(super) fn new(pairs: &[Pair]) -> Self {
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        pairs.dedup();
        let codes = vec![None; pairs.len()];
        Self { pairs, codes }
    }

    /// Those of whom nothing is known.
    pub(super) fn missing(&self) -> Vec<Pair> {
        self.pairs.iter().zip(&self.codes).filter(|(_, code)| code.is_none()).map(|(pair, _)| *pair).collect()
    }

    pub(super) fn set(&mut self, pair: &Pair, code: u8) {
        if let Some(known) = self.pairs.binary_search(pair).ok().and_then(|at| self.codes.get_mut(at)) {
            *known = Some(code);
        }
    }

    /// What is known of each, in order.
    pub(super) fn fill(&mut self, codes: impl IntoIterator<Item = Option<u8>>) {
        self.codes.iter_mut().zip(codes).for_each(|(known, code)| *known = code);
    }

    /// What is known of everybody who is something to the user, in the order of ids: the others are
    /// nothing.
    pub(super) fn fill_all(&mut self, user: UserId, all: &[(UserId, u8)]) {
        let code =
            |other: &UserId| all.binary_search_by_key(other, |(of, _)| *of).ok().and_then(|at| all.get(at)).map_or(0, |(_, code)| *code);
        let of_user = self.pairs.iter().zip(&mut self.codes).filter(|(pair, known)| pair.follower == user && known.is_none());
        of_user.for_each(|(pair, known)| *known = Some(code(&pair.followee)));
    }

    pub(super) fn code(&self, pair: &Pair) -> u8 {
        self.pairs.binary_search(pair).ok().and_then(|at| self.codes.get(at).copied().flatten()).unwrap_or_default()
    }

    /// What is told of these pairs, in the order asked.
    pub(super) fn looked(&self, pairs: &[Pair]) -> Vec<Looked> {
        pairs.iter().map(|pair| Looked(self.code(pair))).collect()
    }
}
