//! Views: pages, forums, channels that are read by visiting. Something new there is an item, which
//! raises the view's head by one; a visit moves the visitor's mark.
//!
//! A view costs a row, each item one, and each visitor one: nothing is kept of those who never
//! visited, to whom a view is 0. Marks of views are kept also of users who stay away; of one who
//! visits ever new views, the mark that was used least recently makes room ([`ViewConfig`]). A user
//! may have thousands of them, so they are not part of the user's entry in the cache: [`Reader`]
//! keeps those that were asked for, by the user's revision. So nothing of views grows in memory
//! with the number of users.
//!
//! What a user made itself does not count for it: the position is passed over in its mark, if it
//! has visited. `http.rs` has the routes, `store.rs` the rows of items, `expiry.rs` how long they
//! are kept.

mod config;
mod distributed;
pub mod erase;
pub mod expiry;
pub mod exported;
pub mod http;
pub mod rows;
pub mod store;
pub mod summary;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::config::ViewConfig;

use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::fingerprint::Fingerprint;
use crate::base::ids::{ClientId, Invalid, Name, UserId};
use crate::cache::Revision;
use crate::db::{Db, DbResult};
use crate::engine::entries::Entries;
use crate::engine::heads::{CachedHead, Heads, History, Versions};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::marks::store::read_marks;
use crate::engine::marks::{Kind, Mark, MarkKey, Stream, StreamKey};
use crate::features::views::rows::ViewRows;
use crate::features::views::rows::forget_old_visits;

/// How many views an unread summary may show.
pub const MAX_VIEWS: usize = 50;

/// How much the marks that a node keeps may weigh: 1 each, and 1 for each [`RUNS_PER_WEIGHT`] runs
/// of positions in it; and for how long one is kept.
const MAX_MARKS: u64 = 200_000;
const RUNS_PER_WEIGHT: usize = 8;
const MARK_TTL: Duration = Duration::from_secs(60);

const VIEW_RULE: Invalid = Invalid("must be a view name, ':' and an id, such as home:1");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewKey {
    /// What sort of view.
    pub view: Name,
    /// Which one of them.
    pub id: ClientId,
    /// Both, as rows have it: `home:1`. A name has no colon, so no two views share one.
    pub stream: Arc<str>,
}

impl ViewKey {
    /// This view.
    #[must_use]
    pub fn new(view: Name, id: ClientId) -> Self {
        let stream = format!("{view}:{id}").into();
        Self { view, id, stream }
    }

    fn head(&self) -> StreamKey {
        StreamKey::view(&self.stream)
    }

    fn mark(&self, user: UserId) -> MarkKey {
        MarkKey { user, kind: Kind::View, name: Arc::clone(&self.stream) }
    }
}

impl FromStr for ViewKey {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (view, id) = text.split_once(':').ok_or(VIEW_RULE)?;
        Ok(Self::new(view.parse()?, id.parse()?))
    }
}

/// An item after a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ViewItemOut {
    /// The item.
    pub item_id: ClientId,
    /// The name of the view.
    pub view: Name,
    /// The id of the view.
    pub view_id: ClientId,
    /// The number of items ever added to the view.
    #[schema(minimum = 1, example = 8)]
    pub head: i64,
}

/// The added items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ViewItemsOut {
    /// One result for each item, in the order of the request.
    pub items: Vec<ViewItemOut>,
}

/// A new item of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewItem {
    pub view: ViewKey,
    pub item: ClientId,
    /// Who made it.
    pub actor: Option<UserId>,
}

/// What a visit answers inside; where the batch does not hold what the number is counted from, the
/// route counts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Visited {
    unread: Option<i64>,
    head: i64,
    at: i64,
    revision: Revision,
}

/// A write to views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewCommand {
    /// Something new.
    Put(NewItem),
    /// New items of many views: all or nothing.
    PutMany(Vec<NewItem>),
    /// Something is gone.
    Delete {
        view: ViewKey,
        /// Which.
        item: ClientId,
    },
    /// A user visits.
    Access {
        user: UserId,
        view: ViewKey,
        /// How far the user has read; None: up to the head.
        up_to: Option<i64>,
        /// How many views are remembered of a user.
        keep: u32,
    },
}

