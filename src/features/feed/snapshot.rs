//! Creators with a mark each, in few bytes: what a user had seen of those it follows when it last
//! looked.

use crate::base::ids::UserId;

/// The first byte: how the rest is to be read.
const FORMAT: u8 = 1;

/// The most bytes of a number: seven bits in each.
const MAX_VARINT_BYTES: u32 = 9;

/// Creators with a mark each, in the order of the creators, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot(Vec<(UserId, i64)>);

impl Snapshot {
    /// Of these, in any order; of a creator that is there twice, the higher mark.
    #[must_use]
    pub fn new(mut marks: Vec<(UserId, i64)>) -> Self {
        marks.sort_unstable_by_key(|(creator, mark)| (*creator, std::cmp::Reverse(*mark)));
        marks.dedup_by_key(|(creator, _)| *creator);
        Self(marks)
    }

    /// How many creators.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The creators and their marks.
    pub fn iter(&self) -> impl Iterator<Item = (UserId, i64)> + '_ {
        self.0.iter().copied()
    }

    /// The creators of this one, each with the higher of its two marks: so no mark goes back, in
    /// whichever order two are merged. Creators of the other one alone are dropped.
    #[must_use]
    pub fn raised_by(&self, other: &Self) -> Self {
        let mut others = other.0.iter().copied().peekable();
        let raised = self.0.iter().map(|(creator, mark)| {
            while others.next_if(|(before, _)| before < creator).is_some() {}
            let more = others.next_if(|(same, _)| same == creator).map_or(0, |(_, mark)| mark);
            (*creator, (*mark).max(more))
        });
        Self(raised.collect())
    }

    /// The creators of either one, each with its higher mark.
    #[must_use]
    pub fn merged_with(&self, other: &Self) -> Self {
        Self::new(self.iter().chain(other.iter()).collect())
    }

    /// Without the creators of whom nothing was seen: a mark that is not there counts as 0.
    #[must_use]
    pub fn without_zeros(mut self) -> Self {
        self.0.retain(|(_, mark)| *mark > 0);
        self
    }

    /// As rows hold it: the format, then for each creator the distance from the one before and the
    /// mark, seven bits a byte. Nothing where it is empty.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut bytes = Vec::with_capacity(1 + self.0.len() * 10);
        bytes.push(FORMAT);
        let mut before = 0;
        for (creator, mark) in &self.0 {
            push(&mut bytes, creator.get() - before);
            push(&mut bytes, *mark);
            before = creator.get();
        }
        bytes
    }

    /// Reads what [`Snapshot::encode`] wrote; None where a newer version wrote it, or it is
    /// damaged.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let Some((format, rest)) = bytes.split_first() else { return Some(Self::default()) };
        if *format != FORMAT {
            return None;
        }
        let (mut rest, mut marks, mut creator) = (rest, Vec::with_capacity(bytes.len() / 8), 0_i64);
        while !rest.is_empty() {
            let step = pull(&mut rest).filter(|step| *step > 0)?;
            creator = creator.checked_add(step)?;
            marks.push((UserId::try_from(creator).ok()?, pull(&mut rest)?));
        }
        Some(Self(marks))
    }

    /// Whether these bytes are damaged. What a newer version wrote is not.
    #[must_use]
    pub fn is_broken(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|format| *format <= FORMAT) && Self::decode(bytes).is_none()
    }
}

