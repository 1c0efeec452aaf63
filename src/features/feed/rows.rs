//! Posts and snapshots of feeds in a batch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join3;

use super::{Followed, Post, Snapshot, store};
use crate::base::ids::{ClientId, UserId};
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, Needs, RowSet, Table};
use crate::engine::marks::StreamKey;
use crate::engine::pairs::need_named;

/// The rows of feeds in a batch.
#[derive(Debug, Default)]
pub struct FeedRows {
    posts: Table<(UserId, ClientId), Option<Post>>,
    /// As they are stored; empty where there is none.
    snapshots: Table<UserId, Arc<[u8]>>,
    /// Whom users follow, where that is no longer what was read for a look. It stays, as the users' own
    /// rows are locked.
    pub(super) followees: BTreeMap<UserId, BTreeSet<UserId>>,
}

/// Which of these rows a batch needs.
#[derive(Debug, Default)]
pub struct FeedNeeds {
    posts: BTreeSet<(UserId, ClientId)>,
    snapshots: BTreeSet<UserId>,
    /// Users who look at their feeds, each with the version of the list that was read for it.
    looks: BTreeSet<(UserId, i64)>,
}

/// A post, and with it the head of its creator's stream, whose lock guards all posts of the
/// creator.
pub fn need_post(needs: &mut Needs, creator: UserId, post: ClientId) {
    needs.head(StreamKey::posts(creator));
    need_named(needs, creator);
    needs.of::<FeedRows>().posts.insert((creator, post));
}

/// The snapshot of a user's feed, and with it the user's own row, whose lock guards it.
pub fn need_snapshot(needs: &mut Needs, user: UserId) {
    needs.user(user);
    needs.of::<FeedRows>().snapshots.insert(user);
}

/// The same for a look; and whom the user follows, where that is no longer what was read for the look.
pub fn need_look(needs: &mut Needs, user: UserId, followed: &Followed) {
    need_snapshot(needs, user);
    needs.of::<FeedRows>().looks.insert((user, followed.version));
}

impl FeedNeeds {
    /// The users whose lists are no longer those that were read.
    fn changed_lists(&self, core: &Core) -> Vec<UserId> {
        let changed = self.looks.iter().filter(|(user, version)| core.user(*user).feed != *version);
        changed.map(|(user, _)| *user).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl FeedRows {
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

    /// The heads of those creators whom the user still followed when the batch began.
    #[must_use]
    pub fn still_followed(&self, user: UserId, heads: &Snapshot) -> Snapshot {
        match self.followees.get(&user) {
            Some(followees) => Snapshot::new(heads.iter().filter(|(creator, _)| followees.contains(creator)).collect()),
            // The batch began with the list that was read.
            None => heads.clone(),
        }
    }

    /// Sets the snapshot of a user's feed. That the feed changed is to be said with
    /// [`Core::feed_changed`].
    pub fn set_snapshot(&mut self, user: UserId, data: Arc<[u8]>) {
        self.snapshots.set(&user, data);
    }
}

impl RowSet for FeedRows {
    type Needs = FeedNeeds;

    fn statements() -> Vec<&'static Statement> {
        store::statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, core: &Core, needs: &FeedNeeds) -> DbResult<()> {
        let keys: Vec<_> = needs.posts.iter().cloned().collect();
        let users: Vec<_> = needs.snapshots.iter().copied().collect();
        let changed = needs.changed_lists(core);
        let posts = async { if keys.is_empty() { Ok(Vec::new()) } else { store::load_posts(pipeline, &keys).await } };
        let snapshots = async { if users.is_empty() { Ok(Vec::new()) } else { store::load_snapshots(pipeline, &users).await } };
        let followees = async { if changed.is_empty() { Ok(Vec::new()) } else { store::load_followees(pipeline, &changed).await } };
        let (posts, snapshots, followees) = try_join3(posts, snapshots, followees).await?;
        self.posts.insert_loaded(posts);
        self.snapshots.insert_loaded(snapshots);
        // Also of a user who follows nobody.
        self.followees = changed.into_iter().map(|user| (user, BTreeSet::new())).collect();
        followees.into_iter().for_each(|(user, creator)| {
            self.followees.entry(user).or_default().insert(creator);
        });
        Ok(())
    }

    async fn save(&self, conn: &mut Conn, core: &Core, batch: Batch) -> DbResult<()> {
        let forgotten: Vec<_> = core.forgotten().collect();
        if !forgotten.is_empty() {
            store::delete_snapshots(conn, &forgotten).await?;
        }
        let posts: Vec<_> = self.posts.changed().filter_map(|(key, post)| Some((key, (*post)?))).collect();
        if !posts.is_empty() {
            store::save_posts(conn, &posts, batch).await?;
        }
        let snapshots: Vec<_> = self.snapshots.changed().map(|(user, data)| (*user, Arc::clone(data))).collect();
        if !snapshots.is_empty() {
            store::save_snapshots(conn, &snapshots).await?;
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.posts.settle();
        self.snapshots.settle();
    }

    fn undo(&mut self) {
        self.posts.undo();
        self.snapshots.undo();
    }
}
