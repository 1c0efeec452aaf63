//! What a poll returns: the kinds that are wanted ([`Wanted`]), and the sheet as JSON ([`SheetOut`]). A new kind has its places here and in `parts.rs`.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::Sheet;
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::features::groups::chats::ChatCount;
use crate::features::notifications::http::UnreadOut;

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
        if cap.is_some_and(|cap| !(1..=MAX_CAP).contains(&cap)) {
            return Err(("cap", format!("must be between 1 and {MAX_CAP}")));
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
                _ => return Err(("include", format!("must be one of {KINDS}"))),
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

/// An unread count with the head at which it was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CounterOut {
    /// The number of unread items.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The current head; send it back as `up_to` to clear exactly what the user saw.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// With `cap`: whether the count is higher than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

/// A red dot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DotOut {
    /// Whether it is lit for the user.
    pub lit: bool,
    /// How often the dot was lit; send it back as `up_to` to clear exactly what the user saw.
    #[schema(minimum = 0, example = 4)]
    pub head: i64,
}

/// Unread messages of groups and direct chats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatsOut {
    /// The number of unread messages, without muted chats.
    #[schema(minimum = 0, example = 6)]
    pub unread: i64,
    /// The number of groups with unread messages.
    #[schema(minimum = 0, example = 2)]
    pub groups: i64,
    /// The number of direct chats with unread messages.
    #[schema(minimum = 0, example = 1)]
    pub directs: i64,
    /// With `cap`: whether the count is higher than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

/// The unread count of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ViewOut {
    /// The number of items since the last visit; 0 if there was no visit.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The number of items ever added; send it back as `up_to` to clear exactly what the user saw.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// When the user last visited the view; omitted if the user never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_access_at: Option<UnixMs>,
    /// With `cap`: whether the count is higher than shown.
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

/// The unread summary of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SheetOut)]
pub struct SheetOut<'a> {
    /// The user.
    pub user_id: UserId,
    /// Identifies the history of the database. It changes when the database was restored: clients
    /// must then discard their state.
    #[schema(example = "7eb1c0de5a0f3d29")]
    pub epoch: &'a str,
    /// The number of changes of the user's own rows. It never goes down within an epoch: a response
    /// with a lower revision is older. Omitted if unknown in a degraded response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 918)]
    pub revision: Option<i64>,
    /// The sum of the versions of the shared heads in this response. Of two responses to one
    /// request at the same `revision`, the one with the lower number is older. Omitted if unknown
    /// in a degraded response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 5120)]
    pub shared_revision: Option<i64>,
    /// The number on the app icon: the sum of counters, broadcasts, chats and notifications.
    /// Omitted if one of them was not requested or is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 3)]
    pub total: Option<i64>,
    /// With `cap`: whether the total is higher than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
    /// True if a store was unavailable: parts are the last known ones (`stale`) or omitted
    /// (`missing`).
    pub degraded: bool,
    /// When degraded: the parts that are the last known ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<&'static str>,
    /// When degraded: the unknown parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<&'static str>,
    /// The counter badges by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, CounterOut>>)]
    pub counters: Option<ByName<'a, CounterOut>>,
    /// The broadcast channels by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, CounterOut>>)]
    pub broadcasts: Option<ByName<'a, CounterOut>>,
    /// The dots by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, DotOut>>)]
    pub dots: Option<ByName<'a, DotOut>>,
    /// Posts, since the user last saw the feed, of the users that the user follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub feed: Option<UnreadOut>,
    /// Groups and direct messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub chats: Option<ChatsOut>,
    /// The notifications by type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, UnreadOut>>)]
    pub notifications: Option<ByName<'a, UnreadOut>>,
    /// The requested views, by name and id.
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
        let view = |view: &'a crate::features::views::ViewCount| {
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
