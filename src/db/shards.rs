//! Which shard an owner's rows are in, as Citus hashes a bigint.

use sqlx::PgConnection;

use super::{DbResult, owner_hash};

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
        let hash = owner_hash::of_shards(owner);
        self.from.partition_point(|from| *from <= hash).saturating_sub(1)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.from.len()
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

#[cfg(test)]
mod tests {
    use super::Shards;
    use crate::db::owner_hash::of_shards;

    #[test]
    fn rows_go_with_their_shard_in_their_order() {
        let shards = Shards { from: vec![i32::MIN, 0] };
        let [low, high]: [Vec<i64>; 2] = [true, false].map(|low| (1..100).filter(|id| (of_shards(*id) < 0) == low).take(2).collect());
        assert_eq!(shards.split(&low), None);
        assert_eq!(shards.split(&[]), None);
        assert_eq!(shards.split(&[high[0], low[0], high[1], low[1]]), Some(vec![vec![1, 3], vec![0, 2]]));
    }
}
