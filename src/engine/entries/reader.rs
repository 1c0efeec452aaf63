//! Reads the entries of users from their rows.
//!
//! To put something of a feature's rows into the entry: an [`EntryRows`] in the feature's row set.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::base::ids::UserId;
use crate::cache::{Entry, Parts};
use crate::db::{Db, DbResult, Statement, Type};
use crate::engine::erased;
use crate::engine::marks::parts::left_out;
use crate::engine::marks::parts::{Part, settings_part, user_part};
use crate::engine::marks::users::{User, ids};
use crate::engine::marks::{Kind, LeftOut, Mark, UserMarks, UserSettings};

/// The user's own row comes first, with its settings behind the marks. The marks of views are many and read one by one.
const USERS: &str =
    "select u.user_id, cast(0 as bigint) as kind, u.marks || '|' || u.settings as text, u.revision as a, u.enrolled as b, u.seen_day as c, u.feed as d,
        u.direct_unread as e, u.direct_chats as f, cast(null as bytea) as data
    from {rows} r
    join users u on u.user_id = r.user_id";

/// Rows of a feature that a user's entry shows.
#[derive(Debug, Clone, Copy)]
pub struct EntryRows {
    /// Selects them for the users in `{rows} r`: user id, `{kind}`, a text, six numbers and
    /// bytes.
    pub select: &'static str,
    /// How the entry shows a row; None where the row adds nothing.
    pub part: fn(&EntryRow) -> Option<Part>,
}

/// A row of an [`EntryRows`].
#[derive(Debug)]
pub struct EntryRow {
    pub text: String,
    pub numbers: [i64; 6],
    pub data: Option<Vec<u8>>,
}

/// A row as it is read.
type ReadRow = (i64, i64, String, i64, i64, i64, i64, i64, i64, Option<Vec<u8>>);

/// A user's own rows as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRows {
    pub user: UserId,
    /// The user's own row, as far as the entry shows it.
    pub row: User,
    /// What the entry shows.
    pub entry: Entry,
    /// Whether that is all there is. During an upgrade, a newer version may write rows of a kind
    /// that this one does not know. Then the cache that both share must not be filled from here.
    pub complete: bool,
}

impl UserRows {
    /// Of a user without any row.
    fn none(user: UserId) -> Self {
        Self { user, row: User::default(), entry: Entry { revision: 0, parts: Parts::new() }, complete: true }
    }

    /// Of a user that was erased and has no row any more. It is not put into the cache, which names
    /// users by their ids.
    fn erased(user: UserId) -> Self {
        let row = User { settings: UserSettings::erased(), ..User::default() };
        let entry = Entry { revision: 0, parts: Parts::from_iter([settings_part(&row)]) };
        Self { user, row, entry, complete: false }
    }

    /// The marks of a kind: name and mark, in the order of the names.
    pub fn marks_of(&self, kind: Kind) -> impl Iterator<Item = (&str, Mark)> {
        self.row.marks.marks(kind)
    }

    /// How far the user has read a stream.
    #[must_use]
    pub fn mark(&self, kind: Kind, name: &str) -> i64 {
        self.row.marks.get(kind, name).mark()
    }

    /// The names of a kind that the total leaves out.
    #[must_use]
    pub fn left_out(&self, kind: &str) -> LeftOut<'_> {
        left_out(&self.entry.parts, kind)
    }

    fn add_user(&mut self, text: &str, [revision, enrolled, seen_day, feed, direct_unread, direct_chats]: [i64; 6]) {
        // No setting has the separator in it.
        let (marks, settings) = text.rsplit_once('|').unwrap_or((text, ""));
        let (marks, settings) = (UserMarks::from_row(marks), UserSettings::from_row(settings));
        self.complete = !marks.has_unknown();
        self.row = User { revision, enrolled, seen_day, feed, direct_unread, direct_chats, marks, settings, ..User::default() };
        self.entry.revision = revision;
        self.entry.parts.extend([user_part(&self.row)]);
        if !self.row.settings.as_str().is_empty() {
            self.entry.parts.extend([settings_part(&self.row)]);
        }
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
        let mut text = String::from(USERS);
        for (kind, feature) in (1..).zip(&features) {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n    union all\n    {}", feature.select.replace("{kind}", &kind.to_string()));
        }
        text.push_str("\n    order by 1, 2, 3");
        Self { statement: Statement::composed(text, &[("user_id", Type::Int)]).by("user_id"), features }
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
        for (id, kind, text, a, b, c, d, e, f, data) in rows {
            let Ok(user) = UserId::try_from(id) else { continue };
            let of = found.entry(id).or_insert_with(|| UserRows::none(user));
            let numbers = [a, b, c, d, e, f];
            // Kind 0 is the user's own row.
            let Ok(at) = usize::try_from(kind - 1) else {
                of.add_user(&text, numbers);
                continue;
            };
            let part = self.features.get(at).and_then(|feature| (feature.part)(&EntryRow { text, numbers, data }));
            of.entry.parts.extend(part);
        }
        let missing: Vec<_> = users.iter().filter(|user| !found.contains_key(&user.get())).copied().collect();
        for (user, _) in erased::read(db, &missing).await? {
            found.insert(user.get(), UserRows::erased(user));
        }
        Ok(users.iter().map(|user| found.remove(&user.get()).unwrap_or_else(|| UserRows::none(*user))).collect())
    }
}
