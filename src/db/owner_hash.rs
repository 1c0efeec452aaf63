//! The hashes by which Postgres and Citus spread owners: both are Bob Jenkins' lookup3 over both
//! halves of the number folded into one, so that a number has the hash that it would have as a
//! shorter integer.

/// With what lookup3 begins for a key of four bytes.
const START: u32 = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);

/// The seed of Postgres' hash partitions.
const PARTITION_SEED: (u32, u32) = (0x7a5b_2236, 0x7996_dcfd);

/// `hashint8` of Postgres, by which Citus places a row.
pub(super) fn of_shards(owner: i64) -> i32 {
    let mut state = [START.wrapping_add(folded(owner)), START, START];
    finish(&mut state);
    state[2].cast_signed()
}

/// The hash of a row with this owner alone in its partition key; its partition is the remainder.
/// `hashint8extended` of Postgres, combined with that of no columns before it.
pub(super) fn of_partitions(owner: i64) -> u64 {
    let (high, low) = PARTITION_SEED;
    let mut state = [START.wrapping_add(high), START.wrapping_add(low), START];
    mix(&mut state);
    state[0] = state[0].wrapping_add(folded(owner));
    finish(&mut state);
    ((u64::from(state[1]) << 32) | u64::from(state[2])).wrapping_add(0x49a0_f4dd_15e5_a8e3)
}

fn folded(owner: i64) -> u32 {
    let [low, high] = [owner, owner >> 32].map(|half| u32::try_from(half & 0xffff_ffff).unwrap_or_default());
    low ^ if owner >= 0 { high } else { !high }
}

fn mix(state: &mut [u32; 3]) {
    let [a, b, c] = state;
    let step = |x: &mut u32, y: &mut u32, z: &mut u32, by| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(by);
        *z = z.wrapping_add(*y);
    };
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
}

fn finish(state: &mut [u32; 3]) {
    let [a, b, c] = state;
    let step = |into: &mut u32, from: &mut u32, by| *into = (*into ^ *from).wrapping_sub(from.rotate_left(by));
    step(c, b, 14);
    step(a, c, 11);
    step(b, a, 25);
    step(c, b, 16);
    step(a, c, 4);
    step(b, a, 14);
    step(c, b, 24);
}

#[cfg(test)]
mod tests {
    use super::{of_partitions, of_shards};

    #[test]
    fn hashes_are_those_of_postgres() {
        // select i, hashint8(i) from (values (0), (1), (7), (42), (1000000), (5000000000), (-1), (9223372036854775807)) v (i)
        for (value, expected) in HASHES {
            assert_eq!(of_shards(value), expected, "{value}");
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
    fn partitions_are_those_of_postgres() {
        // select i, hashint8extended(i, 8816678312871386365) + 5305509591434766563 from (…) v (i)
        for (value, expected) in PARTITION_HASHES {
            assert_eq!(of_partitions(value), expected, "{value}");
        }
    }

    const PARTITION_HASHES: [(i64, u64); 9] = [
        (0, 901_916_981_443_598_768),
        (1, 11_274_504_255_086_170_040),
        (7, 7_014_080_962_610_971_927),
        (42, 12_669_485_132_091_644_514),
        (1_000_000, 9_404_234_410_391_201_931),
        (5_000_000_000, 2_506_004_331_664_867_280),
        (-1, 288_437_243_775_528_869),
        (-5_000_000_000, 823_408_602_566_274_251),
        (i64::MAX, 10_244_051_894_435_199_606),
    ];
}
