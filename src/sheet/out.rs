//! What a poll returns: the kinds that are wanted ([`Wanted`]), and the sheet as JSON ([`SheetOut`]). A new kind has its places here and in `parts.rs`.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::Sheet;
use crate::clock::UnixMs;
use crate::groups::chats::ChatCount;
use crate::ids::UserId;

/// What of a sheet is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Counters are part of it.
    pub counters: bool,
    /// Broadcasts are part of it.
    pub broadcasts: bool,
    /// Dots are part of it.
    pub dots: bool,
    /// The feed is part of it.
    pub feed: bool,
    /// Groups and direct messages are part of it.
    pub chats: bool,
    /// Notifications are part of it.
    pub notifications: bool,
    /// No count shows more than this.
    pub cap: Option<i64>,
}

/// The kinds that `include` may name.
const KINDS: &str = "counters, broadcasts, dots, feed, chats, notifications";

/// The highest `cap`.
pub const MAX_CAP: i64 = 1_000_000_000;

impl Wanted {
    /// None of the kinds: views alone, which are asked for beside them.
    pub const NOTHING: Self =
        Self { counters: false, broadcasts: false, dots: false, feed: false, chats: false, notifications: false, cap: None };

    /// What `include` (names of kinds, comma-separated) and `cap` ask for.
    ///
    /// # Errors
    /// What is wrong, with the name of the parameter.
    pub fn parse(include: Option<&str>, cap: Option<i64>) -> Result<Self, (&'static str, String)> {
        if let Some(cap) = cap.filter(|cap| !(1..=MAX_CAP).contains(cap)) {
            return Err(("cap", format!("{cap} is not from 1 to {MAX_CAP}")));
        }
        let Some(include) = include else { return Ok(Self { cap, ..Self::default() }) };
        let mut wanted = Self { cap, ..Self::NOTHING };
        for kind in include.split(',') {
            match kind {
                "counters" => wanted.counters = true,
                "broadcasts" => wanted.broadcasts = true,
                "dots" => wanted.dots = true,
                "feed" => wanted.feed = true,
                "chats" => wanted.chats = true,
                "notifications" => wanted.notifications = true,
                other => return Err(("include", format!("'{}' is not one of: {KINDS}", other.chars().take(64).collect::<String>()))),
            }
        }
        Ok(wanted)
    }

    /// The feed alone.
    #[must_use]
    pub fn feed() -> Self {
        Self { feed: true, ..Self::NOTHING }
    }

    /// Whether all kinds are wanted that the total adds up.
    fn has_total(self) -> bool {
        self.counters && self.broadcasts && self.chats && self.notifications
    }

    /// The names of those kinds that are wanted and that `these` picks.
    fn names(self, these: fn(&'static str) -> bool) -> Vec<&'static str> {
        let kinds = [
            ("counters", self.counters),
            ("broadcasts", self.broadcasts),
            ("dots", self.dots),
            ("feed", self.feed),
            ("chats", self.chats),
            ("notifications", self.notifications),
        ];
        kinds.into_iter().filter(|(kind, wanted)| *wanted && these(kind)).map(|(kind, _)| kind).collect()
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self { counters: true, broadcasts: true, dots: true, feed: true, chats: true, notifications: true, cap: None }
    }
}

/// A number of unread things, with the head that it was counted at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CounterOut {
    /// How many the user has not read.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// What is shown to the user now; sent back as `up_to`, it clears exactly that.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// With `cap`: whether there are more than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

/// A red dot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DotOut {
    /// Whether it is lit for the user.
    pub lit: bool,
    /// How often it was lit for everybody; sent back as `up_to`, it clears exactly what was shown.
    #[schema(minimum = 0, example = 4)]
    pub head: i64,
}

/// A number of unread things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UnreadOut {
    /// How many the user has not read.
    #[schema(minimum = 0, example = 7)]
    pub unread: i64,
    /// With `cap`: whether there are more than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

/// What is unread in groups and direct messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatsOut {
    /// How many messages the user has not read, those of muted chats aside.
    #[schema(minimum = 0, example = 6)]
    pub unread: i64,
    /// In how many groups they are.
    #[schema(minimum = 0, example = 2)]
    pub groups: i64,
    /// From how many peers there are direct ones.
    #[schema(minimum = 0, example = 1)]
    pub directs: i64,
    /// With `cap`: whether there are more than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

/// What is unread in a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ViewOut {
    /// How many items came since the last visit; 0 where there was none.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// How many items there ever were; sent back as `up_to`, it clears exactly what was shown.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// When the user was there last; left out where the user never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_access_at: Option<UnixMs>,
    /// With `cap`: whether there are more than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

/// Values by name, in the order of the names; in JSON an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByName<'a, T>(pub Vec<(&'a str, T)>);

impl<T: Serialize> Serialize for ByName<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// All of a user's unread state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SheetOut)]
pub struct SheetOut<'a> {
    /// The user.
    pub user_id: UserId,
    /// The history of the installation. Another one means that the database was restored: the client drops all it knows.
    #[schema(example = "7eb1c0de5a0f3d29")]
    pub epoch: &'a str,
    /// Counts the changes of the user's own rows and never goes down within an epoch: an answer with a lower one is older.
    /// Left out when degraded and not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 918)]
    pub revision: Option<i64>,
    /// The versions of the shared heads in this answer, added up. Of two answers to one request at the same `revision`, the
    /// one with the lower number is older. Left out when degraded and not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 5120)]
    pub shared_revision: Option<i64>,
    /// What an app icon shows: counters, broadcasts, chats and notifications. Left out when one of them was not asked for or is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 3)]
    pub total: Option<i64>,
    /// With `cap`: whether the total is more than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
    /// A store was unreachable: parts are the last known ones (`stale`) or left out (`missing`).
    pub degraded: bool,
    /// When degraded: the parts that are as last known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<&'static str>,
    /// When degraded: the parts that are not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<&'static str>,
    /// The counter badges by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, CounterOut>>)]
    pub counters: Option<ByName<'a, CounterOut>>,
    /// The channels of broadcasts by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, CounterOut>>)]
    pub broadcasts: Option<ByName<'a, CounterOut>>,
    /// The dots by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, DotOut>>)]
    pub dots: Option<ByName<'a, DotOut>>,
    /// What those whom the user follows posted since the user last looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub feed: Option<UnreadOut>,
    /// Groups and direct messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub chats: Option<ChatsOut>,
    /// Notifications, by type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, UnreadOut>>)]
    pub notifications: Option<ByName<'a, UnreadOut>>,
    /// The views that were asked for, by name and id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, ViewOut>>)]
    pub views: Option<ByName<'a, ViewOut>>,
}

