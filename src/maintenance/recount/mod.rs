//! Compares every number with the rows that it counts, and repairs what differs. On a healthy
//! database there is nothing to find; what is found came from somebody's hand, a damaged disk or a
//! bug.
//!
//! It works beside running nodes. A comparison is one statement, and so of one moment. (On Citus one
//! that reads rows of several owners is not, so what differs there is looked at twice.) Every
//! transaction of a node changes rows and numbers by the same, so while numbers go up and down the
//! *difference* between a number and its rows stays what it is. A repair therefore adds the
//! difference, and never writes a number that was counted a moment ago; which transactions came in
//! between does not matter. Only another repair changes a difference, so a repair locks the users'
//! rows and compares again. The counts of followers are sums over slots, and slot 0 takes the
//! difference.
//!
//! First the rows: `following` is the truth, and a row of `followers` or `secret_followers` that is
//! missing or too much is repaired under the lock of its pair, after looking again. So is a row of
//! `follow_requests`, by `sent_requests`, and a direct chat that says something else than the inbox.
//! Then, in a second pass, the numbers, as a number may be right only once its rows are. On Postgres no
//! node has to be stopped; SQLite has one writing process, so there the server is. Of these numbers an
//! unread summary shows the unread direct messages and the unread notifications: with those the
//! revision is raised, and a cache that does not hear of it shows the old ones until the entry ends.
//!
//! With the numbers of a user, its inbox is compared (`inboxes.rs`): a row of a group's message
//! that is missing is appended, and raises the revision too.
//!
//! Users who are erased, or are being erased, are left out (`living.rs`).
//!
//! Each repair makes a job that tells of the numbers of all users with a push device.
//!
//! Last the streams that users share (`streams.rs`), whose heads are in no cache but the nodes' own
//! memory, and reach it as every change does.
//!
//! To add a number: its columns in `store::COUNT` (or that of `directs.rs`, `notifications.rs`,
//! `groups.rs`), a [`What`], and what adds to it in `repair_numbers` there.

mod difference;
mod directs;
mod distributed;
mod doubt;
mod groups;
mod inboxes;
mod living;
mod marks;
mod mentions;
mod named;
mod notifications;
mod requests;
mod rows;
mod store;
mod streams;

use std::time::Duration;

pub use self::difference::{Difference, What};
use self::difference::{Owners, owners};
use self::doubt::{doubted, is_doubtful, retain_lasting};
use self::living::{living, lock_living};
use self::rows::Sides;
use self::store::{PAGE, Row};
use self::streams::Streams;
use crate::base::clock::Clock;
use crate::base::ids::UserId;
use crate::db::{Conn, Db, DbResult, ErrorClass, Statement, classify};
use crate::engine::marks::Kind;
use crate::features::push::{self, Scope};

/// Every statement of a recount, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    let of_users = [store::statements().as_slice(), &directs::statements(), &notifications::statements(), &groups::statements()].concat();
    [
        of_users.as_slice(),
        &inboxes::statements(),
        &marks::statements(),
        &mentions::statements(),
        &named::statements(),
        &requests::statements(),
        &streams::statements(),
    ]
    .concat()
}

/// How many users are compared by one statement.
const USERS_AT_ONCE: i64 = 500;

/// How often a repair is tried that met a deadlock or a lock that was held for long.
const MAX_TRIES: u32 = 5;

/// The pause between two tries, and before a second look at what may come of commits under way.
const PAUSE: Duration = Duration::from_millis(200);

/// What a recount looks at, and whether it repairs.
#[derive(Debug, Clone, Copy)]
pub struct Recount {
    /// Only this user; else all.
    pub user: Option<UserId>,
    /// Only say what differs.
    pub dry_run: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Users that were looked at.
    pub users: u64,
    /// Differences that were found.
    pub found: u64,
}

