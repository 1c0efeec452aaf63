//! Which part of the database has the rows of an owner: the partition of Postgres, or the shard of
//! Citus. A lane keeps to the parts that are its own, so that its statements visit few.

use std::sync::Arc;

use super::owner_hash;
use super::shards::Shards;

/// Where the rows of an owner are, as far as that matters for speed. It holds while this process has the
/// database open: partitions change only while no node runs, and Citus splits no shard by itself.
#[derive(Debug, Clone)]
pub struct Owners(Parts);

#[derive(Debug, Clone)]
enum Parts {
    /// All tables are plain.
    One,
    /// So many hash partitions.
    Partitions(usize),
    /// The shards of Citus.
    Shards(Arc<Shards>),
}

impl Owners {
    /// Tables with so many partitions; plain ones have one.
    pub(super) fn of_partitions(partitions: u32) -> Self {
        Self(match partitions {
            0 | 1 => Parts::One,
            _ => Parts::Partitions(usize::try_from(partitions).unwrap_or(usize::MAX)),
        })
    }

    pub(super) fn of_shards(shards: Arc<Shards>) -> Self {
        Self(Parts::Shards(shards))
    }

    /// The number of an owner's part, and how many parts there are.
    #[must_use]
    pub fn part(&self, owner: i64) -> (usize, usize) {
        match &self.0 {
            Parts::One => (0, 1),
            Parts::Partitions(partitions) => (remainder(owner_hash::of_partitions(owner), *partitions), *partitions),
            Parts::Shards(shards) => (shards.of(owner), shards.len().max(1)),
        }
    }

    /// Which of some lanes takes the commands of an owner. Owners of one part have one lane. Where
    /// there are more lanes than parts, those of a part share its owners.
    #[must_use]
    pub fn lane(&self, owner: i64, lanes: usize) -> usize {
        let (part, parts) = self.part(owner);
        if parts >= lanes {
            return part % lanes.max(1);
        }
        let of_part = (lanes - part).div_ceil(parts);
        part + parts * remainder(owner.unsigned_abs(), of_part)
    }
}

fn remainder(number: u64, divisor: usize) -> usize {
    u64::try_from(divisor).ok().and_then(|divisor| number.checked_rem(divisor)).and_then(|rest| usize::try_from(rest).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Owners, Parts};

    #[test]
    fn every_lane_has_work_and_parts_of_its_own() {
        for (partitions, lanes) in [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (2, 5), (4, 2), (4, 3), (16, 4)] {
            let owners = Owners(if partitions == 1 { Parts::One } else { Parts::Partitions(partitions) });
            let mut of_lane = vec![BTreeSet::new(); lanes];
            let mut of_part = vec![BTreeSet::new(); partitions];
            for owner in 1..2000 {
                let (lane, (part, _)) = (owners.lane(owner, lanes), owners.part(owner));
                of_lane[lane].insert(part);
                of_part[part].insert(lane);
            }
            assert!(of_lane.iter().all(|parts| !parts.is_empty()), "{partitions} partitions, {lanes} lanes: {of_lane:?}");
            if partitions <= lanes {
                assert!(of_lane.iter().all(|parts| parts.len() == 1), "{partitions} partitions, {lanes} lanes: {of_lane:?}");
            } else {
                assert!(of_part.iter().all(|lanes| lanes.len() == 1), "{partitions} partitions, {lanes} lanes: {of_part:?}");
            }
        }
    }

    #[test]
    fn an_id_tells_the_lane_where_tables_are_plain() {
        let lanes: Vec<_> = (1..=6).map(|owner| Owners(Parts::One).lane(owner, 3)).collect();
        assert_eq!(lanes, [1, 2, 0, 1, 2, 0]);
        assert!(Owners(Parts::One).lane(i64::MIN, 3) < 3);
    }
}
