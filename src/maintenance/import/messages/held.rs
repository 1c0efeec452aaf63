//! The lines of channels whose name a group has already, held until one of them is found in the
//! group: then it is the same log, read again or grown.
//!
//! A message is found by its id. A join or leave is found where it is the last line of its user that
//! was taken. So is an expired message, by its second. What an import has taken of a log begins at
//! the top of it, so it has the last line of each of its users: a log is known again also where
//! nothing but joins came in before the import was killed. An earlier line would prove nothing: the
//! users of another log may have joined its channel of that name at any time.

use std::collections::HashMap;

use super::lookup::Lookup;
use crate::base::clock::UnixMs;
use crate::base::ids::GroupId;
use crate::features::groups::import::{LogStep, Trace, What, store};

/// Of how many messages one must be known where a group has the channel's name.
const MAX_HELD_MESSAGES: usize = 100;

/// How many lines are held for one channel, joins and leaves included.
const MAX_HELD_STEPS: usize = 100_000;

/// How many bytes are held for all channels.
const MAX_HELD_BYTES: usize = 256 * 1024 * 1024;

/// How many lines are looked for at once.
const TRACES_AT_ONCE: usize = 1000;

/// The channels whose name a group has already.
pub(super) struct Held {
    channels: HashMap<GroupId, Channel>,
    bytes: usize,
    max_bytes: usize,
}

/// What is known of such a channel.
enum Channel {
    /// Nothing so far.
    Unknown(Waiting),
    /// It is another log's.
    Foreign,
}

/// The lines of a channel of which nothing is known.
#[derive(Default)]
struct Waiting {
    steps: Vec<LogStep>,
    messages: usize,
    /// When the first message of the group was sent that is kept, where others have expired.
    kept_from: Option<UnixMs>,
    /// How many messages before that were passed over. They are in no group, so they are not held, and
    /// a log may have any number of them.
    expired: u64,
    /// The joins, leaves and expired messages that were not looked for yet.
    traces: Vec<Trace>,
    bytes: usize,
}

impl Waiting {
    /// Takes a line, and returns whether it is a message that may be found.
    fn hold(&mut self, step: LogStep) -> bool {
        let is_message = matches!(step.what, What::Send { .. });
        if is_message && self.kept_from.is_some_and(|from| step.at < from) {
            self.expired += 1;
            self.trace(&step);
            return false;
        }
        if is_message {
            self.messages += 1;
        } else {
            self.trace(&step);
        }
        self.bytes += step.size_bytes();
        self.steps.push(step);
        is_message
    }

    fn trace(&mut self, step: &LogStep) {
        self.bytes += size_of::<Trace>();
        self.traces.push(step.trace());
    }

    fn is_full(&self) -> bool {
        self.messages >= MAX_HELD_MESSAGES || self.steps.len() >= MAX_HELD_STEPS
    }
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

impl Held {
    pub(super) fn new() -> Self {
        Self { channels: HashMap::new(), bytes: 0, max_bytes: MAX_HELD_BYTES }
    }

    /// From here on the lines of this channel are held.
    pub(super) fn hold(&mut self, group: GroupId, kept_from: Option<UnixMs>) {
        self.channels.insert(group, Channel::Unknown(Waiting { kept_from, ..Waiting::default() }));
    }

    /// Whether the channel is another log's.
    pub(super) fn is_foreign(&self, group: GroupId) -> bool {
        matches!(self.channels.get(&group), Some(Channel::Foreign))
    }

    /// The groups of which it is asked once more at the end ([`Held::finish`]).
    pub(super) fn groups(&self) -> Vec<GroupId> {
        self.channels.keys().copied().collect()
    }

    /// What may be taken now that this step has come: nothing while it is not known whether its channel
    /// is the group's.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn admit(&mut self, step: LogStep, lookup: &mut Lookup) -> Result<Admitted, String> {
        let (group, user) = (step.group, step.user);
        let client = match &step.what {
            What::Send { client, .. } => Some(client.clone()),
            _ => None,
        };
        let waiting = match self.channels.get_mut(&group) {
            None => return Ok(Admitted { steps: vec![step], ..Admitted::default() }),
            Some(Channel::Foreign) => return Ok(Admitted { refused: 1, ..Admitted::default() }),
            Some(Channel::Unknown(waiting)) => waiting,
        };
        let before = waiting.bytes;
        let is_message = waiting.hold(step);
        self.bytes += waiting.bytes - before;
        let (is_full, has_many) = (waiting.is_full(), waiting.traces.len() >= TRACES_AT_ONCE);
        let is_known = match client.filter(|_| is_message) {
            Some(client) => lookup.ask(&async |db| store::has_message(db, group, user, &client).await)?,
            None => false,
        };
        if is_known || ((is_full || has_many) && self.finds_trace(group, lookup)?) {
            return Ok(self.release(group));
        }
        if is_full {
            return Ok(self.refuse(group));
        }
        let Some(largest) = self.beyond_bytes() else { return Ok(Admitted::default()) };
        Ok(if self.finds_trace(largest, lookup)? { self.release(largest) } else { self.refuse(largest) })
    }