/// Whether a kind depends on what users share, besides the user's own rows.
pub(super) fn is_shared(kind: &'static str) -> bool {
    matches!(kind, "broadcasts" | "dots" | "feed" | "chats")
}

impl<'a> SheetOut<'a> {
    /// The sheet as JSON shows it.
    #[must_use]
    pub fn new(user: UserId, sheet: &'a Sheet, wanted: Wanted) -> Self {
        let most = wanted.cap.unwrap_or(i64::MAX);
        let count = |(name, unread, head): (&'a str, i64, i64)| {
            (name, CounterOut { unread: unread.min(most), head, capped: wanted.cap.map(|cap| unread > cap) })
        };
        let plain = |unread: i64| UnreadOut { unread: unread.min(most), capped: wanted.cap.map(|cap| unread > cap) };
        let chats = |count: ChatCount| {
            let (direct, directs) = sheet.directs();
            let unread = count.unread.saturating_add(direct);
            let capped = wanted.cap.map(|cap| unread > cap);
            ChatsOut { unread: unread.min(most), groups: count.groups.min(most), directs: directs.min(most), capped }
        };
        let view = |view: &'a crate::views::ViewCount| {
            let capped = wanted.cap.map(|cap| view.unread > cap);
            (&*view.stream, ViewOut { unread: view.unread.min(most), head: view.head, last_access_at: view.at, capped })
        };
        let known = sheet.entry.is_some();
        let total = sheet.total().filter(|_| known && wanted.has_total());
        Self {
            user_id: user,
            epoch: &sheet.board.epoch,
            revision: known.then(|| sheet.revision()),
            shared_revision: sheet.versions().filter(|_| known).map(|versions| versions.sum),
            total: total.map(|total| total.min(most)),
            capped: total.and_then(|total| wanted.cap.map(|cap| total > cap)),
            degraded: sheet.is_degraded(),
            stale: sheet.stale(wanted),
            missing: sheet.missing(wanted),
            counters: (known && wanted.counters).then(|| ByName(sheet.counters().map(count).collect())),
            broadcasts: (known && wanted.broadcasts).then(|| ByName(sheet.broadcasts().map(count).collect())),
            dots: (known && wanted.dots).then(|| ByName(sheet.dots().map(|(name, lit, head)| (name, DotOut { lit, head })).collect())),
            feed: sheet.feed.filter(|_| wanted.feed).map(|feed| plain(feed.unread)),
            chats: sheet.chats.filter(|_| wanted.chats).map(chats),
            notifications: (known && wanted.notifications)
                .then(|| ByName(sheet.notifications().map(|(name, unread)| (name, plain(unread))).collect())),
            views: sheet.views.as_ref().filter(|views| !views.is_empty()).map(|views| ByName(views.iter().map(view).collect())),
        }
    }
}

impl Sheet {
    /// When degraded, the kinds that are as last known.
    fn stale(&self, wanted: Wanted) -> Vec<&'static str> {
        let shows_views = self.shows_views() && self.views.is_some();
        let there = |kind: &str| match kind {
            "feed" => self.feed.is_some(),
            "chats" => self.chats.is_some(),
            _ => true,
        };
        let without = |names: Vec<&'static str>| names.into_iter().filter(|kind| there(kind)).collect();
        let mut names: Vec<_> = match (&self.entry, self.own_is_stale, self.shared_is_stale) {
            (None, ..) | (Some(_), false, false) => return Vec::new(),
            (Some(_), true, _) => without(wanted.names(|_| true)),
            (Some(_), false, true) => without(wanted.names(is_shared)),
        };
        names.extend(shows_views.then_some("views"));
        names
    }

    /// When degraded, the kinds that are not known.
    fn missing(&self, wanted: Wanted) -> Vec<&'static str> {
        let mut names = match &self.entry {
            None => wanted.names(|_| true),
            Some(_) => {
                let shared = [("feed", wanted.feed && self.feed.is_none()), ("chats", wanted.chats && self.chats.is_none())];
                shared.into_iter().filter(|(_, missing)| *missing).map(|(kind, _)| kind).collect()
            }
        };
        names.extend(self.views.is_none().then_some("views"));
        names
    }
}
