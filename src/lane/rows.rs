//! The rows that a batch works on: loaded together, changed by pure functions, written back together.
//!
//! To add a table: a [`Table`] here, its needs in [`Needs`], and one line each in [`Rows::load`], [`Rows::save`], `settle` and `undo`. Tables are
//! loaded and written in the order in which they stand here, rows in the order of their keys: the one lock order of the program.

mod own;
mod relating;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::needs::Needs;
use super::table::Table;
use crate::broadcasts::{self, Notice, NoticeKey};
use crate::cache::{Change, Parts};
use crate::clock::UnixMs;
use crate::db::{Conn, DbResult};
use crate::events;
use crate::feed::{self, Post};
use crate::groups::{self, GroupMark};
use crate::heads::{self, Committed};
use crate::ids::{ClientId, UserId};
use crate::inbox;
use crate::marks::store::{self, User};
use crate::marks::{Kind, Mark, MarkKey, Stream, StreamKey};
use crate::notifications;
use crate::operations;
use crate::relations::{Fans, Follow, Own, Pair};
use crate::sheet;
use crate::views;

/// Who writes a batch, as its rows tell.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// The lane.
    pub lane_id: i64,
    /// The lane's number for it.
    pub batch: i64,
    /// To which slot of counts that are spread out the lane adds.
    pub slot: i64,
    /// When it is written.
    pub now: UnixMs,
}

/// All rows of a batch.
#[derive(Debug, Default)]
pub struct Rows {
    users: Table<UserId, User>,
    marks: Table<MarkKey, Mark>,
    heads: Table<StreamKey, Stream>,
    /// How many channels and dots there were before the batch, where it may make one.
    shared_counts: Vec<(Kind, i64)>,
    notices: Table<NoticeKey, Option<Notice>>,
    /// Users of whom all marks of a kind are to go.
    forgotten: Table<UserId, bool>,
    follows: Table<Pair, Option<Follow>>,
    /// Who blocks whom, and since when.
    blocks: Table<Pair, Option<UnixMs>>,
    /// What users' own relations count.
    own: Table<UserId, Own>,
    /// What is to be added to the counts of those who are followed: these rows are never loaded.
    fans: Table<UserId, Fans>,
    /// Writes that were accepted before they are done.
    pub operations: operations::store::Tables,
    /// What happened, for those who read along.
    events: events::Written,
    posts: Table<(UserId, ClientId), Option<Post>>,
    /// As they are stored; empty where there is none.
    snapshots: Table<UserId, Arc<[u8]>>,
    /// Notifications.
    pub notifications: notifications::store::Tables,
    /// Marks of views that make room for those that users visit for the first time.
    old_visits: BTreeMap<UserId, Vec<MarkKey>>,
    /// Things in views.
    pub view_items: views::store::Items,
    /// Groups, with their members and messages.
    pub groups: groups::store::Tables,
    /// How far the fan-out of groups is: the last lock of a batch.
    pub deliveries: groups::delivery::Deliveries,
    /// Inboxes and direct chats.
    pub inbox: inbox::store::Tables,
    /// The devices that read them.
    pub devices: inbox::devices::Devices,
    /// Users whose revision the present command has raised.
    revised: BTreeSet<UserId>,
}