impl Recount {
    /// Runs it to its end. `tell` hears of each difference as it is found.
    ///
    /// # Errors
    /// The driver's own. What was repaired before stays repaired.
    pub async fn run(self, db: &Db, mut tell: impl FnMut(&Difference)) -> DbResult<Report> {
        let mut conn = db.connect_patient().await?;
        let mut report = Report::default();
        let mut told = |found: &[Difference]| {
            found.iter().for_each(&mut tell);
            report.found += u64::try_from(found.len()).unwrap_or_default();
        };
        let mut after = 0;
        while let Some(users) = self.next_users(&mut conn, &mut after).await? {
            self.rows(&mut conn, &users, &mut told).await?;
            told(&sides(&mut conn, &users, self.dry_run).await?);
        }
        let (mut after, mut users_seen) = (0, 0);
        while let Some(users) = self.next_users(&mut conn, &mut after).await? {
            told(&self.settle(&mut conn, Compared::Numbers, &users).await?);
            for users in users.chunks(inboxes::USERS_AT_ONCE) {
                self.inboxes(&mut conn, users, &mut told).await?;
            }
            self.streams(&mut conn, Streams::Posts(&users), &mut told).await?;
            users_seen += u64::try_from(users.len()).unwrap_or_default();
        }
        if self.user.is_none() {
            self.groups(&mut conn, &mut told).await?;
            self.names(&mut conn, Kind::View, &mut told).await?;
            // Before the channels, whose repair raises it.
            self.streams(&mut conn, Streams::BroadcastState, &mut told).await?;
            self.names(&mut conn, Kind::Broadcast, &mut told).await?;
        }
        // Last, when the heads are right.
        after = 0;
        while let Some(users) = self.next_users(&mut conn, &mut after).await? {
            told(&self.settle(&mut conn, Compared::Marks, &users).await?);
            let mut found = named::extra(&mut conn, &users).await?;
            if is_doubtful(&conn, &found) {
                tokio::time::sleep(PAUSE).await;
                retain_lasting(&mut found, &named::extra(&mut conn, &users).await?);
            }
            self.mentions(&mut conn, &found, &mut told).await?;
        }
        Ok(Report { users: users_seen, ..report })
    }

    /// Compares every view, or every channel, with what is in it.
    async fn names(self, conn: &mut Conn, kind: Kind, told: &mut impl FnMut(&[Difference])) -> DbResult<()> {
        let mut after = String::new();
        loop {
            let names = streams::next_names(conn, kind, &after, USERS_AT_ONCE).await?;
            let Some(last) = names.last() else { return Ok(()) };
            after.clone_from(last);
            let streams = if kind == Kind::View { Streams::Views(&names) } else { Streams::Channels(&names) };
            self.streams(conn, streams, told).await?;
        }
    }

    /// Compares what these users, or groups, have. Returns what was found, or what of it was repaired: a scrubber or
    /// another recount may have been faster.
    async fn settle(self, conn: &mut Conn, what: Compared, of: &[i64]) -> DbResult<Vec<Difference>> {
        let mut found = what.count(conn, of).await?;
        if let Some(owners) = doubted(conn, &found) {
            tokio::time::sleep(PAUSE).await;
            retain_lasting(&mut found, &what.count(conn, &owners).await?);
        }
        if found.is_empty() || self.dry_run { Ok(found) } else { repair(conn, &what.repair(owners(&found))).await }
    }

    async fn streams(self, conn: &mut Conn, streams: Streams<'_>, told: &mut impl FnMut(&[Difference])) -> DbResult<()> {
        let mut found = streams::count(conn, streams).await?;
        if is_doubtful(conn, &found) {
            tokio::time::sleep(PAUSE).await;
            retain_lasting(&mut found, &streams::count(conn, streams).await?);
        }
        told(&found);
        if !found.is_empty() && !self.dry_run {
            repair(conn, &Repair::Streams(&found)).await?;
        }
        Ok(())
    }

    /// Compares the inboxes of these users with their memberships. The last number of each inbox
    /// must be right by then: what is missing comes after it.
    async fn inboxes(self, conn: &mut Conn, users: &[i64], told: &mut impl FnMut(&[Difference])) -> DbResult<()> {
        let mut after = Some(inboxes::FIRST);
        while let Some(place) = after {
            let mut lost = inboxes::lost(conn, users, place).await?;
            after = inboxes::next_page(&lost);
            if is_doubtful(conn, &lost) {
                tokio::time::sleep(PAUSE).await;
                let again = inboxes::lost(conn, users, place).await?;
                lost.retain(|row| again.contains(row));
            }
            told(&lost.iter().map(inboxes::difference).collect::<Vec<_>>());
            if !lost.is_empty() && !self.dry_run {
                repair(conn, &Repair::Inboxes(&lost)).await?;
            }
        }
        Ok(())
    }

