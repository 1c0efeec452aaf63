//! Which group each channel is.
//!
//! A number is the group of that number. A name is the group that an import gave it before, else it
//! gets an id that no group has. So that two logs with channels of one name do not end up in one
//! group, the lines of such a channel are held until one of its messages is found in the group
//! ([`Held`]): then it is the same log, read again or grown.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tokio::runtime::Handle;

use super::import::LogImport;
use crate::base::ids::GroupId;
use crate::db::{Db, DbResult};
use crate::features::groups::import::{LogStep, What, store};
use crate::maintenance::import::field::shown;

/// How many channels with names a file may have.
const MAX_CHANNELS: usize = 1_000_000;

/// How long the name of a channel may be.
const MAX_NAME_BYTES: usize = 500;

/// Of how many messages one must be known where a group has the channel's name.
const MAX_HELD_MESSAGES: usize = 100;

/// How many lines are held for one channel, joins and leaves included.
const MAX_HELD_STEPS: usize = 100_000;

/// Which group each channel is.
pub(super) struct Channels {
    db: Db,
    runtime: Handle,
    id_offset: i64,
    merge: bool,
    next: i64,
    by_name: BTreeMap<Arc<str>, GroupId>,
    /// The names in the order in which they came.
    named: Vec<(Arc<str>, GroupId)>,
    names: HashMap<GroupId, Arc<str>>,
    /// Those that have numbers of their own.
    numbered: HashSet<GroupId>,
    held: HashMap<GroupId, Held>,
    /// Why the database did not answer.
    failed: Option<String>,
}

/// What is known of a channel whose name a group has already.
enum Held {
    /// Nothing so far.
    Steps(Vec<LogStep>),
    /// It is another log's.
    Foreign,
}

impl Channels {
    pub(super) fn new(import: &LogImport, db: Db, runtime: Handle) -> Self {
        Self {
            db,
            runtime,
            id_offset: import.id_offset,
            merge: import.merge,
            next: import.first_group_id,
            by_name: BTreeMap::new(),
            named: Vec::new(),
            names: HashMap::new(),
            numbered: HashSet::new(),
            held: HashMap::new(),
            failed: None,
        }
    }

    /// The group of each channel that has a name, and whether its lines are imported.
    pub(super) fn named(&self) -> Vec<(String, GroupId, bool)> {
        let named = |(name, group): &(Arc<str>, GroupId)| {
            let is_foreign = matches!(self.held.get(group), Some(Held::Foreign));
            (name.to_string(), *group, !is_foreign)
        };
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
            let shifted = number.checked_add(self.id_offset).and_then(|id| GroupId::try_from(id).ok());
            let group = shifted.ok_or_else(|| format!("has {number} as channel, which with {} added is not an id", self.id_offset))?;
            if self.names.contains_key(&group) {
                return Err(format!("has {number} as channel, which was given to a channel with a name; choose another --first-group-id"));
            }
            self.numbered.insert(group);
            return Ok(group);
        }
        if channel.len() > MAX_NAME_BYTES || channel.contains('\0') {
            return Err(format!("has '{}' as channel, which has U+0000 or more than {MAX_NAME_BYTES} bytes", shown(channel)));
        }
        if self.named.len() >= MAX_CHANNELS {
            return Err(format!("has a channel beyond the {MAX_CHANNELS}th"));
        }
        let found = self.find(channel);
        let group = found.and_then(|known| known.map_or_else(|| self.fresh(), |known| Ok(Some(known))));
        let group = group.map_err(|error| self.fail(&error))?;
        let group = group.ok_or("has a channel, but no group id is left")?;
        let name: Arc<str> = channel.into();
        self.by_name.insert(Arc::clone(&name), group);
        self.names.insert(group, Arc::clone(&name));
        self.named.push((name, group));
        Ok(group)
    }

    /// The group that an import gave to this name before.
    fn find(&mut self, channel: &str) -> DbResult<Option<GroupId>> {
        let known = self.runtime.block_on(store::find_channel(&self.db, channel))?;
        if let Some(known) = known.filter(|_| !self.merge) {
            self.held.insert(known, Held::Steps(Vec::new()));
        }
        Ok(known)
    }

    /// An id that no channel of the file has, and no group, unless channels may be groups that are
    /// there.
    fn fresh(&mut self) -> DbResult<Option<GroupId>> {
        loop {
            if !self.merge {
                match self.runtime.block_on(store::first_free(&self.db, self.next))? {
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

    fn fail(&mut self, error: &sqlx::Error) -> String {
        let why = format!("the database did not answer: {error}; what was imported before stays, and the import may be run again");
        self.failed = Some(why.clone());
        why
    }

    /// Why the database did not answer, once.
    pub(super) fn failure(&mut self) -> Option<String> {
        self.failed.take()
    }

    /// The steps that may be taken now that this one has come: none while it is not known whether
    /// its channel is the group's. The second number counts those that may never be.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn admit(&mut self, step: LogStep) -> Result<(Vec<LogStep>, u64), String> {
        let (group, is_message) = (step.group, matches!(step.what, What::Send { .. }));
        match self.held.get_mut(&group) {
            None => return Ok((vec![step], 0)),
            Some(Held::Foreign) => return Ok((Vec::new(), 1)),
            Some(Held::Steps(steps)) => steps.push(step.clone()),
        }
        let is_known = match &step.what {
            What::Send { client, .. } => self.runtime.block_on(store::has_message(&self.db, group, step.user, client)),
            _ => Ok(false),
        };
        if is_known.map_err(|error| self.fail(&error))? {
            return Ok((self.release(group), 0));
        }
        let Some(Held::Steps(steps)) = self.held.get(&group) else { return Ok((Vec::new(), 0)) };
        let messages = steps.iter().filter(|step| matches!(step.what, What::Send { .. })).count();
        if (is_message && messages >= MAX_HELD_MESSAGES) || steps.len() >= MAX_HELD_STEPS {
            return Ok((Vec::new(), self.refuse(group)));
        }
        Ok((Vec::new(), 0))
    }

    /// The steps that are held at the end: those of groups without any message may be taken, where
    /// the log has none either.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn finish(&mut self) -> Result<(Vec<LogStep>, u64), String> {
        let (mut admitted, mut refused) = (Vec::new(), 0);
        let groups: Vec<_> = self.held.keys().copied().collect();
        for group in groups {
            let Some(Held::Steps(steps)) = self.held.get(&group) else { continue };
            let is_silent = !steps.iter().any(|step| matches!(step.what, What::Send { .. }));
            let has_messages = self.runtime.block_on(store::has_messages(&self.db, group));
            if is_silent && !has_messages.map_err(|error| self.fail(&error))? {
                admitted.extend(self.release(group));
            } else {
                refused += self.refuse(group);
            }
        }
        Ok((admitted, refused))
    }

    fn release(&mut self, group: GroupId) -> Vec<LogStep> {
        match self.held.remove(&group) {
            Some(Held::Steps(steps)) => steps,
            _ => Vec::new(),
        }
    }

    fn refuse(&mut self, group: GroupId) -> u64 {
        let steps = self.release(group);
        self.held.insert(group, Held::Foreign);
        u64::try_from(steps.len()).unwrap_or(u64::MAX)
    }
}