impl lanes::Command for ViewCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Put(new) => need_new(needs, new),
            Self::PutMany(items) => items.iter().for_each(|new| need_new(needs, new)),
            Self::Delete { view, item } => {
                needs.head(view.head());
                needs.of::<ViewRows>().items.insert((Arc::clone(&view.stream), item.clone()));
            }
            // The head is not locked: what comes in the same moment comes after the visit. What the
            // user itself puts there waits for the user's own row, which is locked before the head
            // is looked at.
            Self::Access { user, view, keep, .. } => {
                needs.mark_at(view.mark(*user));
                needs.of::<ViewRows>().visits.insert(view.mark(*user), *keep);
                needs.seen_head(view.head());
            }
        }
    }

    fn lane_key(&self) -> i64 {
        match self {
            Self::Put(NewItem { view, .. }) | Self::Delete { view, .. } => key_of(view),
            Self::PutMany(items) => items.first().map_or(0, |new| key_of(&new.view)),
            Self::Access { user, .. } => user.get(),
        }
    }

    fn names(&self) -> Names {
        match self {
            Self::Put(new) => new.actor.map(|actor| (actor, "/actor_id".to_owned())).into_iter().collect(),
            Self::PutMany(items) => {
                let actors = items.iter().enumerate().filter_map(|(at, new)| Some((new.actor?, format!("/items/{at}/actor_id"))));
                actors.collect()
            }
            Self::Delete { .. } => Vec::new(),
            Self::Access { user, .. } => vec![in_path(*user)],
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::PutMany(items) => u32::try_from(items.len()).unwrap_or(u32::MAX),
            Self::Put(_) | Self::Delete { .. } | Self::Access { .. } => 1,
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Put(new) => {
                let (is_new, out) = put(rows, new, now)?;
                Ok(if is_new { Answer::created(out) } else { Answer::ok(out) })
            }
            Self::PutMany(items) => Ok(Answer::ok(put_many(rows, items, now)?)),
            Self::Delete { view, item } => {
                delete(rows, view, item)?;
                Ok(Answer::no_content())
            }
            Self::Access { user, view, up_to, .. } => Ok(Answer::ok(access(rows, *user, view, *up_to, now))),
        }
    }
}

fn need_new(needs: &mut Needs, new: &NewItem) {
    let NewItem { view, item, actor } = new;
    needs.head(view.head());
    needs.of::<ViewRows>().items.insert((Arc::clone(&view.stream), item.clone()));
    if let Some(actor) = actor {
        needs.mark_at(view.mark(*actor));
    }
}

/// By the view, whose head every change locks.
fn key_of(view: &ViewKey) -> i64 {
    let mut hasher = DefaultHasher::new();
    view.stream.hash(&mut hasher);
    hasher.finish().cast_signed()
}

/// Returns whether the item is new, and what it is now.
fn put(rows: &mut Rows, NewItem { view, item, actor }: &NewItem, now: UnixMs) -> Result<(bool, ViewItemOut), Problem> {
    let (key, at) = (view.head(), (Arc::clone(&view.stream), item.clone()));
    let mut stream = rows.head(&key);
    let out = |head| ViewItemOut { item_id: item.clone(), view: view.view.clone(), view_id: view.id.clone(), head };
    match rows.get::<ViewRows>().items.get(&at) {
        Some(known) if known.gone => return Err(Problem::new(Code::Gone, format!("Item {item} of {} was deleted.", view.stream))),
        Some(_) => return Ok((false, out(stream.head))),
        None => {}
    }
    let full = |_| Problem::new(Code::TooMany, "The view has reached the highest possible head, 2^53-1.");
    let seq = stream.advance(now).map_err(full)?;
    rows.set_head(&key, stream);
    rows.get_mut::<ViewRows>().items.set(&at, Some(store::Item { seq, actor: *actor, created_at: now, gone: false }));
    if let Some(actor) = *actor {
        let key = view.mark(actor);
        let mut mark = rows.mark_at(&key);
        // To one who never visited nothing counts.
        if has_visited(&mark) && mark.pass_over(seq) {
            rows.set_mark_at(&key, mark);
        }
    }
    Ok((true, out(seq)))
}

