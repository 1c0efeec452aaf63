//! Steps of chat logs as one write.
//!
//! A step is taken once. A message is known by its id. Joins and leaves are known by how far the
//! lines of the user are taken ([`Taken`](super::store::Taken)): an event changes nothing where a
//! later line of that user was taken, as the later one decides whether the user is a member. Where
//! messages of a group have expired, an older one counts as known: it would be gone, too.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::step::{LogStep, What, second};
use crate::base::clock::UnixMs;
use crate::base::error::Problem;
use crate::base::ids::ClientId;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};
use crate::engine::marks::StreamKey;
use crate::features::groups::members::{join, leave, put, tell};
use crate::features::groups::messages::{SenderHasRead, add_message, send};
use crate::features::groups::rows::GroupRows;
use crate::features::groups::{Membership, NewMessage};
use crate::features::push::{self, Scope};

/// What became of the lines of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImportedLog {
    /// Messages that were not known before.
    pub sent: u64,
    /// Joins, also those of senders who were no members.
    pub joined: u64,
    /// Leaves.
    pub left: u64,
    /// What was known before, or changed nothing.
    pub known: u64,
    /// What a limit does not let in, what is of an erased user, or a group that is not the channel's.
    pub refused: u64,
}

impl std::ops::AddAssign for ImportedLog {
    fn add_assign(&mut self, more: Self) {
        self.sent += more.sent;
        self.joined += more.joined;
        self.left += more.left;
        self.known += more.known;
        self.refused += more.refused;
    }
}

/// Many lines of a log, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCommand {
    /// The lines.
    pub steps: Vec<LogStep>,
    /// In which lane.
    pub lane_key: i64,
    /// Whether channels with names may be groups that are there already.
    pub merge: bool,
}

impl lanes::Command for LogCommand {
    fn needs(&self, needs: &mut Needs) {
        let groups: BTreeSet<_> = self.steps.iter().map(|step| step.group).collect();
        groups.iter().for_each(|group| needs.head(StreamKey::group(*group)));
        needs.of::<GroupRows>().groups.extend(groups);
        for step in &self.steps {
            needs.user(step.user);
            needs.of::<GroupRows>().members.insert((step.user, step.group));
            needs.of::<GroupRows>().logs.members.insert((step.user, step.group));
            if step.channel.is_some() {
                needs.of::<GroupRows>().logs.channels.insert(step.group);
            }
            if let What::Send { client, .. } = &step.what {
                needs.of::<GroupRows>().clients.insert((step.group, step.user, client.clone()));
                needs.of::<GroupRows>().logs.kept.insert(step.group);
            }
        }
    }

    fn lane_key(&self) -> i64 {
        self.lane_key
    }

    fn names(&self) -> Names {
        // They are passed over one by one.
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let mut done = ImportedLog::default();
        for step in &self.steps {
            if rows.is_erased(step.user) || !has_group(rows, step, self.merge)? || !take(rows, step, now, &mut done)? {
                done.refused += 1;
            }
        }
        Ok(Answer::ok(done))
    }
}

/// Makes the group of a step where it is missing. False where the group is not the channel's, or was
/// deleted.
fn has_group(rows: &mut Rows, step: &LogStep, merge: bool) -> Result<bool, Problem> {
    let group = rows.get::<GroupRows>().group(step.group);
    if group.is_some_and(|group| group.deleted) {
        return Ok(false);
    }
    let is_new = group.is_none();
    if is_new {
        put(rows, step.group, None, None, step.at)?;
    }
    let Some(channel) = step.channel.as_deref() else { return Ok(true) };
    match rows.get_mut::<GroupRows>().logs.channel(step.group) {
        Some(known) => Ok(merge || known == channel),
        None if is_new || merge => {
            rows.get_mut::<GroupRows>().logs.set_channel(step.group, channel);
            Ok(true)
        }
        None => Ok(false),
    }
}