impl Rows {
    /// Takes the locks that must come before everything else of a transaction.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn lock(conn: &mut Conn, needs: &Needs) -> DbResult<()> {
        Self::lock_pairs(conn, needs).await
    }

    /// Locks the users and the heads that may change, and loads what is needed.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn load(conn: &mut Conn, needs: &Needs) -> DbResult<Self> {
        let mut rows = Self::default();
        if !needs.marks.is_empty() {
            let keys: Vec<_> = needs.marks.iter().cloned().collect();
            let (users, marks) = store::lock_users_and_load_marks(conn, &needs.users(), &keys).await?;
            rows.users.insert_loaded(users);
            rows.marks.insert_loaded(marks);
        } else if !needs.users.is_empty() {
            rows.users.insert_loaded(store::lock_users(conn, &needs.users()).await?);
        }
        if !needs.heads.is_empty() {
            let keys: Vec<_> = needs.heads.iter().cloned().collect();
            rows.heads.insert_loaded(heads::store::lock(conn, &keys).await?);
            let may_be_new = |key: &StreamKey| matches!(key.kind, Kind::Broadcast | Kind::Dot) && rows.head(key).head == 0;
            if keys.iter().any(may_be_new) {
                rows.shared_counts = heads::store::count_shared(conn).await?;
            }
        }
        if !needs.notices.is_empty() {
            let keys: Vec<_> = needs.notices.iter().cloned().collect();
            rows.notices.insert_loaded(broadcasts::store::load(conn, &keys).await?);
        }
        if !needs.all_marks.is_empty() {
            let users: Vec<_> = needs.all_marks.iter().copied().collect();
            rows.marks.insert_loaded(store::load_marks_of_users(conn, &users).await?);
        }
        rows.load_old_visits(conn, needs).await?;
        rows.load_relations(conn, needs).await?;
        if !needs.posts.is_empty() {
            let keys: Vec<_> = needs.posts.iter().cloned().collect();
            rows.posts.insert_loaded(feed::store::load_posts(conn, &keys).await?);
        }
        if !needs.snapshots.is_empty() {
            let users: Vec<_> = needs.snapshots.iter().copied().collect();
            rows.snapshots.insert_loaded(feed::store::load_snapshots(conn, &users).await?);
        }
        rows.notifications.load(conn, &needs.notifications).await?;
        views::store::load(conn, &mut rows.view_items, &needs.view_items).await?;
        rows.groups.load(conn, &needs.groups).await?;
        rows.inbox.load(conn, &needs.inbox).await?;
        rows.devices.load(conn, &needs.devices).await?;
        rows.load_seen_heads(conn, needs).await?;
        groups::delivery::load(conn, &mut rows.deliveries, &needs.deliveries).await?;
        Ok(rows)
    }

    /// Those that are asked for, and those of whom a user may begin to follow, as what was posted before that is not to be counted; also where there is a
    /// follow, which a command before may take back. Of a user who was not seen yet, and will not be in this batch, no count begins before the enrolment, so
    /// there they can be left out; an import is mostly of such.
    async fn load_seen_heads(&mut self, conn: &mut Conn, needs: &Needs) -> DbResult<()> {
        let mut keys = needs.seen_heads.clone();
        let counts = |user: &UserId| self.user(*user).is_enrolled() || needs.enrolling.contains(user);
        let begins = |pair: &&Pair| needs.users.contains(&pair.follower) && counts(&pair.follower);
        keys.extend(needs.follows.iter().filter(begins).map(|pair| StreamKey::posts(pair.followee)));
        let keys: Vec<_> = keys.into_iter().filter(|key| !needs.heads.contains(key)).collect();
        if !keys.is_empty() {
            self.heads.insert_loaded(heads::store::load(conn, &keys).await?);
        }
        Ok(())
    }

    /// Writes what changed.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn save(&self, conn: &mut Conn, batch: Batch) -> DbResult<()> {
        let users = self.users.rows.iter().filter(|(_, (loaded, now))| loaded != now);
        let users: Vec<_> = users.map(|(user, (loaded, now))| (*user, *loaded, *now)).collect();
        if !users.is_empty() {
            store::save_users(conn, &users).await?;
        }
        let heads: Vec<_> = self.heads.changed().collect();
        if !heads.is_empty() {
            heads::store::save(conn, &heads, batch).await?;
        }
        let notices: Vec<_> = self.notices.changed().filter_map(|(key, notice)| Some((key, notice.as_ref()?))).collect();
        if !notices.is_empty() {
            broadcasts::store::save(conn, &notices).await?;
        }
        let forgotten: Vec<_> = self.forgotten.changed().flat_map(|(user, _)| sheet::FORGOTTEN.map(|kind| (*user, kind))).collect();
        if !forgotten.is_empty() {
            store::delete_marks_of_users(conn, &forgotten).await?;
            let users: Vec<_> = self.forgotten.changed().map(|(user, _)| *user).collect();
            feed::store::delete_snapshots(conn, &users).await?;
        }
        self.save_marks(conn).await?;
        self.save_relations(conn, batch.slot).await?;
        self.save_feeds(conn, batch).await?;
        self.notifications.save(conn).await?;
        views::store::save(conn, &self.view_items).await?;
        self.groups.save(conn, batch.now).await?;
        groups::delivery::save(conn, &self.deliveries, batch.now).await?;
        self.inbox.save(conn).await?;
        self.devices.save(conn).await?;
        self.operations.save(conn).await?;
        self.events.save(conn).await
    }

    async fn save_feeds(&self, conn: &mut Conn, batch: Batch) -> DbResult<()> {
        let posts: Vec<_> = self.posts.changed().filter_map(|(key, post)| Some((key, (*post)?))).collect();
        if !posts.is_empty() {
            feed::store::save_posts(conn, &posts, batch).await?;
        }
        let snapshots: Vec<_> = self.snapshots.changed().map(|(user, data)| (*user, Arc::clone(data))).collect();
        if !snapshots.is_empty() {
            feed::store::save_snapshots(conn, &snapshots).await?;
        }
        Ok(())
    }

    /// The head of a shared stream as it is now.
    #[must_use]
    pub fn head(&self, key: &StreamKey) -> Stream {
        self.heads.get(key)
    }

    /// How many channels, or dots, there are now. Known where a head that was asked for would be a new one's.
    #[must_use]
    pub fn shared_count(&self, kind: Kind) -> i64 {
        let before: i64 = self.shared_counts.iter().filter(|(of, _)| *of == kind).map(|(_, count)| count).sum();
        let is_new = |(key, (loaded, now)): &(&StreamKey, &(Stream, Stream))| key.kind == kind && loaded.head == 0 && now.head > 0;
        before.saturating_add(i64::try_from(self.heads.rows.iter().filter(is_new).count()).unwrap_or(i64::MAX))
    }

    /// Sets the head of a shared stream. No user's revision changes.
    pub fn set_head(&mut self, key: &StreamKey, stream: Stream) {
        self.heads.set(key, stream);
    }

    /// A notice as it is now.
    #[must_use]
    pub fn notice(&self, key: &NoticeKey) -> Option<Notice> {
        self.notices.get(key)
    }

    /// Writes a notice.
    pub fn set_notice(&mut self, key: &NoticeKey, notice: Notice) {
        self.notices.set(key, Some(notice));
    }

    /// What the batch changed of what users share.
    #[must_use]
    pub fn committed(&self) -> Committed {
        let board = self.heads.rows.get(&StreamKey::board()).filter(|(loaded, now)| loaded != now);
        let notice = |(key, notice): (&NoticeKey, &Option<Notice>)| {
            let Notice { position, expires_at, withdrawn, .. } = notice.as_ref()?;
            Some(((*key.channel).to_owned(), key.seq, *position, expires_at.0, i64::from(*withdrawn)))
        };
        Committed {
            heads: self.heads.changed().map(|(key, stream)| (key.clone(), stream.clone())).collect(),
            notices: self.notices.changed().filter_map(notice).collect(),
            board_before: board.map(|(loaded, _)| loaded.head),
        }
    }

    /// One post as it is now.
    #[must_use]
    pub fn post(&self, creator: UserId, post: &ClientId) -> Option<Post> {
        self.posts.get(&(creator, post.clone()))
    }

    /// Sets a post. The head of its creator's stream is the caller's to change.
    pub fn set_post(&mut self, creator: UserId, id: &ClientId, post: Post) {
        self.posts.set(&(creator, id.clone()), Some(post));
    }

    /// The snapshot of a user's feed as it is stored; empty where there is none.
    #[must_use]
    pub fn snapshot(&self, user: UserId) -> Arc<[u8]> {
        self.snapshots.get(&user)
    }

    /// Sets the snapshot of a user's feed. That the feed changed is to be said with [`Rows::feed_changed`].
    pub fn set_snapshot(&mut self, user: UserId, data: Arc<[u8]>) {
        self.snapshots.set(&user, data);
    }

    /// Tells those who read along what happened. Rows that only one may change at a time must be locked by then: their order is that of the events.
    pub fn event(&mut self, now: UnixMs, event: &events::Event) {
        self.events.add(now, event);
    }

    /// Whether anything happened that is told.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The command took effect: what it did stays.
    pub fn settle(&mut self) {
        self.users.settle();
        self.heads.settle();
        self.notices.settle();
        self.marks.settle();
        self.forgotten.settle();
        self.follows.settle();
        self.blocks.settle();
        self.own.settle();
        self.fans.settle();
        self.operations.settle();
        self.events.settle();
        self.posts.settle();
        self.snapshots.settle();
        self.notifications.settle();
        self.view_items.settle();
        self.groups.settle();
        self.deliveries.settle();
        self.inbox.settle();
        self.devices.settle();
        self.revised.clear();
    }

    /// The command was refused: everything is as before it.
    pub fn undo(&mut self) {
        self.users.undo();
        self.heads.undo();
        self.notices.undo();
        self.marks.undo();
        self.forgotten.undo();
        self.follows.undo();
        self.blocks.undo();
        self.own.undo();
        self.fans.undo();
        self.operations.undo();
        self.events.undo();
        self.posts.undo();
        self.snapshots.undo();
        self.notifications.undo();
        self.view_items.undo();
        self.groups.undo();
        self.deliveries.undo();
        self.inbox.undo();
        self.devices.undo();
        self.revised.clear();
    }

    /// What the batch did, for the cache: one change for each user that was needed, also where nothing changed.
    #[must_use]
    pub fn changes(&self, needs: &Needs) -> Vec<Change> {
        let mut parts: BTreeMap<UserId, Parts> = BTreeMap::new();
        for (key, mark) in self.marks.changed() {
            if let Some((field, value)) = sheet::part(key, mark) {
                parts.entry(key.user).or_default().insert(field, value);
            }
        }
        for (user, kind, unread) in self.notifications.changed_types() {
            parts.entry(user).or_default().extend([sheet::notification_part(kind, unread)]);
        }
        for (user, group, membership) in self.groups.changed_members() {
            let mark = membership.is_open().then(|| GroupMark::from(membership));
            parts.entry(user).or_default().extend([sheet::group_part(group, mark.as_ref())]);
        }
        for (user, (loaded, now)) in self.users.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            let more = sheet::user_parts(now).into_iter().zip(sheet::user_parts(loaded)).filter(|(now, loaded)| now != loaded);
            parts.entry(*user).or_default().extend(more.map(|(part, _)| part));
        }
        for (user, own) in self.own.changed() {
            parts.entry(*user).or_default().extend([sheet::lists_part(own.versions)]);
        }
        let change = |user: &UserId| {
            let (before, after) = self.users.rows.get(user).map_or((0, 0), |(loaded, now)| (loaded.revision, now.revision));
            let parts = parts.remove(user).unwrap_or_default();
            // The cache tells states apart by the revision alone.
            debug_assert!(after > before || parts.is_empty(), "user {user} at {before}: {parts:?}");
            Change { user: *user, before, after, parts }
        };
        needs.users.iter().map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Name;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn advanced(mark: &Mark, by: i64) -> Mark {
        let mut mark = mark.clone();
        mark.advance(by).unwrap();
        mark
    }

    #[test]
    fn a_refused_command_leaves_no_trace() {
        let (user, like, follow) = (UserId::try_from(1).unwrap(), name("like"), name("follow"));
        let mut rows = Rows::default();
        rows.set_mark(user, Kind::Counter, &like, advanced(&Mark::default(), 3));
        rows.settle();
        assert_eq!(rows.user(user), User { revision: 1, counters: 1, ..User::default() });

        let more = advanced(&rows.mark(user, Kind::Counter, &like), 2);
        rows.set_mark(user, Kind::Counter, &like, more);
        rows.set_mark(user, Kind::Counter, &follow, advanced(&Mark::default(), 1));
        assert_eq!(rows.user(user), User { revision: 2, counters: 2, ..User::default() }, "one revision for the whole command");
        rows.undo();
        assert_eq!(rows.user(user), User { revision: 1, counters: 1, ..User::default() });
        assert_eq!(rows.mark(user, Kind::Counter, &like).head(), 3);
        assert_eq!(rows.mark(user, Kind::Counter, &follow).head(), 0);

        let same = rows.mark(user, Kind::Counter, &like);
        rows.set_mark(user, Kind::Counter, &like, same);
        rows.settle();
        assert_eq!(rows.revision(user), 1, "what changes nothing is no new revision");
    }
}
