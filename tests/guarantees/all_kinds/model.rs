//! What must be so, said as naively as it can be: of each stream the list of all that ever happened
//! in it, and of each thing who has yet to read it.
//!
//! There are no heads, marks, floors or enrolments here: what somebody who was not seen yet does
//! not get, or has seen by following later, is simply not in the set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::support::NotificationList;

/// How many users a case has. The last of them is not seen at first.
pub const USERS: usize = 4;

/// The badges of counters; new followers raise the first, and new requests the second.
pub const BADGES: [&str; 2] = ["follow", "like"];

/// The ids of what a new follower raises, and a new request.
const FAN: &str = "fan";
const ASK: &str = "ask";

/// The types of notifications.
pub const TYPES: [&str; 2] = ["mail", "notice"];

/// What they are grouped by.
pub const GROUP_KEYS: [&str; 2] = ["post:1", "post:2"];

/// One thing that happened: at its place in the list of its stream for ever.
#[derive(Debug, Clone, Default)]
pub struct Thing {
    /// The id that it was made with, or was given.
    pub id: String,
    /// Who made it.
    pub by: usize,
    /// Whether it is gone for everybody.
    pub gone: bool,
    /// Whether its badge, channel or dot was deleted since: where it was of all things, there is none.
    pub deleted: bool,
    /// From when on it is gone by itself.
    pub expires_at: Option<i64>,
    /// To whom it was sent.
    pub to: BTreeSet<usize>,
    /// Who has yet to read it.
    pub unread_by: BTreeSet<usize>,
    /// To whom it shows as unread again, though it was read.
    pub again_by: BTreeSet<usize>,
    /// Of a message in a group: whom it mentions, but for the one who made it.
    pub mentions: BTreeSet<usize>,
    /// Of a direct message: its number in the receiver's inbox and in the sender's, as the answer
    /// told them, and whether the receiver has ever read it.
    pub seq: i64,
    pub own_seq: i64,
    pub was_read: bool,
    /// Of a message in a group: whether it was put into inboxes, when it was sent, and whether it is
    /// kept no longer.
    pub written: bool,
    pub sent_at: i64,
    pub expired: bool,
    /// Of any message: when it was sent, as the answer told it; who has read it as its sender may be
    /// told, which unread again and leaving do not change; and who hides that.
    pub told_at: String,
    pub receipts_of: BTreeSet<usize>,
    pub hidden_by: BTreeSet<usize>,
}

impl Thing {
    /// A thing that these have yet to read.
    pub fn unread_by(users: impl IntoIterator<Item = usize>) -> Self {
        Self { unread_by: users.into_iter().collect(), ..Self::default() }
    }

    /// Whether a user has yet to read it, or shows it as unread again.
    pub fn is_unread_to(&self, user: usize) -> bool {
        !self.gone && (self.unread_by.contains(&user) || self.again_by.contains(&user))
    }

    /// A user reads it.
    pub fn read_by(&mut self, user: usize) {
        self.unread_by.remove(&user);
        self.again_by.remove(&user);
    }
}

/// How many of these a user has yet to read.
pub fn unread(things: &[Thing], user: usize) -> usize {
    things.iter().filter(|thing| thing.is_unread_to(user)).count()
}

/// What they are in is deleted.
pub fn delete(things: &mut [Thing]) {
    things.iter_mut().for_each(|thing| (thing.gone, thing.deleted) = (true, true));
}

/// Whether what these are in is there.
fn is_there(things: &[Thing]) -> bool {
    things.iter().any(|thing| !thing.deleted)
}

/// A user reads the first so many of these.
pub fn read(things: &mut [Thing], user: usize, up_to: usize) {
    things.iter_mut().take(up_to).for_each(|thing| thing.read_by(user));
}

/// A view, with who has visited it, and when last.
#[derive(Debug, Default)]
pub struct View {
    pub items: Vec<Thing>,
    pub visits: BTreeMap<usize, String>,
}

/// A notification that was sent.
#[derive(Debug)]
pub struct Notification {
    pub id: String,
    pub to: BTreeSet<usize>,
    pub title: String,
    pub withdrawn: bool,
}