/// False where a limit refuses the step.
fn take(rows: &mut Rows, step: &LogStep, now: UnixMs, done: &mut ImportedLog) -> Result<bool, Problem> {
    let mut taken = rows.get_mut::<GroupRows>().logs.taken(step.user, step.group);
    let is_event = !matches!(step.what, What::Send { .. });
    if is_event && taken.has_event(step) {
        done.known += 1;
        return Ok(true);
    }
    let is_in = match &step.what {
        What::Join => take_join(rows, step, now, done),
        What::Leave => take_leave(rows, step, now, done)?,
        What::Send { client, content } => take_message(rows, step, (client, content), taken.is_after(step), now, done)?,
    };
    if is_in {
        taken.take(step, is_event);
        rows.get_mut::<GroupRows>().logs.set_taken(step.user, step.group, taken);
    }
    Ok(is_in)
}

fn latest<'a>(rows: &'a Rows, step: &LogStep) -> Option<&'a Membership> {
    rows.get::<GroupRows>().latest(step.user, step.group).map(|(_, of)| of)
}

/// What the group has of the user stands where it is later than the step.
fn take_join(rows: &mut Rows, step: &LogStep, now: UnixMs, done: &mut ImportedLog) -> bool {
    if latest(rows, step).is_some_and(|of| of.is_open() || second(of.at) > step.second()) {
        done.known += 1;
        return true;
    }
    enter(rows, step, now, done)
}

fn take_leave(rows: &mut Rows, step: &LogStep, now: UnixMs, done: &mut ImportedLog) -> Result<bool, Problem> {
    if !latest(rows, step).is_some_and(|of| of.is_open() && second(of.joined_at) <= step.second()) {
        done.known += 1;
        return Ok(true);
    }
    let left = leave(rows, step.group, step.user, step.at)?;
    tell(rows, now, step.group, step.user, left.then_some(false));
    done.left += 1;
    Ok(true)
}

/// A message makes its sender a member, unless the sender has left since: then it is added alone.
fn take_message(
    rows: &mut Rows,
    step: &LogStep,
    (client, content): (&ClientId, &str),
    is_late: bool,
    now: UnixMs,
    done: &mut ImportedLog,
) -> Result<bool, Problem> {
    let is_known = rows.get::<GroupRows>().sent(&(step.group, step.user, client.clone())).is_some()
        || rows.get::<GroupRows>().logs.has_expired(step.group, step.at);
    let mut is_member = latest(rows, step).is_some_and(Membership::is_open);
    let has_left_since = is_late || latest(rows, step).is_some_and(|of| second(of.at) > step.second());
    if !is_member && !has_left_since {
        if !enter(rows, step, now, done) {
            return Ok(false);
        }
        is_member = true;
    }
    if is_known {
        done.known += 1;
        return Ok(true);
    }
    // Logs do not tell whom a message mentions.
    let (client_id, content) = (client.clone(), content.to_owned());
    let message = NewMessage { client_id, content, mentions: Vec::new(), mention_all: false };
    let sent = if is_member {
        let head = rows.head(&StreamKey::group(step.group));
        let has_read = if head.head > 0 && step.at < head.at { SenderHasRead::Itself } else { SenderHasRead::All };
        send(rows, step.group, step.user, &message, step.at, has_read).map(|_| ())
    } else {
        add_message(rows, step.group, step.user, &message, step.at).map(|_| ())
    };
    if sent.is_ok() {
        // What is imported is no news, but it counts.
        push::numbers_changed(rows, Scope::Group(step.group), now);
        done.sent += 1;
    }
    Ok(sent.is_ok())
}

/// False where a limit refuses the join.
fn enter(rows: &mut Rows, step: &LogStep, now: UnixMs, done: &mut ImportedLog) -> bool {
    let Ok((_, new)) = join(rows, step.group, step.user, step.at, "") else { return false };
    tell(rows, now, step.group, step.user, new.then_some(true));
    done.joined += u64::from(new);
    true
}
