//! Which shard an owner's rows are in, as Citus hashes a bigint.

use sqlx::PgConnection;

use super::DbResult;

/// The shards of the tables that have a bigint as owner. They lie together: an owner has the same
/// one in every table.
#[derive(Debug)]
pub struct Shards {
    /// The least hash of each, ascending.
    from: Vec<i32>,
}

impl Shards {
    /// None: the table is not distributed.
    pub(super) async fn read(conn: &mut PgConnection, table: &str) -> DbResult<Option<Self>> {
        let sql =
            "select shardminvalue::int from pg_dist_shard where logicalrelid = to_regclass($1) and shardminvalue is not null order by 1";
        let from: Vec<(i32,)> = sqlx::query_as(sql).bind(table).fetch_all(conn).await?;
        Ok(if from.is_empty() { None } else { Some(Self { from: from.into_iter().map(|(from,)| from).collect() }) })
    }

    /// The number of an owner's shard.
    pub(super) fn of(&self, owner: i64) -> usize {
        let hash = hash(owner);
        self.from.partition_point(|from| *from <= hash).saturating_sub(1)
    }

    /// The rows of each shard, in their order: none where all are in one.
    pub(super) fn split(&self, owners: &[i64]) -> Option<Vec<Vec<usize>>> {
        let first = self.of(*owners.first()?);
        if owners.iter().all(|owner| self.of(*owner) == first) {
            return None;
        }
        let mut rows = vec![Vec::new(); self.from.len()];
        for (row, owner) in owners.iter().enumerate() {
            if let Some(rows) = rows.get_mut(self.of(*owner)) {
                rows.push(row);
            }
        }
        rows.retain(|rows| !rows.is_empty());
        Some(rows)
    }
}

/// `hashint8` of Postgres, the last round of Bob Jenkins' lookup3 over both halves of the number
/// folded into one, so that a number has the hash that it would have as a shorter integer.
fn hash(value: i64) -> i32 {
    let [low, high] = [value, value >> 32].map(|half| u32::try_from(half & 0xffff_ffff).unwrap_or_default());
    let folded = low ^ if value >= 0 { high } else { !high };
    let seed = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (seed.wrapping_add(folded), seed, seed);
    let mix = |into: &mut u32, from: u32, by: u32| *into = (*into ^ from).wrapping_sub(from.rotate_left(by));
    mix(&mut c, b, 14);
    mix(&mut a, c, 11);
    mix(&mut b, a, 25);
    mix(&mut c, b, 16);
    mix(&mut a, c, 4);
    mix(&mut b, a, 14);
    mix(&mut c, b, 24);
    c.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::{Shards, hash};

    #[test]
    fn hashes_are_those_of_postgres() {
        // select i, hashint8(i) from (values (0), (1), (7), (42), (1000000), (5000000000), (-1), (9223372036854775807)) v (i)
        for (value, expected) in HASHES {
            assert_eq!(hash(value), expected, "{value}");
        }
    }

    const HASHES: [(i64, i32); 9] = [
        (0, -272_711_505),
        (1, -1_905_060_026),
        (7, -978_793_473),
        (42, 1_509_752_520),
        (1_000_000, -723_906_379),
        (5_000_000_000, -694_934_712),
        (-1, 385_747_274),
        (-5_000_000_000, 954_517_114),
        (i64::MAX, -1_524_351_049),
    ];

    #[test]
    fn rows_go_with_their_shard_in_their_order() {
        let shards = Shards { from: vec![i32::MIN, 0] };
        let [low, high]: [Vec<i64>; 2] = [true, false].map(|low| (1..100).filter(|id| (hash(*id) < 0) == low).take(2).collect());
        assert_eq!(shards.split(&low), None);
        assert_eq!(shards.split(&[]), None);
        assert_eq!(shards.split(&[high[0], low[0], high[1], low[1]]), Some(vec![vec![1, 3], vec![0, 2]]));
    }
}
