//! What a sheet shows: the kinds, how the cache holds each ([`part`]), and how a poll returns it ([`SheetOut`]). A new kind has all its places here.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::State;
use crate::cache::{Entry, Parts};
use crate::ids::UserId;
use crate::marks::{Kind, Mark, MarkKey};

/// One counter of a sheet, as the cache holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// What the user has not read.
    pub unread: i64,
    /// How many there ever were.
    pub head: i64,
}

/// A mark as a part of a cache entry: its field and its value.
#[must_use]
pub fn part(key: &MarkKey, mark: &Mark) -> (Box<str>, Box<str>) {
    match key.kind {
        Kind::Counter => (format!("c:{}", key.name).into(), format!("{} {}", mark.unread(), mark.head()).into()),
    }
}

/// The counters among the parts, in the order of their names.
pub fn counters(parts: &Parts) -> impl Iterator<Item = (&str, Counter)> {
    parts.iter().filter_map(|(field, value)| {
        let name = field.strip_prefix("c:")?;
        let (unread, head) = value.split_once(' ')?;
        Some((name, Counter { unread: unread.parse().ok()?, head: head.parse().ok()? }))
    })
}

/// What of a sheet is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Counters are part of it.
    pub counters: bool,
    /// No count shows more than this.
    pub cap: Option<i64>,
}

/// The kinds that `include` may name.
const KINDS: &str = "counters";

/// The highest `cap`.
pub const MAX_CAP: i64 = 1_000_000_000;

impl Wanted {
    /// What `include` (names of kinds, comma-separated) and `cap` ask for.
    ///
    /// # Errors
    /// What is wrong, with the name of the parameter.
    pub fn parse(include: Option<&str>, cap: Option<i64>) -> Result<Self, (&'static str, String)> {
        if let Some(cap) = cap.filter(|cap| !(1..=MAX_CAP).contains(cap)) {
            return Err(("cap", format!("{cap} is not from 1 to {MAX_CAP}")));
        }
        let Some(include) = include else { return Ok(Self { cap, ..Self::default() }) };
        let mut wanted = Self { counters: false, cap };
        for kind in include.split(',') {
            match kind {
                "counters" => wanted.counters = true,
                other => return Err(("include", format!("'{}' is not one of: {KINDS}", other.chars().take(64).collect::<String>()))),
            }
        }
        Ok(wanted)
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self { counters: true, cap: None }
    }
}

/// One counter in a sheet.
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

/// The counters of a sheet in the order of their names; in JSON an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters<'a>(Vec<(&'a str, CounterOut)>);

impl Serialize for Counters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, counter)| (name, counter)))
    }
}

/// All of a user's unread state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SheetOut)]
pub struct SheetOut<'a> {
    /// The user.
    pub user_id: UserId,
    /// Counts the changes of the user's own rows and never goes down: an answer with a lower one is older.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
    /// What an app icon shows; left out when one of its kinds was not asked for or is missing.
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
    pub counters: Option<Counters<'a>>,
}

impl<'a> SheetOut<'a> {
    /// The sheet of this state.
    #[must_use]
    pub fn new(user: UserId, state: &'a State, wanted: Wanted) -> Self {
        let (entry, stale) = match state {
            State::Current(entry) => (Some(entry), false),
            State::LastKnown(entry) => (Some(entry), true),
            State::Unknown => (None, false),
        };
        let names = || if wanted.counters { vec!["counters"] } else { Vec::new() };
        let mut sheet = Self {
            user_id: user,
            revision: entry.map_or(0, |entry| entry.revision),
            total: None,
            capped: None,
            degraded: stale || entry.is_none(),
            stale: if stale { names() } else { Vec::new() },
            missing: if entry.is_none() { names() } else { Vec::new() },
            counters: None,
        };
        if let Some(entry) = entry.filter(|_| wanted.counters) {
            sheet.add_counters(entry, wanted.cap);
        }
        sheet
    }

    fn add_counters(&mut self, entry: &'a Entry, cap: Option<i64>) {
        let most = cap.unwrap_or(i64::MAX);
        let mut total = 0_i64;
        let mut out = Vec::with_capacity(entry.parts.len());
        for (name, counter) in counters(&entry.parts) {
            // Each term is clamped on its own, so that none can eat another.
            total = total.saturating_add(counter.unread.max(0));
            let unread = counter.unread.clamp(0, most);
            out.push((name, CounterOut { unread, head: counter.head, capped: cap.map(|cap| counter.unread > cap) }));
        }
        self.total = Some(total.min(most));
        self.capped = cap.map(|cap| total > cap);
        self.counters = Some(Counters(out));
    }
}