    /// Compares every group with its memberships and its messages.
    async fn groups(self, conn: &mut Conn, told: &mut impl FnMut(&[Difference])) -> DbResult<()> {
        let mut after = 0;
        loop {
            let groups = groups::next_groups(conn, after, USERS_AT_ONCE).await?;
            let Some(last) = groups.last() else { return Ok(()) };
            after = *last;
            told(&self.settle(conn, Compared::Groups, &groups).await?);
            self.streams(conn, Streams::Groups(&groups), told).await?;
            let mut after = Some((0, 0));
            while let Some(place) = after {
                let (mut found, next) = named::missing(conn, &groups, place).await?;
                if is_doubtful(conn, &found) {
                    tokio::time::sleep(PAUSE).await;
                    retain_lasting(&mut found, &named::missing(conn, &groups, place).await?.0);
                }
                self.mentions(conn, &found, told).await?;
                after = next;
            }
        }
    }

    /// Tells and repairs mentions.
    async fn mentions(self, conn: &mut Conn, found: &[Difference], told: &mut impl FnMut(&[Difference])) -> DbResult<()> {
        told(found);
        if !found.is_empty() && !self.dry_run {
            repair(conn, &Repair::Mentions(found)).await?;
        }
        Ok(())
    }

    /// The next users after the last of the batch before; None at the end.
    async fn next_users(self, conn: &mut Conn, after: &mut i64) -> DbResult<Option<Vec<i64>>> {
        let users = match self.user {
            Some(user) if *after == 0 => vec![user.get()],
            Some(_) => Vec::new(),
            None => store::next_users(conn, *after, USERS_AT_ONCE).await?,
        };
        let Some(last) = users.last() else { return Ok(None) };
        *after = *last;
        living(conn, users).await.map(Some)
    }

    /// Compares the two sides of the follows and requests of these users.
    async fn rows(self, conn: &mut Conn, users: &[i64], told: &mut impl FnMut(&[Difference])) -> DbResult<()> {
        const FIRST: Row = (0, 0, i64::MIN);
        // Of who is erased nothing is made.
        for sides in Sides::all(self.user.map(UserId::get).filter(|user| users.contains(user))) {
            let mut after = Some(FIRST);
            while let Some(place) = after {
                let mut found = sides.page(conn, users, place).await?;
                after = found.last().copied().filter(|_| found.len() == PAGE);
                if is_doubtful(conn, &found) {
                    tokio::time::sleep(PAUSE).await;
                    let again = sides.page(conn, users, place).await?;
                    found.retain(|row| again.contains(row));
                }
                self.handle(conn, sides.what(), &found, told).await?;
            }
        }
        Ok(())
    }

    /// Tells and repairs rows.
    async fn handle(self, conn: &mut Conn, what: What, rows: &[Row], told: &mut impl FnMut(&[Difference])) -> DbResult<()> {
        let is_missing = matches!(what, What::Missing | What::MissingRequest);
        let (stored, counted) = if is_missing { (0, 1) } else { (1, 0) };
        let difference = |row: &Row| Difference { other: Some(row.0), ..Difference::new(row.1, what, stored, counted) };
        told(&rows.iter().map(difference).collect::<Vec<_>>());
        if !rows.is_empty() && !self.dry_run {
            repair(conn, &Repair::Rows(what, rows)).await?;
        }
        Ok(())
    }
}

/// Compares the numbers of these users alone, repairs what differs, and returns it. For a node,
/// beside its own writes. The streams that users share are left out: to count one is to read all
/// that ever happened in it.
pub async fn numbers(db: &Db, users: &[UserId]) -> DbResult<Vec<Difference>> {
    let mut conn = db.borrow().await?;
    let ids: Vec<_> = users.iter().map(|user| user.get()).collect();
    let differences = numbers_of(&mut conn, &ids).await;
    conn.give_back_after(&differences);
    differences
}

async fn numbers_of(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let chats = sides(conn, users, false).await?;
    let found = count(conn, users).await?;
    let repaired = if found.is_empty() { found } else { repair(conn, &Repair::Numbers(owners(&found))).await? };
    Ok([chats, repaired].concat())
}

/// All numbers of these users that differ.
async fn count(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let own = [store::count(conn, users).await?, directs::count(conn, users).await?].concat();
    Ok([own, notifications::count(conn, users).await?, groups::count(conn, users).await?].concat())
}

/// Compares the direct chats of these users, and repairs what differs unless it is only to be said.
async fn sides(conn: &mut Conn, users: &[i64], dry_run: bool) -> DbResult<Vec<Difference>> {
    let (mut differences, mut after) = (Vec::new(), Some((0, 0)));
    while let Some(place) = after {
        let (found, next) = directs::sides(conn, users, place).await?;
        let is_left = found.is_empty() || dry_run;
        differences.extend(if is_left { found } else { repair(conn, &Repair::Sides(owners(&found), place)).await? });
        after = next;
    }
    Ok(differences)
}

