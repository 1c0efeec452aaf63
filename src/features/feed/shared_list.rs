//! The list behind a user's feed in few bytes, as nodes leave it for each other in Redis.

use super::Snapshot;
use super::snapshot::{pull, push};

/// The first byte. Lists of earlier versions begin with that of a [`Snapshot`]: they say nothing of
/// mutes, so they are read again from SQL.
const FORMAT: u8 = 2;

/// Whom a user follows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SharedList {
    /// The mark of each.
    pub(super) marks: Snapshot,
    /// Those of them whom the user mutes, each with the time at which that ends; 0: never.
    pub(super) muted: Snapshot,
}

impl SharedList {
    pub(super) fn encode(&self) -> Vec<u8> {
        let marks = self.marks.encode();
        let mut bytes = vec![FORMAT];
        push(&mut bytes, i64::try_from(marks.len()).unwrap_or(i64::MAX));
        bytes.extend(marks);
        bytes.extend(self.muted.encode());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&[FORMAT])?;
        let length = usize::try_from(pull(&mut rest)?).ok()?;
        let (marks, muted) = rest.split_at_checked(length)?;
        Some(Self { marks: Snapshot::decode(marks)?, muted: Snapshot::decode(muted)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::ids::UserId;

    fn snapshot(marks: &[(i64, i64)]) -> Snapshot {
        Snapshot::new(marks.iter().map(|(creator, mark)| (UserId::try_from(*creator).unwrap(), *mark)).collect())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            marks in prop::collection::vec((1..=i64::MAX, 0..1000_i64), 0..40),
            muted in prop::collection::vec((1..=i64::MAX, prop_oneof![Just(0), 0..=i64::MAX]), 0..9),
            cut in any::<prop::sample::Index>(),
        ) {
            let list = SharedList { marks: snapshot(&marks), muted: snapshot(&muted) };
            let bytes = list.encode();
            prop_assert_eq!(SharedList::decode(&bytes), Some(list.clone()));
            prop_assert!(bytes.len() <= list.marks.encode().len() + list.muted.encode().len() + 4, "it costs no more for a user who mutes nobody");
            // Part of it is never taken for more than it is.
            if let Some(read) = SharedList::decode(&bytes[..cut.index(bytes.len())]) {
                prop_assert_eq!(read.marks, list.marks);
            }
        }
    }

    #[test]
    fn a_list_of_an_earlier_version_is_read_again() {
        assert_eq!(SharedList::decode(&snapshot(&[(7, 3)]).encode()), None);
        assert_eq!(SharedList::decode(&[]), None);
        assert_eq!(SharedList::decode(&SharedList::default().encode()), Some(SharedList::default()));
    }
}
