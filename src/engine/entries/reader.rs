//! Reads the entries of users from their rows.
//!
//! To put something of a feature's rows into the entry: an [`EntryRows`] in the feature's row set.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::base::ids::UserId;
use crate::cache::{Entry, Parts};
use crate::db::{Db, DbResult, Statement, Type};
use crate::engine::marks::parts::{Part, mark_part, user_parts};
use crate::engine::marks::store::{User, ids, mark_of_row};
use crate::engine::marks::{Kind, Mark, MarkKey};

/// The user's own row comes first (as kind 0), then the marks, without those of views, which are
/// many and read one by one.
const USERS_AND_MARKS: &str = "select u.user_id, 0 as kind, '' as name, u.revision as a, u.enrolled as b, u.seen_day as c, u.feed as d,
        u.direct_unread as e, u.direct_chats as f, '' as retracted, cast(null as bytea) as data
    from {rows} r
    join users u on u.user_id = r.user_id
    union all
    select m.user_id, m.kind, m.name, m.head, m.mark, m.at, 0, 0, 0, m.retracted, cast(null as bytea)
    from {rows} r
    join marks m on m.user_id = r.user_id and m.kind <> 4";

/// Rows of a feature that a user's entry shows.
#[derive(Debug, Clone, Copy)]
pub struct EntryRows {
    /// Selects them for the users in `{rows} r`: user id, `{kind}`, a text, six numbers, `''` and
    /// bytes.
    pub select: &'static str,
    /// How the entry shows a row; None where the row adds nothing.
    pub part: fn(&EntryRow) -> Option<Part>,
}

/// A row of an [`EntryRows`].
#[derive(Debug)]
pub struct EntryRow {
    pub name: String,
    pub numbers: [i64; 6],
    pub data: Option<Vec<u8>>,
}

/// A row as it is read.
type ReadRow = (i64, i64, String, i64, i64, i64, i64, i64, i64, String, Option<Vec<u8>>);

/// A user's own rows as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRows {
    pub user: UserId,
    /// The user's own row, as far as the entry shows it.
    pub row: User,
    /// The marks that the entry shows, in the order of kind and name.
    pub marks: Vec<(MarkKey, Mark)>,
    /// What the entry shows.
    pub entry: Entry,
    /// Whether that is all there is. During an upgrade, a newer version may write rows of a kind
    /// that this one does not know. Then the cache that both share must not be filled from here.
    pub complete: bool,
}

impl UserRows {
    /// Of a user without any row.
    fn none(user: UserId) -> Self {
        Self { user, row: User::default(), marks: Vec::new(), entry: Entry { revision: 0, parts: Parts::new() }, complete: true }
    }

    /// The marks of a kind: name and mark, in the order of the names.
    pub fn marks_of(&self, kind: Kind) -> impl Iterator<Item = (&str, &Mark)> {
        self.marks.iter().filter(move |(key, _)| key.kind == kind).map(|(key, mark)| (&*key.name, mark))
    }

    /// How far the user has read a stream.
    #[must_use]
    pub fn mark(&self, kind: Kind, name: &str) -> i64 {
        self.marks_of(kind).find(|(found, _)| *found == name).map_or(0, |(_, mark)| mark.mark())
    }

    fn add_user(&mut self, [revision, enrolled, seen_day, feed, direct_unread, direct_chats]: [i64; 6]) {
        self.row = User { revision, enrolled, seen_day, feed, direct_unread, direct_chats, ..User::default() };
        self.entry.revision = revision;
        // Parts that say nothing are left out, to save room.
        let says = |(field, _): &Part| match &**field {
            "e" => self.row.is_enrolled(),
            "f" => feed > 0,
            _ => direct_chats > 0,
        };
        self.entry.parts.extend(user_parts(&self.row).into_iter().filter(says));
    }

    fn add_mark(&mut self, mark: Option<(MarkKey, Mark)>) {
        let Some((key, mark)) = mark else {
            self.complete = false;
            return;
        };
        self.entry.parts.extend(mark_part(&key, &mark));
        self.marks.push((key, mark));
    }
}

/// Reads users' entries in one statement, so that everything in an entry belongs together.
#[derive(Debug)]
pub struct EntryReader {
    statement: Statement,
    features: Vec<EntryRows>,
}

impl EntryReader {
    /// With these rows of the features.
    pub fn new(features: impl IntoIterator<Item = EntryRows>) -> Self {
        let features: Vec<_> = features.into_iter().collect();
        let mut text = String::from(USERS_AND_MARKS);
        for (kind, feature) in (1..).zip(&features) {
            // Below 0, where no mark has its kind. Writing to a String cannot fail.
            let _ = write!(text, "\n    union all\n    {}", feature.select.replace("{kind}", &format!("-{kind}")));
        }
        text.push_str("\n    order by 1, 2, 3");
        Self { statement: Statement::composed(text, &[("user_id", Type::Int)]), features }
    }

    /// The statement, for the suite that runs each on both engines.
    #[must_use]
    pub fn statement(&'static self) -> &'static Statement {
        &self.statement
    }

    /// Reads these users, in the order asked (without repeats); one without any row is at revision
    /// 0 with nothing.
    pub async fn read(&'static self, db: &Db, users: &[UserId]) -> DbResult<Vec<UserRows>> {
        let rows: Vec<ReadRow> = db.fetch(&self.statement, &[ids(users)]).await?;
        let mut found: HashMap<i64, UserRows> = HashMap::with_capacity(users.len());
        for (id, kind, name, a, b, c, d, e, f, retracted, data) in rows {
            let Ok(user) = UserId::try_from(id) else { continue };
            let of = found.entry(id).or_insert_with(|| UserRows::none(user));
            let numbers = [a, b, c, d, e, f];
            if kind == 0 {
                of.add_user(numbers);
            } else if kind > 0 {
                of.add_mark(mark_of_row((id, kind, name, a, b, retracted, c)));
            } else {
                let at = usize::try_from(-1 - kind).unwrap_or(usize::MAX);
                let part = self.features.get(at).and_then(|feature| (feature.part)(&EntryRow { name, numbers, data }));
                of.entry.parts.extend(part);
            }
        }
        Ok(users.iter().map(|user| found.remove(&user.get()).unwrap_or_else(|| UserRows::none(*user))).collect())
    }
}