/// What is compared for many owners at once, and repaired under their locks.
#[derive(Debug, Clone, Copy)]
enum Compared {
    /// The numbers of users.
    Numbers,
    /// The numbers of groups.
    Groups,
    /// The marks of users.
    Marks,
}

impl Compared {
    async fn count(self, conn: &mut Conn, owners: &[i64]) -> DbResult<Vec<Difference>> {
        match self {
            Self::Numbers => count(conn, owners).await,
            Self::Groups => groups::count_groups(conn, owners).await,
            Self::Marks => marks::count(conn, owners).await,
        }
    }

    fn repair(self, owners: Owners) -> Repair<'static> {
        match self {
            Self::Numbers => Repair::Numbers(owners),
            Self::Groups => Repair::Groups(owners),
            Self::Marks => Repair::Marks(owners),
        }
    }
}

/// What one transaction repairs. Two may have found the same difference, so each looks again once
/// it holds the locks.
enum Repair<'a> {
    Rows(What, &'a [Row]),
    Sides(Owners, directs::Place),
    Groups(Owners),
    Inboxes(&'a [inboxes::Row]),
    Streams(&'a [Difference]),
    Mentions(&'a [Difference]),
    Numbers(Owners),
    Marks(Owners),
}

impl Repair<'_> {
    /// Whether what was found was said before, and nothing is said of what was repaired.
    fn says_nothing(&self) -> bool {
        matches!(self, Self::Rows(..) | Self::Inboxes(_) | Self::Streams(_) | Self::Mentions(_))
    }
}

/// Returns what was repaired; of rows, inboxes and streams, which have said so before, nothing.
async fn repair(conn: &mut Conn, what: &Repair<'_>) -> DbResult<Vec<Difference>> {
    let mut tries = 0;
    loop {
        tries += 1;
        match try_repair(conn, what).await {
            Err(error) if did_not_commit(&error) && tries < MAX_TRIES => {
                tracing::debug!(%error, "a repair waits for others");
                conn.rollback().await?;
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// Whether nothing was written, for a reason that may pass.
fn did_not_commit(error: &sqlx::Error) -> bool {
    let may_pass = || !matches!(classify(error), ErrorClass::Refuse | ErrorClass::Unknown);
    // The last is of a user who was erased, or a message that went, meanwhile.
    (matches!(error, sqlx::Error::Database(_)) && may_pass()) || matches!(error, sqlx::Error::RowNotFound)
}

async fn try_repair(conn: &mut Conn, what: &Repair<'_>) -> DbResult<Vec<Difference>> {
    crate::failpoint("recount::before_repair");
    conn.begin().await?;
    let repaired = match what {
        Repair::Rows(what, rows) => rows::repair_rows(conn, *what, rows).await.map(|()| Vec::new())?,
        Repair::Sides(users, after) => directs::repair_sides(conn, users, *after).await?,
        Repair::Groups(groups) => groups::repair_groups(conn, groups).await?,
        Repair::Inboxes(rows) => inboxes::repair(conn, rows, Clock::System.now()).await.map(|()| Vec::new())?,
        Repair::Streams(found) => streams::repair(conn, found).await.map(|()| Vec::new())?,
        Repair::Mentions(found) => named::repair(conn, found).await.map(|()| Vec::new())?,
        Repair::Marks(users) => marks::repair(conn, users).await?,
        Repair::Numbers(users) => repair_numbers(conn, users).await?,
    };
    // Whichever numbers they are, and whoever's: repairs are rare.
    if what.says_nothing() || !repaired.is_empty() {
        push::store::add_jobs(conn, &[(Scope::All, push::shown_everywhere(Clock::System.now()))]).await?;
    }
    conn.commit().await?;
    Ok(repaired)
}

async fn repair_numbers(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let users = lock_living(conn, users).await?;
    let mut found = count(conn, &users).await?;
    if let Some(owners) = doubted(conn, &found) {
        retain_lasting(&mut found, &count(conn, &owners).await?);
    }
    directs::repair_numbers(conn, &found).await?;
    notifications::repair_numbers(conn, &found).await?;
    groups::repair_numbers(conn, &found).await?;
    store::repair_numbers(conn, &found).await?;
    Ok(found)
}
