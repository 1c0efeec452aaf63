//! What is counted twice. On a distributed database a statement that reads rows of several owners is not of one moment.
//! What others change meanwhile seldom makes the same difference twice.

use super::difference::{Difference, Owners, owners};
use crate::db::Conn;

/// Whether what was found may come of that.
pub(super) fn is_doubtful<T>(conn: &Conn, found: &[T]) -> bool {
    conn.is_distributed() && !found.is_empty()
}

/// Whose numbers are to be counted again because of that.
pub(super) fn doubted(conn: &Conn, found: &[Difference]) -> Option<Owners> {
    let owners = is_doubtful(conn, found).then(|| owners(found))?;
    crate::failpoint("recount::before_second_count");
    Some(owners)
}

/// Keeps what a second count has found, too.
pub(super) fn retain_lasting(found: &mut Vec<Difference>, again: &[Difference]) {
    found.retain(|found| again.iter().any(|again| again.is_by_as_much(found)));
}

#[cfg(test)]
mod tests {
    use super::super::difference::What;
    use super::*;

    #[test]
    fn what_a_second_count_finds_by_as_much_is_kept() {
        let difference = |user, stored, counted| Difference::new(user, What::Following, stored, counted);
        let mut found = vec![difference(1, 3, 2), difference(2, 3, 2), difference(3, 3, 2)];
        // The first has gone on, the second was right, and the third differs by something else.
        retain_lasting(&mut found, &[difference(1, 8, 7), difference(3, 3, 4), difference(4, 3, 2)]);
        assert_eq!(found, [difference(1, 3, 2)]);
    }
}
