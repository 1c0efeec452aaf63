//! Ids of the messages of a log, so that a log may be imported again.
//!
//! An id is made of the line's own content: its time and its text, within the chat and sender that
//! it belongs to. Where lines stand in the file does not matter, so a line that is repaired, added
//! or removed changes no other id. Lines that are equal in all of this are counted: the second one
//! has the number 2. They say the same, so it does not matter which of them has which number.

use std::collections::HashMap;
use std::hash::Hash;

use sha2::{Digest as _, Sha256};

use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, Invalid};

/// Gives ids to the messages of a log, which must be in the order of time.
#[derive(Debug)]
pub(crate) struct MessageIds<K> {
    at: UnixMs,
    /// How many messages of the present moment are equal.
    equal: HashMap<(K, u64), u32>,
}

impl<K: Hash + Eq> MessageIds<K> {
    pub(crate) fn new() -> Self {
        Self { at: UnixMs(0), equal: HashMap::new() }
    }

    /// The id of the next message of a chat and sender.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn next(&mut self, of: K, at: UnixMs, content: &str) -> Result<ClientId, String> {
        if at != self.at {
            self.at = at;
            self.equal.clear();
        }
        let digest = digest(&[content.as_bytes()]);
        let number = self.equal.entry((of, digest)).or_default();
        *number += 1;
        format!("import:{}:{digest:016x}:{number}", at.0).parse().map_err(|Invalid(rule)| rule.to_owned())
    }
}

/// The first bytes of the SHA-256 of these parts.
pub(crate) fn digest(parts: &[&[u8]]) -> u64 {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().iter().take(8).fold(0, |digest, byte| digest << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(lines: &[(i64, u8, &str)]) -> Vec<String> {
        let mut ids = MessageIds::new();
        lines.iter().map(|(at, sender, text)| ids.next(*sender, UnixMs(*at), text).unwrap().to_string()).collect()
    }

    #[test]
    fn an_id_does_not_depend_on_the_lines_around() {
        let all = ids(&[(5, 1, "a"), (5, 1, "b"), (5, 2, "b"), (6, 1, "b")]);
        assert_eq!(ids(&[(5, 1, "b"), (6, 1, "b")]), [all[1].as_str(), &all[3]]);
        assert_eq!(all[1], all[2], "within a sender");
        assert!(all[0] != all[1] && all[1] != all[3], "{all:?}");
    }

    #[test]
    fn equal_lines_are_counted() {
        let all = ids(&[(5, 1, "a"), (5, 1, "a"), (5, 2, "a"), (6, 1, "a")]);
        assert!(all[0].ends_with(":1") && all[1].ends_with(":2") && all[2].ends_with(":1") && all[3].ends_with(":1"), "{all:?}");
        assert_eq!(
            ids(&[(5, 1, "x"), (5, 1, "a"), (5, 1, "y"), (5, 1, "a")])[1..4],
            [&all[0], &ids(&[(5, 1, "y")])[0], &all[1]].map(Clone::clone)
        );
    }
}
