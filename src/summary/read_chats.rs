//! A user reads many chats at once: groups and direct chats, in one transaction.

use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{GroupId, UserId};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::pairs::need_named;
use crate::features::badges::ResetOut;
use crate::features::groups::GroupCommand;
use crate::features::inbox::InboxCommand;

/// Which chats a user has read. It is made of the commands that read one chat each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadChats {
    pub user: UserId,
    /// Which groups, and up to which message; None: all that are there.
    pub groups: Vec<(GroupId, Option<i64>)>,
    /// Which peers, and up to which row of the user's inbox; None: all that are there.
    pub directs: Vec<(UserId, Option<i64>)>,
    /// Whether the caller named them. Of all chats, a group that the user has left meanwhile is
    /// passed over.
    pub are_named: bool,
}

impl ReadChats {
    fn groups(&self) -> impl Iterator<Item = (GroupId, GroupCommand)> {
        let command =
            |(group, up_to): &(GroupId, Option<i64>)| (*group, GroupCommand::Read { user: self.user, group: *group, up_to: *up_to });
        self.groups.iter().map(command)
    }

    fn directs(&self) -> impl Iterator<Item = InboxCommand> {
        self.directs.iter().map(|(peer, up_to)| InboxCommand::Read { user: self.user, peer: *peer, up_to: *up_to })
    }
}

impl lanes::Command for ReadChats {
    fn needs(&self, needs: &mut Needs) {
        needs.user(self.user);
        self.groups().for_each(|(_, read)| read.needs(needs));
        self.directs().for_each(|read| read.needs(needs));
        self.directs.iter().for_each(|(peer, _)| need_named(needs, *peer));
    }

    fn lane_key(&self) -> i64 {
        self.user.get()
    }

    fn names(&self) -> Names {
        let peers = self.directs.iter().filter(|_| self.are_named);
        let peers = peers.map(|(peer, _)| (*peer, format!("/up_to/directs/{peer}")));
        [in_path(self.user)].into_iter().chain(peers).collect()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.groups.len() + self.directs.len()).unwrap_or(u32::MAX).max(1)
    }

    fn by_user(&self) -> Option<UserId> {
        Some(self.user)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        for (group, read) in self.groups() {
            match read.apply(rows, now) {
                Ok(_) => {}
                Err(problem) if self.are_named => return Err(problem.at(format!("/up_to/groups/{group}"), "cannot be read")),
                Err(problem) if matches!(problem.code, Code::Forbidden | Code::NotFound | Code::Gone) => {}
                Err(problem) => return Err(problem),
            }
        }
        for read in self.directs() {
            read.apply(rows, now)?;
        }
        Ok(Answer::ok(ResetOut { revision: rows.revision(self.user) }))
    }
}