/// A group.
#[derive(Debug, Default)]
pub struct Group {
    /// Whether messages are put into inboxes.
    pub writes: bool,
    pub messages: Vec<Thing>,
    /// Who is a member, and how many messages there were when that began.
    pub members: BTreeMap<usize, usize>,
    /// When each became one, as the answer told it.
    pub joined_at: BTreeMap<usize, String>,
    /// What counts in the sums of whom, and until when: everything where nothing is said.
    pub levels: BTreeMap<usize, (&'static str, Option<i64>)>,
}

/// What a group is to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownGroup {
    pub unread: usize,
    pub mentions: usize,
    pub head: usize,
    pub first: Option<usize>,
    pub level: &'static str,
}

impl ShownGroup {
    /// What of it counts in sums.
    fn counted(&self) -> usize {
        match self.level {
            "all" => self.unread,
            "mentions" => self.mentions,
            _ => 0,
        }
    }
}

impl Group {
    fn shown_to(&self, user: usize, now: i64) -> ShownGroup {
        let is_unread = |thing: &Thing| thing.is_unread_to(user);
        let is_mention = |thing: &&Thing| is_unread(thing) && thing.mentions.contains(&user);
        let level = self.levels.get(&user).filter(|(_, until)| until.is_none_or(|until| until > now));
        ShownGroup {
            unread: unread(&self.messages, user),
            mentions: self.messages.iter().filter(is_mention).count(),
            head: self.messages.len(),
            first: self.messages.iter().position(is_unread).map(|at| at + 1),
            level: level.map_or("all", |(level, _)| level),
        }
    }
}

/// What a group has put into somebody's inbox: which message, and whether it was to say that it is
/// recalled.
pub type Delivered = (usize, bool);

/// All of a case.
#[derive(Debug, Default)]
pub struct Model {
    /// Who was seen.
    pub seen: BTreeSet<usize>,
    /// What time it is, where the nodes have no clock of their own.
    pub now: i64,
    pub counters: BTreeMap<(usize, &'static str), Vec<Thing>>,
    pub channels: BTreeMap<String, Vec<Thing>>,
    pub dots: BTreeMap<String, Vec<Thing>>,
    pub posts: BTreeMap<usize, Vec<Thing>>,
    /// Who follows whom: in secret, as somebody special.
    pub follows: BTreeMap<(usize, usize), (bool, bool)>,
    /// The same of who has asked to, in the order in which they did.
    pub requests: Vec<((usize, usize), (bool, bool))>,
    /// Who approves follows.
    pub approving: BTreeSet<usize>,
    pub blocks: BTreeSet<(usize, usize)>,
    /// Who mutes whom, and until when.
    pub mutes: BTreeMap<(usize, usize), Option<i64>>,
    pub views: BTreeMap<String, View>,
    pub notifications: Vec<Notification>,
    /// Of each user.
    pub lists: [NotificationList; USERS],
    pub groups: BTreeMap<i64, Group>,
    /// Where to ask what came of the deletion of each group that was deleted.
    pub deleted_groups: BTreeMap<i64, String>,
    /// Of each receiver and sender.
    pub directs: BTreeMap<(usize, usize), Vec<Thing>>,
    /// The last message that each user has read in each direct chat.
    pub direct_read: BTreeMap<(usize, usize), i64>,
    /// Who shares no receipts.
    pub hides: BTreeSet<usize>,
    /// The chats that count in no sum, and until when.
    pub silent_directs: BTreeMap<(usize, usize), Option<i64>>,
    /// Of each user and group.
    pub inboxes: BTreeMap<(usize, i64), Vec<Delivered>>,
    /// What the total of each user leaves out.
    pub left_out: BTreeMap<usize, BTreeSet<String>>,
}

impl Model {
    /// Whom a user follows, or who follows it.
    pub fn following(&self, user: usize) -> BTreeSet<usize> {
        self.follows.keys().filter(|(follower, _)| *follower == user).map(|(_, followee)| *followee).collect()
    }

    pub fn followers(&self, user: usize) -> BTreeSet<usize> {
        self.follows.keys().filter(|(_, followee)| *followee == user).map(|(follower, _)| *follower).collect()
    }

