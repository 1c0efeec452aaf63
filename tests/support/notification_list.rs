//! A user's list of notifications as naively as it can be said: entries, and of each the
//! notifications that are left in it. Every number is a count of them.

use std::collections::BTreeMap;

/// A notification in an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    pub id: String,
    pub actor: Option<i64>,
}

/// An entry of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListEntry {
    /// Its first notification.
    pub id: String,
    pub seq: usize,
    pub kind: &'static str,
    pub group_key: Option<&'static str>,
    /// In the order in which they came.
    pub holds: Vec<Held>,
    pub read: bool,
    pub gone: bool,
}

impl ListEntry {
    fn is_unread(&self) -> bool {
        !self.read && !self.gone
    }

    /// How many actors it has, and the newest three of them.
    fn actors(&self) -> (usize, Vec<i64>) {
        let mut newest = Vec::new();
        for actor in self.holds.iter().rev().filter_map(|held| held.actor) {
            if !newest.contains(&actor) {
                newest.push(actor);
            }
        }
        let nobodies = self.holds.iter().filter(|held| held.actor.is_none()).count();
        (newest.len() + nobodies, newest.into_iter().take(3).collect())
    }
}

/// An entry as a list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownEntry {
    pub id: String,
    pub seq: usize,
    pub count: usize,
    pub actors: Vec<i64>,
    pub newest: String,
    pub seen: bool,
    pub read: bool,
}

impl ShownEntry {
    /// As a response has it.
    pub fn of(item: &serde_json::Value) -> Self {
        let text = |field: &str| item[field].as_str().unwrap().to_owned();
        let number = |field: &str| usize::try_from(item[field].as_u64().unwrap()).unwrap();
        let actors = item["actors"].as_array().unwrap().iter().map(|actor| actor.as_str().unwrap().parse().unwrap());
        Self {
            id: text("id"),
            seq: number("seq"),
            count: number("count"),
            actors: actors.collect(),
            newest: text("notification_id"),
            seen: item["seen"].as_bool().unwrap(),
            read: item.get("read_at").is_some(),
        }
    }
}

/// A user's list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NotificationList {
    pub entries: Vec<ListEntry>,
    /// The last seq.
    pub last: usize,
    /// Up to which seq the user has seen it.
    pub seen: usize,
}

impl NotificationList {
    pub fn entry(&self, id: &str) -> Option<&ListEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// What is in the list.
    fn listed(&self) -> impl Iterator<Item = &ListEntry> {
        self.entries.iter().filter(|entry| !entry.gone)
    }

    pub fn send(&mut self, id: &str, kind: &'static str, group_key: Option<&'static str>, actor: Option<i64>) {
        self.last += 1;
        let held = Held { id: id.to_owned(), actor };
        let joins = |entry: &&mut ListEntry| group_key.is_some() && (entry.kind, entry.group_key) == (kind, group_key) && entry.is_unread();
        match self.entries.iter_mut().filter(joins).max_by_key(|entry| entry.seq) {
            Some(open) => {
                open.seq = self.last;
                open.holds.push(held);
            }
            None => {
                let (id, seq) = (id.to_owned(), self.last);
                self.entries.push(ListEntry { id, seq, kind, group_key, holds: vec![held], read: false, gone: false });
            }
        }
    }

    /// A notification leaves it.
    pub fn withdraw(&mut self, id: &str) {
        for entry in &mut self.entries {
            entry.holds.retain(|held| held.id != id);
            entry.gone |= entry.holds.is_empty();
        }
    }

    pub fn delete(&mut self, id: &str) {
        self.entries.iter_mut().filter(|entry| entry.id == id).for_each(|entry| entry.gone = true);
    }

    pub fn mark(&mut self, id: &str, read: bool) {
        self.entries.iter_mut().filter(|entry| entry.id == id).for_each(|entry| entry.read = read);
    }

    /// Reads those that are meant, and returns how many that were.
    pub fn read(&mut self, up_to: Option<usize>, meant: impl Fn(&ListEntry) -> bool) -> usize {
        let up_to = up_to.unwrap_or(usize::MAX);
        let these = self.entries.iter_mut().filter(|entry| entry.is_unread() && entry.seq <= up_to && meant(entry));
        these.map(|entry| entry.read = true).count()
    }

    pub fn see(&mut self, up_to: Option<usize>) {
        self.seen = self.seen.max(up_to.unwrap_or(usize::MAX).min(self.last));
    }

    /// Whether the user has read a notification.
    pub fn has_read(&self, id: &str) -> bool {
        self.entries.iter().any(|entry| entry.read && entry.holds.iter().any(|held| held.id == id))
    }

    /// Whether the list shows an entry with this notification in it.
    pub fn shows(&self, id: &str) -> bool {
        self.listed().any(|entry| entry.holds.iter().any(|held| held.id == id))
    }

    /// Of each type that the user ever had: how many are unread, and how many of these unseen.
    pub fn numbers(&self) -> BTreeMap<&'static str, (usize, usize)> {
        let mut types = BTreeMap::new();
        for entry in &self.entries {
            let (unread, unseen): &mut (usize, usize) = types.entry(entry.kind).or_default();
            *unread += usize::from(entry.is_unread());
            *unseen += usize::from(entry.is_unread() && entry.seq > self.seen);
        }
        types
    }

    /// The numbers as a summary shows them.
    pub fn summary(&self) -> serde_json::Value {
        let shown =
            |(kind, (unread, unseen)): (&'static str, _)| (kind.to_owned(), serde_json::json!({"unread": unread, "unseen": unseen}));
        serde_json::Value::Object(self.numbers().into_iter().map(shown).collect())
    }

    /// What a list of this status shows.
    pub fn shown(&self, status: &str) -> Vec<ShownEntry> {
        let meant = |entry: &&ListEntry| match status {
            "unread" => !entry.read,
            "unseen" => !entry.read && entry.seq > self.seen,
            "read" => entry.read,
            _ => true,
        };
        let mut listed: Vec<_> = self.listed().filter(meant).collect();
        listed.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.seq));
        let show = |entry: &ListEntry| {
            let (count, actors) = entry.actors();
            let (seen, newest) = (entry.read || entry.seq <= self.seen, entry.holds.last().unwrap().id.clone());
            ShownEntry { id: entry.id.clone(), seq: entry.seq, count, actors, newest, seen, read: entry.read }
        };
        listed.into_iter().map(show).collect()
    }
}