fn put_many(rows: &mut Rows, items: &[NewItem], now: UnixMs) -> Result<ViewItemsOut, Problem> {
    let put = |(at, new)| {
        let located = |problem: Problem| problem.at(format!("/items/{at}/item_id"), "cannot be added");
        put(rows, new, now).map(|(_, out)| out).map_err(located)
    };
    Ok(ViewItemsOut { items: items.iter().enumerate().map(put).collect::<Result<_, Problem>>()? })
}

fn delete(rows: &mut Rows, view: &ViewKey, item: &ClientId) -> Result<(), Problem> {
    let (key, at) = (view.head(), (Arc::clone(&view.stream), item.clone()));
    let unknown = || Problem::new(Code::NotFound, format!("Item {item} of {} does not exist.", view.stream));
    let there = rows.get::<ViewRows>().items.get(&at).ok_or_else(unknown)?;
    if !there.gone {
        rows.get_mut::<ViewRows>().items.set(&at, Some(store::Item { gone: true, ..there }));
        let mut stream = rows.head(&key);
        stream.retract(there.seq);
        rows.set_head(&key, stream);
    }
    Ok(())
}

fn has_visited(mark: &Mark) -> bool {
    mark.at > UnixMs(0)
}

fn access(rows: &mut Rows, user: UserId, view: &ViewKey, up_to: Option<i64>, now: UnixMs) -> Visited {
    let (key, stream) = (view.mark(user), rows.head(&view.head()));
    let mut mark = rows.mark_at(&key);
    if !has_visited(&mark) {
        forget_old_visits(rows, user);
    }
    // The first visit starts at the head, however far the visitor has read.
    let up_to = up_to.filter(|_| has_visited(&mark)).unwrap_or(stream.head);
    mark.read_shared(up_to.min(stream.head));
    mark.at = mark.at.max(UnixMs(now.0.max(1)));
    let visited = Visited { unread: unread(&stream, &mark), head: stream.head, at: mark.at.0, revision: 0 };
    rows.set_mark_at(&key, mark);
    Visited { revision: rows.revision(user), ..visited }
}

/// What is unread, where head and mark tell it.
fn unread(stream: &Stream, mark: &Mark) -> Option<i64> {
    if mark.untold() > mark.mark() { None } else { stream.unread(mark.mark(), mark.retracted()) }
}

/// The unread count of a view for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewCount {
    /// The view's name and id: `home:1`.
    pub stream: Arc<str>,
    /// How many items came since the last visit.
    pub unread: i64,
    /// The total number, including read and removed ones.
    pub head: i64,
    /// When the user was there last; None: never.
    pub at: Option<UnixMs>,
    /// The version of the view's head.
    pub version: i64,
}

impl ViewCount {
    /// Adds the view's head.
    pub fn add_to(&self, versions: &mut Versions) {
        let mut name = Fingerprint::default();
        name.add_bytes(self.stream.as_bytes());
        versions.add(Kind::View, name.finish(), self.version);
    }
}

/// A count, as far as a head in memory tells it.
struct Look {
    version: i64,
    head: i64,
    /// Of what lies up to here only the rows tell what does not count; not above the mark where
    /// there is no need to ask.
    floor: i64,
    /// What is unread above both.
    above: i64,
}

fn look(cached_head: &CachedHead, mark: &Mark) -> Look {
    // Once more only where the head was written meanwhile.
    loop {
        let version = cached_head.version();
        let head = cached_head.head();
        let floor = cached_head.floor().max(mark.untold()).max(mark.mark());
        if let Some(above) = cached_head.unread(floor, mark.retracted()).filter(|_| cached_head.version() == version) {
            // A node that is a little behind shows at least what the user has seen elsewhere.
            return Look { version, head: head.max(mark.mark()), floor, above };
        }
    }
}

/// Reads views: marks by the user's revision, heads from [`Heads`].
#[derive(Debug)]
pub struct Reader {
    db: Db,
    heads: Arc<Heads>,
    /// A mark does not change without the user's revision, so what is kept under one is at least as
    /// new as it.
    marks: moka::sync::Cache<KeptUnder, Arc<Mark>>,
}

/// Under what a mark is kept.
type KeptUnder = (UserId, Arc<str>, History, Revision);

