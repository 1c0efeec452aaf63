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
use super::lookup::Lookup;
use crate::base::clock::UnixMs;
use crate::base::ids::GroupId;
use crate::db::Db;
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
    lookup: Lookup,
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
}

/// What is known of a channel whose name a group has already.
enum Held {
    /// Nothing so far.
    Unknown(Waiting),
    /// It is another log's.
    Foreign,
}

/// The lines of a channel of which nothing is known.
#[derive(Default)]
struct Waiting {
    steps: Vec<LogStep>,
    /// When the first message of the group was sent that is kept, where others have expired.
    kept_from: Option<UnixMs>,
    /// How many messages before that were passed over. They are in no group, so they tell nothing, and
    /// a log may have any number of them.
    expired: u64,
}

impl Waiting {
    fn has_expired(&self, step: &LogStep) -> bool {
        is_message(step) && self.kept_from.is_some_and(|from| step.at < from)
    }
}

fn is_message(step: &LogStep) -> bool {
    matches!(step.what, What::Send { .. })
}

/// What becomes of lines.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    /// Those that may be taken.
    pub(super) steps: Vec<LogStep>,
    /// How many messages have expired: they count as known.
    pub(super) known: u64,
    /// How many may never be taken.
    pub(super) refused: u64,
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
            held: HashMap::new(),
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

    /// The group that an import gave to this name before.
    fn find(&mut self, channel: &str) -> Result<Option<GroupId>, String> {
        let known = self.lookup.ask(async |db| store::find_channel(db, channel).await)?;
        if let Some(known) = known.filter(|_| !self.merge) {
            let kept_from = self.lookup.ask(async |db| store::kept_from(db, known).await)?;
            self.held.insert(known, Held::Unknown(Waiting { kept_from, ..Waiting::default() }));
        }
        Ok(known)
    }

    /// An id that no channel of the file has, and no group, unless channels may be groups that are
    /// there.
    fn fresh(&mut self) -> Result<Option<GroupId>, String> {
        loop {
            if !self.merge {
                let from = self.next;
                match self.lookup.ask(async |db| store::first_free(db, from).await)? {
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

    /// What may be taken now that this step has come: nothing while it is not known whether its channel
    /// is the group's.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn admit(&mut self, step: LogStep) -> Result<Admitted, String> {
        let group = step.group;
        match self.held.get_mut(&group) {
            None => return Ok(Admitted { steps: vec![step], ..Admitted::default() }),
            Some(Held::Foreign) => return Ok(Admitted { refused: 1, ..Admitted::default() }),
            Some(Held::Unknown(waiting)) if waiting.has_expired(&step) => {
                waiting.expired += 1;
                return Ok(Admitted::default());
            }
            Some(Held::Unknown(waiting)) => waiting.steps.push(step.clone()),
        }
        let is_known = match &step.what {
            What::Send { client, .. } => self.lookup.ask(async |db| store::has_message(db, group, step.user, client).await)?,
            _ => false,
        };
        if is_known {
            return Ok(self.release(group));
        }
        let Some(Held::Unknown(Waiting { steps, .. })) = self.held.get(&group) else { return Ok(Admitted::default()) };
        let messages = steps.iter().filter(|step| is_message(step)).count();
        if (is_message(&step) && messages >= MAX_HELD_MESSAGES) || steps.len() >= MAX_HELD_STEPS {
            return Ok(self.refuse(group));
        }
        Ok(Admitted::default())
    }

    /// What is held at the end. Steps of groups without any message may be taken, where the log has
    /// none either. A log of which all has expired changes nothing, whosever it is.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn finish(&mut self) -> Result<Admitted, String> {
        let mut all = Admitted::default();
        let groups: Vec<_> = self.held.keys().copied().collect();
        for group in groups {
            let Some(Held::Unknown(Waiting { steps, expired, .. })) = self.held.get(&group) else { continue };
            let (is_empty, is_silent) = (steps.is_empty(), *expired == 0 && !steps.iter().any(is_message));
            let has_messages = self.lookup.ask(async |db| store::has_messages(db, group).await)?;
            let of_group = if is_empty || (is_silent && !has_messages) { self.release(group) } else { self.refuse(group) };
            all.steps.extend(of_group.steps);
            all.known += of_group.known;
            all.refused += of_group.refused;
        }
        Ok(all)
    }

    fn release(&mut self, group: GroupId) -> Admitted {
        match self.held.remove(&group) {
            Some(Held::Unknown(Waiting { steps, expired, .. })) => Admitted { steps, known: expired, refused: 0 },
            _ => Admitted::default(),
        }
    }

    fn refuse(&mut self, group: GroupId) -> Admitted {
        let Admitted { steps, known, .. } = self.release(group);
        self.held.insert(group, Held::Foreign);
        Admitted { refused: known + u64::try_from(steps.len()).unwrap_or(u64::MAX), ..Admitted::default() }
    }
}
