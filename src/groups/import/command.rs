//! Steps of chat logs as one write.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::clock::UnixMs;
use crate::error::Problem;
use crate::groups::command::{join, leave, put, send, tell};
use crate::ids::{ClientId, GroupId, UserId};
use crate::lane::{self, Answer, Needs, Rows};
use crate::marks::StreamKey;

/// What a log says that somebody did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Joined.
    Join,
    /// Left.
    Leave,
    /// Sent a message.
    Send {
        /// Its id.
        client: ClientId,
        /// What it says.
        content: String,
    },
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// In which group; made if need be.
    pub group: GroupId,
    /// Who.
    pub user: UserId,
    /// When.
    pub at: UnixMs,
    /// What.
    pub what: What,
}

/// What became of the lines of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// Messages that were not known before.
    pub sent: u64,
    /// Joins, also those of senders who were no members.
    pub joined: u64,
    /// Leaves.
    pub left: u64,
    /// What was known before.
    pub known: u64,
    /// What a limit does not let in.
    pub refused: u64,
}

impl std::ops::AddAssign for Imported {
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
pub struct Import {
    /// The lines.
    pub steps: Vec<Step>,
    /// In which lane.
    pub lane_key: i64,
}

impl lane::Command for Import {
    fn needs(&self, needs: &mut Needs) {
        let groups: BTreeSet<_> = self.steps.iter().map(|step| step.group).collect();
        groups.iter().for_each(|group| needs.head(StreamKey::group(*group)));
        needs.groups.groups.extend(groups);
        for step in &self.steps {
            needs.user(step.user);
            needs.groups.members.insert((step.user, step.group));
            if let What::Send { client, .. } = &step.what {
                needs.groups.clients.insert((step.group, step.user, client.clone()));
            }
        }
    }

    fn lane_key(&self) -> i64 {
        self.lane_key
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let mut done = Imported::default();
        for step in &self.steps {
            take(rows, step, now, &mut done)?;
        }
        Answer::ok(&done)
    }
}

fn take(rows: &mut Rows, step: &Step, now: UnixMs, done: &mut Imported) -> Result<(), Problem> {
    let Step { group, user, at, what } = step;
    if rows.groups.group(*group).is_none() {
        put(rows, *group, None, None, *at)?;
    }
    match what {
        What::Join if is_past(rows, step) => done.known += 1,
        What::Join => enter(rows, step, now, done),
        What::Leave => match rows.groups.latest(*user, *group) {
            Some((_, of)) if of.is_open() && of.joined_at <= *at => {
                let left = leave(rows, *group, *user, *at)?;
                tell(rows, now, *group, *user, left.then_some(false));
                done.left += 1;
            }
            _ => done.known += 1,
        },
        What::Send { client, content } => {
            if rows.groups.sent(&(*group, *user, client.clone())).is_some() {
                done.known += 1;
                return Ok(());
            }
            if !rows.groups.latest(*user, *group).is_some_and(|(_, of)| of.is_open()) {
                enter(rows, step, now, done);
            }
            match send(rows, *group, *user, client, content, *at) {
                Ok(_) => done.sent += 1,
                Err(_) => done.refused += 1,
            }
        }
    }
    Ok(())
}

/// Whether the group has something of that user that is as late as the step: then the step was taken before.
fn is_past(rows: &Rows, step: &Step) -> bool {
    let latest = rows.groups.latest(step.user, step.group);
    latest.is_some_and(|(_, of)| of.is_open() || of.joined_at >= step.at || of.at >= step.at)
}

fn enter(rows: &mut Rows, step: &Step, now: UnixMs, done: &mut Imported) {
    match join(rows, step.group, step.user, step.at, "") {
        Ok((_, true)) => {
            tell(rows, now, step.group, step.user, Some(true));
            done.joined += 1;
        }
        Ok((_, false)) => done.known += 1,
        Err(_) => done.refused += 1,
    }
}