pub(super) fn push(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = number.max(0).unsigned_abs();
    loop {
        let low = u8::try_from(rest & 0x7f).unwrap_or_default();
        rest >>= 7;
        if rest == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

pub(super) fn pull(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for place in 0..MAX_VARINT_BYTES {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return i64::try_from(number).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn marks() -> impl Strategy<Value = Vec<(i64, i64)>> {
        let mark = prop_oneof![0..200_i64, 0..=crate::base::ids::MAX_HEAD];
        prop::collection::vec((prop_oneof![1..40_i64, 1..=i64::MAX], mark), 0..60)
    }

    fn snapshot(marks: &[(i64, i64)]) -> Snapshot {
        Snapshot::new(marks.iter().map(|(creator, mark)| (UserId::try_from(*creator).unwrap(), *mark)).collect())
    }

    /// The same as a map, naively.
    fn map(marks: &[(i64, i64)]) -> BTreeMap<i64, i64> {
        let mut map = BTreeMap::new();
        marks.iter().for_each(|(creator, mark)| {
            let entry = map.entry(*creator).or_insert(0);
            *entry = (*mark).max(*entry);
        });
        map
    }

    fn shown(snapshot: &Snapshot) -> BTreeMap<i64, i64> {
        snapshot.iter().map(|(creator, mark)| (creator.get(), mark)).collect()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(marks in marks()) {
            let snapshot = snapshot(&marks);
            prop_assert_eq!(shown(&snapshot), map(&marks));
            prop_assert_eq!(Snapshot::decode(&snapshot.encode()), Some(snapshot));
        }

        #[test]
        fn merging_takes_the_higher_mark_of_those_still_followed(a in marks(), b in marks(), c in marks()) {
            let (first, second, third) = (snapshot(&a), snapshot(&b), snapshot(&c));
            let other = map(&b);
            let expected: BTreeMap<_, _> = map(&a).into_iter().map(|(creator, mark)| (creator, mark.max(other.get(&creator).copied().unwrap_or(0)))).collect();
            prop_assert_eq!(shown(&first.raised_by(&second)), expected);
            prop_assert_eq!(&first.raised_by(&first), &first);
            // Two that are merged into a third may come in either order.
            let same = |snapshot: &Snapshot| Snapshot::new(first.iter().map(|(creator, mark)| {
                (creator, snapshot.iter().find(|(other, _)| *other == creator).map_or(mark, |(_, other)| other.max(mark)))
            }).collect());
            prop_assert_eq!(first.raised_by(&second).raised_by(&third), first.raised_by(&third).raised_by(&second));
            prop_assert_eq!(first.raised_by(&second), same(&second));
            // A merge keeps the creators of both.
            let both: Vec<_> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(shown(&first.merged_with(&second)), map(&both));
            prop_assert_eq!(first.merged_with(&second), second.merged_with(&first));
        }

        #[test]
        fn damaged_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            // Whatever it is read as, it is in order.
            if let Some(first) = bytes.first_mut() {
                *first = FORMAT;
            }
            if let Some(read) = Snapshot::decode(&bytes) {
                prop_assert!(read.0.is_sorted_by(|(a, _), (b, _)| a < b));
            }
        }
    }

    #[test]
    fn a_followee_takes_at_most_twelve_bytes() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            i64::try_from(state >> 1).unwrap()
        };
        for followees in [300_i64, 3000, 5000] {
            let marks: Vec<_> = (0..followees).map(|_| (random().max(1), random() % 1_000_000)).collect();
            let bytes = i64::try_from(snapshot(&marks).encode().len()).unwrap();
            println!("{followees} followees with random ids: {bytes} bytes, {:.2} each", bytes as f64 / followees as f64);
            assert!(bytes <= 12 * followees, "{bytes}");
            let near: Vec<_> = (0..followees).map(|n| (1_000_000 + 7 * n, random() % 1_000_000)).collect();
            assert!(snapshot(&near).encode().len() <= 5 * usize::try_from(followees).unwrap());
        }
    }

    #[test]
    fn what_a_newer_version_wrote_is_not_guessed_at() {
        assert_eq!(Snapshot::decode(&[]), Some(Snapshot::default()));
        assert_eq!(Snapshot::default().encode(), Vec::<u8>::new());
        for bad in [
            &[FORMAT + 1, 1, 1][..],
            &[FORMAT, 1],
            &[FORMAT, 0, 1],
            &[FORMAT, 1, 0x80],
            &[FORMAT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1],
        ] {
            assert_eq!(Snapshot::decode(bad), None, "{bad:?}");
            assert_eq!(Snapshot::is_broken(bad), bad[0] == FORMAT, "{bad:?}");
        }
        assert_eq!(snapshot(&[(7, 0), (8, 2), (9, 0)]).without_zeros(), snapshot(&[(8, 2)]));
    }
}
