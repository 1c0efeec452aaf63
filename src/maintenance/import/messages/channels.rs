//! Which group each channel is.
//!
//! A number is the group of that number. A name is the group that an import gave it before, else it
//! gets an id that no group has. So that two channels do not end up in one group, a number is refused
//! whose group has a name, and the lines of a channel whose name a group has are held until it is
//! known to be the same channel ([`Held`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tokio::runtime::Handle;

use super::held::{Admitted, Held};
use super::import::LogImport;
use super::lookup::Lookup;
use crate::base::ids::GroupId;
use crate::db::Db;
use crate::features::groups::import::{LogStep, store};
use crate::maintenance::import::field::shown;

/// How many channels with names a file may have.
const MAX_CHANNELS: usize = 1_000_000;

/// How long the name of a channel may be.
const MAX_NAME_BYTES: usize = 500;

/// Which group each channel is.
pub(super) struct Channels {
    lookup: Lookup,
    id_offset: i64,
    merge: bool,
    next: i64,
    by_name: BTreeMap<Arc<str>, GroupId>,
    /// The names in the order in which they came.
    named: Vec<(Arc<str>, GroupId)>,
    /// Groups that are channels with names, also of other logs.
    names: HashMap<GroupId, Arc<str>>,
    /// Those that have numbers of their own.
    numbered: HashSet<GroupId>,
    held: Held,
}

impl Channels {
    pub(super) fn new(import: &LogImport, db: Db, runtime: Handle) -> Self {
        Self {
            lookup: Lookup::new(db, runtime),
            id_offset: import.id_offset,
            merge: import.merge,
            next: import.first_group_id,
            by_name: BTreeMap::new(),
            named: Vec::new(),
            names: HashMap::new(),
            numbered: HashSet::new(),
            held: Held::new(),
        }
    }

    /// The group of each channel that has a name, and whether its lines are imported.
    pub(super) fn named(&self) -> Vec<(String, GroupId, bool)> {
        let named = |(name, group): &(Arc<str>, GroupId)| (name.to_string(), *group, !self.held.is_foreign(*group));
        self.named.iter().map(named).collect()
    }

    /// The name of a group's channel, where it has one.
    pub(super) fn name(&self, group: GroupId) -> Option<Arc<str>> {
        self.names.get(&group).cloned()
    }

    /// The group of a channel.
    ///
    /// # Errors
    /// A sentence: why a line of it cannot be taken.
    pub(super) fn group(&mut self, channel: &str) -> Result<GroupId, String> {
        if channel.is_empty() {
            return Err("has no channel".to_owned());
        }
        if let Some(group) = self.by_name.get(channel) {
            return Ok(*group);
        }
        if let Ok(number) = channel.parse::<i64>() {
            return self.numbered(number);
        }
        if channel.len() > MAX_NAME_BYTES || channel.contains('\0') {
            return Err(format!("has '{}' as channel, which has U+0000 or more than {MAX_NAME_BYTES} bytes", shown(channel)));
        }
        if self.named.len() >= MAX_CHANNELS {
            return Err(format!("has a channel beyond the {MAX_CHANNELS}th"));
        }
        let group = match self.find(channel)? {
            Some(known) => known,
            None => self.fresh()?.ok_or("has a channel, but no group id is left")?,
        };
        let name: Arc<str> = channel.into();
        self.by_name.insert(Arc::clone(&name), group);
        self.names.insert(group, Arc::clone(&name));
        self.named.push((name, group));
        Ok(group)
    }

    /// The group of a channel that is a number. It may be a channel with a name already, of this log or
    /// of one that was imported before.
    fn numbered(&mut self, number: i64) -> Result<GroupId, String> {
        let shifted = number.checked_add(self.id_offset).and_then(|id| GroupId::try_from(id).ok());
        let group = shifted.ok_or_else(|| format!("has {number} as channel, which with {} added is not an id", self.id_offset))?;
        if self.numbered.contains(&group) {
            return Ok(group);
        }
        if !self.merge && !self.names.contains_key(&group) {
            let name = self.lookup.ask(&async |db| store::channel_of(db, group).await)?;
            self.names.extend(name.map(|name| (group, name.into())));
        }
        if let Some(name) = self.names.get(&group) {
            let name = shown(name);
            return Err(format!("has {number} as channel, but group {group} is the channel '{name}'; rename channel {number} in the log"));
        }
        self.numbered.insert(group);
        Ok(group)
    }

    /// The group that an import gave to this name before.
    fn find(&mut self, channel: &str) -> Result<Option<GroupId>, String> {
        let known = self.lookup.ask(&async |db| store::find_channel(db, channel).await)?;
        if let Some(known) = known.filter(|_| !self.merge) {
            let kept_from = self.lookup.ask(&async |db| store::kept_from(db, known).await)?;
            self.held.hold(known, kept_from);
        }
        Ok(known)
    }

    /// An id that no channel of the file has so far, and no group, unless channels may be groups that
    /// are there.
    fn fresh(&mut self) -> Result<Option<GroupId>, String> {
        loop {
            if !self.merge {
                let from = self.next;
                match self.lookup.ask(&async |db| store::first_free(db, from).await)? {
                    Some(free) => self.next = free,
                    None => return Ok(None),
                }
            }
            let Ok(group) = GroupId::try_from(self.next) else { return Ok(None) };
            // The highest id is given to nobody, which is no loss.
            let Some(next) = self.next.checked_add(1) else { return Ok(None) };
            self.next = next;
            if !self.numbered.contains(&group) && !self.names.contains_key(&group) {
                return Ok(Some(group));
            }
        }
    }

    /// Why the database did not answer, once.
    pub(super) fn failure(&mut self) -> Option<String> {
        self.lookup.failure()
    }

    /// What may be taken now that this step has come.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn admit(&mut self, step: LogStep) -> Result<Admitted, String> {
        self.held.admit(step, &mut self.lookup)
    }

    /// The groups of which lines may be held.
    pub(super) fn held(&self) -> Vec<GroupId> {
        self.held.groups()
    }

    /// What may be taken of a group at the end.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn finish(&mut self, group: GroupId) -> Result<Admitted, String> {
        self.held.finish(group, &mut self.lookup)
    }
}