    /// What becomes of a channel at the end. Steps of a group without any message may be taken, where
    /// the log has none either. A log of which all has expired changes nothing, whosever it is.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn finish(&mut self, group: GroupId, lookup: &mut Lookup) -> Result<Admitted, String> {
        let Some(Channel::Unknown(waiting)) = self.channels.get(&group) else { return Ok(Admitted::default()) };
        let is_silent = waiting.expired == 0 && waiting.messages == 0;
        let is_free = waiting.steps.is_empty() || self.finds_trace(group, lookup)?;
        let is_free = is_free || (is_silent && !lookup.ask(&async |db| store::has_messages(db, group).await)?);
        Ok(if is_free { self.release(group) } else { self.refuse(group) })
    }

    /// Looks for what was not looked for yet.
    fn finds_trace(&mut self, group: GroupId, lookup: &mut Lookup) -> Result<bool, String> {
        let Some(Channel::Unknown(waiting)) = self.channels.get_mut(&group) else { return Ok(false) };
        let traces = std::mem::take(&mut waiting.traces);
        let freed = traces.len() * size_of::<Trace>();
        waiting.bytes -= freed;
        self.bytes -= freed;
        lookup.ask(&async |db| store::has_last_line(db, group, &traces).await)
    }

    /// The channel that holds the most, where all together hold too much.
    fn beyond_bytes(&self) -> Option<GroupId> {
        if self.bytes <= self.max_bytes {
            return None;
        }
        let held = self.channels.iter().filter_map(|(group, channel)| match channel {
            Channel::Unknown(waiting) => Some((waiting.bytes, *group)),
            Channel::Foreign => None,
        });
        held.max().map(|(_, group)| group)
    }

    fn release(&mut self, group: GroupId) -> Admitted {
        let Some(Channel::Unknown(waiting)) = self.channels.remove(&group) else { return Admitted::default() };
        self.bytes -= waiting.bytes;
        Admitted { steps: waiting.steps, known: waiting.expired, refused: 0 }
    }

    fn refuse(&mut self, group: GroupId) -> Admitted {
        let Admitted { steps, known, .. } = self.release(group);
        self.channels.insert(group, Channel::Foreign);
        Admitted { refused: known + u64::try_from(steps.len()).unwrap_or(u64::MAX), ..Admitted::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(group: i64, content: &str) -> LogStep {
        let what = What::Send { client: "a".parse().unwrap(), content: content.to_owned() };
        LogStep { group: group.try_into().unwrap(), channel: None, user: 1.try_into().unwrap(), at: UnixMs(0), events: 0, what }
    }

    #[test]
    fn the_channel_that_holds_the_most_goes_where_all_hold_too_much() {
        let mut held = Held { max_bytes: 1000, ..Held::new() };
        let hold = |held: &mut Held, group: i64, length: usize| {
            let group = group.try_into().unwrap();
            if !held.channels.contains_key(&group) {
                held.hold(group, None);
            }
            let Some(Channel::Unknown(waiting)) = held.channels.get_mut(&group) else { panic!("{group:?} is foreign") };
            let before = waiting.bytes;
            waiting.hold(message(group.get(), &"x".repeat(length)));
            held.bytes += waiting.bytes - before;
        };
        hold(&mut held, 1, 200);
        hold(&mut held, 2, 300);
        assert_eq!(held.beyond_bytes(), None);
        hold(&mut held, 3, 10);
        hold(&mut held, 1, 400);
        let largest = held.beyond_bytes().unwrap();
        assert_eq!(largest.get(), 1);
        assert_eq!(held.refuse(largest).refused, 2);
        assert!(held.is_foreign(largest) && held.beyond_bytes().is_none());
        for group in [2, 3] {
            assert_eq!(held.release(group.try_into().unwrap()).steps.len(), 1);
        }
        assert_eq!(held.bytes, 0);
    }
}
