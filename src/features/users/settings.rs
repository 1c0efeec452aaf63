//! What a user may set: what the total leaves out, whether the user shares receipts and approves
//! follows, and who may see whom the user follows.
//!
//! The settings are one text in the user's row (`crate::engine::marks::UserSettings`). To add one:
//! a letter there, a field in [`SettingsPatch`] and [`SettingsOut`], and its check in
//! `settings_http.rs`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::error::{Problem, Result};
use crate::base::ids::{GroupId, Name, UserId};
use crate::cache::Entry;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::marks::{ListVisibility, UserSettings, parts};
use crate::features::groups::sharing;
use crate::features::relations::approvals;

/// How many parts the total of a user may leave out.
pub const MAX_NOT_IN_TOTAL: usize = 100;

/// The kinds whose parts the total may leave out. Chats have levels of their own.
const KINDS: [&str; 3] = ["counters", "broadcasts", "notifications"];

/// A part of the total: a kind and a name (`counters.like`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ToSchema)]
#[serde(try_from = "String")]
#[schema(value_type = String, pattern = "^(counters|broadcasts|notifications)\\.[a-z0-9][a-z0-9_.-]{0,63}$", example = "counters.like")]
pub struct TotalPart(String);

impl TryFrom<String> for TotalPart {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_part = text.split_once('.').is_some_and(|(kind, name)| KINDS.contains(&kind) && name.parse::<Name>().is_ok());
        if is_part { Ok(Self(text)) } else { Err("must be 'counters.', 'broadcasts.' or 'notifications.' and a name") }
    }
}

impl TotalPart {
    /// Kind and name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The settings to change; the others stay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettingsPatch {
    /// What the total leaves out from now on.
    pub not_in_total: Option<Vec<TotalPart>>,
    /// Whether others see which messages the user has read.
    pub share_receipts: Option<bool>,
    /// Whether a follow of the user is a request at first.
    pub approve_follows: Option<bool>,
    /// Who may see the user's lists of follows.
    pub lists: Option<ListsOut>,
}

/// Who may see a user's lists `following`, `followers` and `mutuals`, beside the user and services.
// Read as a text first: of a null that stands for an enum, serde_json says that the JSON is
// malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", rename_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub enum ListsOut {
    /// Everybody.
    All,
    /// The user's followers, those in secret too.
    Followers,
    /// Nobody.
    #[serde(rename = "self")]
    #[schema(rename = "self")]
    Own,
}

impl TryFrom<String> for ListsOut {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "all" => Ok(Self::All),
            "followers" => Ok(Self::Followers),
            "self" => Ok(Self::Own),
            _ => Err("must be 'all', 'followers' or 'self'"),
        }
    }
}

impl From<ListVisibility> for ListsOut {
    fn from(lists: ListVisibility) -> Self {
        match lists {
            ListVisibility::All => Self::All,
            ListVisibility::Followers => Self::Followers,
            ListVisibility::Own => Self::Own,
        }
    }
}

impl From<ListsOut> for ListVisibility {
    fn from(lists: ListsOut) -> Self {
        match lists {
            ListsOut::All => Self::All,
            ListsOut::Followers => Self::Followers,
            ListsOut::Own => Self::Own,
        }
    }
}

impl SettingsPatch {
    fn apply(&self, settings: &mut UserSettings, inbox_head: i64) {
        if let Some(parts) = &self.not_in_total {
            settings.set_not_in_total(parts.iter().map(TotalPart::as_str));
        }
        if let Some(shares) = self.share_receipts {
            settings.set_shares_receipts(shares, inbox_head);
        }
        if let Some(approves) = self.approve_follows {
            settings.set_approves_follows(approves);
        }
        if let Some(lists) = self.lists {
            settings.set_lists(lists.into());
        }
    }
}

/// A user's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingsOut {
    /// What `total` leaves out, sorted. These parts keep their own counts.
    #[schema(max_items = 100, value_type = Vec<TotalPart>)]
    pub not_in_total: Vec<String>,
    /// Whether others see which messages the user has read, and the user sees the same of others.
    pub share_receipts: bool,
    /// Whether a follow of the user is a request until the user accepts it.
    pub approve_follows: bool,
    /// Who may see the lists of whom the user follows and who follows the user.
    pub lists: ListsOut,
    /// The user's revision.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

impl SettingsOut {
    fn new(settings: &UserSettings, revision: i64) -> Self {
        let not_in_total = settings.not_in_total().map(str::to_owned).collect();
        Self {
            not_in_total,
            share_receipts: settings.shares_receipts(),
            approve_follows: settings.approves_follows(),
            lists: settings.lists().into(),
            revision,
        }
    }

    /// Those of the user's own state.
    #[must_use]
    pub fn of_entry(entry: &Entry) -> Self {
        let not_in_total = parts::not_in_total(&entry.parts).map(str::to_owned).collect();
        Self {
            not_in_total,
            share_receipts: parts::shares_receipts(&entry.parts),
            approve_follows: parts::approves_follows(&entry.parts),
            lists: parts::lists(&entry.parts).into(),
            revision: entry.revision,
        }
    }
}

/// What a patch answers inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatchStep {
    /// It is done. Whether receipts changed.
    Done(SettingsOut, bool),
    /// The user has joined or left a group since the groups were read. As of this revision.
    OtherGroups(i64),
}

/// A user changes settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchSettings {
    pub user: UserId,
    pub patch: SettingsPatch,
    /// The user's groups, each once, where the patch says whether receipts are shared.
    pub groups: Vec<GroupId>,
}

impl lanes::Command for PatchSettings {
    fn needs(&self, needs: &mut Needs) {
        needs.user(self.user);
        if self.patch.approve_follows.is_some() {
            approvals::need_switch(needs, self.user);
        }
        sharing::need_memberships(needs, self.user, &self.groups);
    }

    fn lane_key(&self) -> i64 {
        self.user.get()
    }

    fn names(&self) -> Names {
        vec![in_path(self.user)]
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.groups.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn by_user(&self) -> Option<UserId> {
        Some(self.user)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let row = rows.user(self.user);
        let (before, mut after) = (row.settings.clone(), row.settings);
        self.patch.apply(&mut after, row.inbox_seq);
        let (shared, shares) = (before.shares_receipts(), after.shares_receipts());
        if shared != shares {
            if !sharing::are_all(rows, self.user, &self.groups) {
                return Ok(Answer::ok(PatchStep::OtherGroups(rows.revision(self.user))));
            }
            sharing::set_sharing(rows, self.user, &self.groups, shares);
        }
        if before.approves_follows() && !after.approves_follows() {
            approvals::begin(rows, self.user, now);
        }
        if before != after {
            rows.revise(self.user, |row| row.settings = after.clone());
        }
        Ok(Answer::ok(PatchStep::Done(SettingsOut::new(&after, rows.revision(self.user)), shared != shares)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_kind_and_a_name() {
        for good in ["counters.like", "broadcasts.a.b", "notifications.x-1_y"] {
            assert_eq!(TotalPart::try_from(good.to_owned()).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "counters",
            "counters.",
            "counters.A",
            "chats.groups",
            "dots.mall",
            "feed.x",
            "counters like",
            "counters.a b",
            "counters.a;b",
        ] {
            assert!(TotalPart::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