impl Reader {
    #[must_use]
    pub fn new(db: Db, heads: Arc<Heads>) -> Self {
        let weigh = |_: &KeptUnder, mark: &Arc<Mark>| u32::try_from(1 + mark.retracted().runs() / RUNS_PER_WEIGHT).unwrap_or(u32::MAX);
        let marks = moka::sync::Cache::builder().weigher(weigh).max_capacity(MAX_MARKS).time_to_live(MARK_TTL).build();
        Self { db, heads, marks }
    }

    /// What the user has unread in these views, in their order, if no store needs to be asked.
    /// `revision` is the user's.
    #[must_use]
    pub fn count_here(&self, user: UserId, revision: Revision, views: &[ViewKey]) -> Option<Vec<ViewCount>> {
        let history = self.heads.history();
        let key = |view: &ViewKey| (user, Arc::clone(&view.stream), history, revision);
        let marks: Vec<_> = views.iter().map(|view| self.marks.get(&key(view))).collect::<Option<_>>()?;
        let cached_heads = self.heads.cached_heads_here(&heads_of(views))?;
        let count = |((view, cached_head), mark): ((&ViewKey, &Arc<CachedHead>), &Arc<Mark>)| {
            let look = look(cached_head, mark);
            if look.floor > mark.mark() && has_visited(mark) { None } else { Some(counted(view, mark, &look, 0)) }
        };
        views.iter().zip(&cached_heads).zip(&marks).map(count).collect()
    }

    /// The same, from the stores where need be; None where they cannot be asked now.
    pub async fn count_in_turn(&self, entries: &Entries, user: UserId, revision: Revision, views: &[ViewKey]) -> Option<Vec<ViewCount>> {
        match self.count_here(user, revision, views) {
            Some(counts) => Some(counts),
            None => entries.in_turn_or_none("views", self.count(user, revision, views)).await,
        }
    }

    /// The same, asking the stores.
    pub async fn count(&self, user: UserId, revision: Revision, views: &[ViewKey]) -> DbResult<Vec<ViewCount>> {
        let marks = self.read(user, revision, views).await?;
        let cached_heads = self.heads.cached_heads(&heads_of(views)).await?;
        let mut counts = Vec::with_capacity(views.len());
        for ((view, cached_head), mark) in views.iter().zip(&cached_heads).zip(&marks) {
            let look = look(cached_head, mark);
            let below = if look.floor > mark.mark() && has_visited(mark) {
                let passed = store::count_passed(&self.db, &view.stream, user, mark.mark(), look.floor).await?;
                (look.floor - mark.mark() - passed).max(0)
            } else {
                0
            };
            counts.push(counted(view, mark, &look, below));
        }
        Ok(counts)
    }

    async fn read(&self, user: UserId, revision: Revision, views: &[ViewKey]) -> DbResult<Vec<Arc<Mark>>> {
        let history = self.heads.history();
        let key = |view: &ViewKey| (user, Arc::clone(&view.stream), history, revision);
        let kept: Vec<_> = views.iter().map(|view| self.marks.get(&key(view))).collect();
        let missing: Vec<_> = views.iter().zip(&kept).filter(|(_, kept)| kept.is_none()).map(|(view, _)| view.mark(user)).collect();
        let found = if missing.is_empty() { Vec::new() } else { read_marks(&self.db, &missing).await? };
        let marks = views.iter().zip(kept).map(|(view, kept)| {
            kept.unwrap_or_else(|| {
                let mark = found.iter().find(|(found, _)| found.name == view.stream).map(|(_, mark)| mark.clone());
                let mark = Arc::new(mark.unwrap_or_default());
                self.marks.insert(key(view), Arc::clone(&mark));
                mark
            })
        });
        Ok(marks.collect())
    }
}

fn heads_of(views: &[ViewKey]) -> Vec<StreamKey> {
    views.iter().map(ViewKey::head).collect()
}

/// `below` is what is unread where only the rows tell it.
fn counted(view: &ViewKey, mark: &Mark, look: &Look, below: i64) -> ViewCount {
    let at = Some(mark.at).filter(|_| has_visited(mark));
    let unread = if at.is_some() { look.above + below } else { 0 };
    ViewCount { stream: Arc::clone(&view.stream), unread, head: look.head, at, version: look.version }
}

#[cfg(test)]
mod tests;