    /// A user follows another, or has asked to, who did not know that yet.
    fn raise_badge(&mut self, (user, other): (usize, usize), (badge, id): (&'static str, &str)) {
        let new = Thing { id: id.to_owned(), by: user, ..Thing::unread_by([other]) };
        self.counters.entry((other, badge)).or_default().push(new);
    }

    fn take_back(&mut self, (user, other): (usize, usize), (badge, id): (&'static str, &str)) {
        let things = self.counters.entry((other, badge)).or_default();
        things.iter_mut().rfind(|thing| thing.id == id && thing.by == user).unwrap().gone = true;
    }

    /// How a user has asked to follow another.
    fn request(&self, pair: (usize, usize)) -> Option<(bool, bool)> {
        self.requests.iter().find(|(of, _)| *of == pair).map(|(_, options)| *options)
    }

    /// A user follows another, or asks to, like this. How it is then.
    pub fn follow(&mut self, pair: (usize, usize), secret: Option<bool>, special: Option<bool>) -> (bool, bool) {
        let (follow, request) = (self.follows.get(&pair).copied(), self.request(pair));
        let before = follow.or(request).unwrap_or_default();
        let options = (secret.unwrap_or(before.0), special.unwrap_or(before.1));
        if follow.is_some() || !self.approving.contains(&pair.1) {
            self.end_request(pair);
            if self.follows.insert(pair, options).is_none() {
                self.raise_badge(pair, (BADGES[0], FAN));
            }
        } else if let Some((_, of)) = self.requests.iter_mut().find(|(of, _)| *of == pair) {
            *of = options;
        } else {
            self.requests.push((pair, options));
            self.raise_badge(pair, (BADGES[1], ASK));
        }
        options
    }

    /// A request is there no longer. How it was, if it was there.
    pub fn end_request(&mut self, pair: (usize, usize)) -> Option<(bool, bool)> {
        let options = self.request(pair)?;
        self.requests.retain(|(of, _)| *of != pair);
        self.take_back(pair, (BADGES[1], ASK));
        Some(options)
    }

    /// A request is accepted, if it is there.
    pub fn accept(&mut self, pair: (usize, usize)) -> bool {
        let Some(options) = self.end_request(pair) else { return false };
        self.follows.insert(pair, options);
        self.raise_badge(pair, (BADGES[0], FAN));
        true
    }

    /// A user follows another no longer: what that one posted is nothing to it, and it is no new
    /// follower, and has not asked.
    pub fn unfollow(&mut self, user: usize, other: usize) {
        self.end_request((user, other));
        self.remove_follower(user, other);
    }

    /// The same, but for a request.
    pub fn remove_follower(&mut self, user: usize, other: usize) {
        if self.follows.remove(&(user, other)).is_some() {
            self.take_back((user, other), (BADGES[0], FAN));
        }
        read(self.posts.entry(other).or_default(), user, usize::MAX);
    }

    /// It is later: what has expired by now is gone.
    pub fn pass(&mut self, now: i64) {
        self.now = now;
        let notices = self.channels.values_mut().flatten();
        notices.filter(|notice| notice.expires_at.is_some_and(|at| at <= now)).for_each(|notice| notice.gone = true);
        self.silent_directs.retain(|_, until| until.is_none_or(|until| until > now));
        self.mutes.retain(|_, until| until.is_none_or(|until| until > now));
    }

    /// Whether a user is shown nothing of another one.
    pub fn is_silenced(&self, user: usize, other: usize) -> bool {
        self.blocks.contains(&(user, other)) || self.mutes.contains_key(&(user, other))
    }

    /// Whom a user mutes.
    pub fn muted_by(&self, user: usize) -> BTreeSet<usize> {
        self.mutes.keys().filter(|(by, _)| *by == user).map(|(_, other)| *other).collect()
    }

    /// A user's groups, as its list shows them.
    pub fn groups_of(&self, user: usize) -> BTreeMap<i64, ShownGroup> {
        let mine = self.groups.iter().filter(|(_, group)| group.members.contains_key(&user));
        mine.map(|(id, group)| (*id, group.shown_to(user, self.now))).collect()
    }

    /// From whom a user has direct messages that it has not read: how many, and whether the chat
    /// counts in no sum.
    pub fn directs_of(&self, user: usize) -> BTreeMap<usize, (usize, bool)> {
        let mine = self.directs.iter().filter(|((receiver, _), _)| *receiver == user);
        let silent = |chat: (usize, usize)| self.silent_directs.contains_key(&chat) || self.is_silenced(chat.0, chat.1);
        let counted = mine.map(|((_, sender), things)| (*sender, (unread(things, user), silent((user, *sender)))));
        counted.filter(|(_, (unread, _))| *unread > 0).collect()
    }

    fn feed(&self, user: usize) -> usize {
        self.posts.iter().filter(|(by, _)| !self.is_silenced(user, **by)).map(|(_, posts)| unread(posts, user)).sum()
    }

    fn chats(&self, user: usize) -> (usize, usize, usize, usize) {
        let heard = self.groups_of(user).into_values().filter(|group| group.level != "none");
        let mentions = heard.map(|group| group.mentions).sum();
        let groups: Vec<_> = self.groups_of(user).values().map(ShownGroup::counted).filter(|counted| *counted > 0).collect();
        let directs: Vec<_> = self.directs_of(user).into_values().filter(|(_, muted)| !muted).collect();
        let sum = groups.iter().sum::<usize>() + directs.iter().map(|(unread, _)| unread).sum::<usize>();
        (sum, mentions, groups.len(), directs.len())
    }

    /// How many have read a notification.
    pub fn readers(&self, id: &str) -> usize {
        self.lists.iter().filter(|list| list.has_read(id)).count()
    }

    /// How many the user follows, and so on, as a service is told.
    pub fn relation_counts(&self, user: usize) -> Value {
        let public = |pair: &(usize, usize)| self.follows.get(pair).is_some_and(|(secret, _)| !secret);
        let own = || self.follows.iter().filter(|((follower, _), _)| *follower == user);
        json!({
            "following": own().count(),
            "followers": self.followers(user).len(),
            "mutuals": self.following(user).iter().filter(|other| public(&(user, **other)) && public(&(**other, user))).count(),
            "secret": own().filter(|(_, (secret, _))| *secret).count(),
            "special": own().filter(|(_, (_, special))| *special).count(),
            "blocked": self.blocks.iter().filter(|(blocker, _)| *blocker == user).count(),
            "requests": self.requests.iter().filter(|((_, other), _)| *other == user).count(),
            "requests_sent": self.requests.iter().filter(|((asking, _), _)| *asking == user).count(),
        })
    }

    /// A user's unread summary, without id and revision; `views` only where they were asked for.
    pub fn summary(&self, user: usize, views: bool) -> Value {
        let counted = |things: &[Thing]| json!({"unread": unread(things, user), "head": things.len()});
        let mine = self.counters.iter().filter(|((owner, _), things)| *owner == user && is_there(things));
        let counters: Map<_, _> = mine.map(|((_, badge), things)| ((*badge).to_owned(), counted(things))).collect();
        let channels = self.channels.iter().filter(|(_, notices)| is_there(notices));
        let channels: Map<_, _> = channels.map(|(name, notices)| (name.clone(), counted(notices))).collect();
        let dots = self.dots.iter().filter(|(_, lights)| is_there(lights));
        let dots = dots.map(|(name, lights)| (name.clone(), json!({"lit": unread(lights, user) > 0, "head": lights.len()})));
        let (chats, mentions, groups, directs) = self.chats(user);
        let notifications = self.lists[user].summary().as_object().unwrap().clone();
        let counts = |part: String| !self.left_out.get(&user).is_some_and(|parts| parts.contains(&part));
        let sum = |kind: &str, parts: &Map<String, Value>| {
            let parts = parts.iter().filter(|(name, _)| counts(format!("{kind}.{name}")));
            parts.map(|(_, value)| value["unread"].as_u64().unwrap()).sum::<u64>()
        };
        let parts = [("counters", &counters), ("broadcasts", &channels), ("notifications", &notifications)];
        let total = parts.map(|(kind, parts)| sum(kind, parts)).iter().sum::<u64>() + u64::try_from(chats).unwrap();
        let mut summary = json!({
            "degraded": false, "total": total,
            "counters": counters,
            "broadcasts": channels,
            "dots": dots.collect::<Map<_, _>>(),
            "feed": {"unread": self.feed(user)},
            "chats": {"unread": chats, "mentions": mentions, "groups": groups, "directs": directs},
            "notifications": notifications,
        });
        if views {
            summary["views"] = self.views.iter().map(|(name, view)| (name.clone(), view.shown_to(user))).collect::<Map<_, _>>().into();
        }
        summary
    }
}

impl View {
    fn shown_to(&self, user: usize) -> Value {
        let mut shown = json!({"unread": unread(&self.items, user), "head": self.items.len()});
        if let Some(at) = self.visits.get(&user) {
            shown["last_access_at"] = json!(at);
        }
        shown
    }
}
