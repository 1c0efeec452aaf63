//! What a user has set: one text in the user's row, as `r:0;t:broadcasts.system counters.like`.
//!
//! Each setting is a letter and a value; one with its default is left out. The cache entry holds
//! the same text. To add a setting: a letter, a function that reads it, and one that sets it.

use std::sync::Arc;

/// What the total leaves out, sorted.
const NOT_IN_TOTAL: &str = "t";

/// `0` where the user shares no receipts.
const RECEIPTS: &str = "r";

/// How often the user has switched that, and the last row of the inbox when receipts were last
/// shared again (`2 57`).
const SWITCHES: &str = "h";

/// `1` where the user approves follows.
const APPROVES: &str = "a";

/// Who may see the user's lists of follows: `followers` or `self`; all, where it is left out.
const LISTS: &str = "l";

/// Who may see a user's lists of follows, beside the user and services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ListVisibility {
    /// Everybody.
    #[default]
    All,
    /// The user's followers.
    Followers,
    /// Nobody.
    Own,
}
/// `1` where services hear of every change of the user's numbers.
const PUSH: &str = "p";

/// `1` once the user is erased.
const ERASED: &str = "e";

/// A user's settings. What a newer version wrote there stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserSettings(Arc<str>);

/// The settings of a text, each as letter and value.
fn all(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(';').filter_map(|setting| setting.split_once(':'))
}

fn get<'a>(text: &'a str, letter: &str) -> Option<&'a str> {
    // Most users have set nothing, and each poll asks.
    if text.is_empty() {
        return None;
    }
    all(text).find_map(|(of, value)| (of == letter).then_some(value))
}

/// What the total leaves out (`counters.like`), sorted.
pub(super) fn not_in_total(text: &str) -> impl Iterator<Item = &str> {
    get(text, NOT_IN_TOTAL).unwrap_or_default().split(' ').filter(|part| !part.is_empty())
}

/// Whether others see which messages the user has read.
pub(super) fn shares_receipts(text: &str) -> bool {
    get(text, RECEIPTS) != Some("0")
}

/// Whether the user is erased.
pub(super) fn is_erased(text: &str) -> bool {
    get(text, ERASED).is_some()
}

/// Whether a follow of the user is a request at first.
pub(super) fn approves_follows(text: &str) -> bool {
    get(text, APPROVES) == Some("1")
}

/// Who may see the user's lists of follows. What a newer version knows is for nobody else, and so is what is left of an
/// erased user's.
pub(super) fn lists(text: &str) -> ListVisibility {
    match get(text, LISTS) {
        _ if is_erased(text) => ListVisibility::Own,
        None => ListVisibility::All,
        Some("followers") => ListVisibility::Followers,
        Some(_) => ListVisibility::Own,
    }
}

/// A user's switches between sharing and hiding receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// How many there were. After an odd number, the user hides.
    pub count: i64,
    /// The last row of the user's inbox at the last switch to sharing; 0: there was none.
    pub shared_from: i64,
}

impl Switches {
    /// Whether the user hides what is read.
    #[must_use]
    pub fn hides(self) -> bool {
        self.count % 2 == 1
    }
}

impl UserSettings {
    /// What a row holds.
    #[must_use]
    pub fn from_row(text: &str) -> Self {
        Self(text.into())
    }

    /// What a row holds.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the total leaves out (`counters.like`), sorted.
    pub fn not_in_total(&self) -> impl Iterator<Item = &str> {
        not_in_total(&self.0)
    }

    /// Whether others see which messages the user has read.
    #[must_use]
    pub fn shares_receipts(&self) -> bool {
        shares_receipts(&self.0)
    }

    /// Whether a follow of the user is a request at first.
    #[must_use]
    pub fn approves_follows(&self) -> bool {
        approves_follows(&self.0)
    }

    /// Sets whether a follow of the user is a request at first.
    pub fn set_approves_follows(&mut self, approves: bool) {
        self.set(APPROVES, if approves { "1" } else { "" });
    }

    /// Who may see the user's lists of follows.
    #[must_use]
    pub fn lists(&self) -> ListVisibility {
        lists(&self.0)
    }

    /// Sets who may see the user's lists of follows.
    pub fn set_lists(&mut self, lists: ListVisibility) {
        let value = match lists {
            ListVisibility::All => "",
            ListVisibility::Followers => "followers",
            ListVisibility::Own => "self",
        };
        self.set(LISTS, value);
    }

    /// The switches between sharing and hiding.
    #[must_use]
    pub fn switches(&self) -> Switches {
        let (count, shared_from) = get(&self.0, SWITCHES).and_then(|text| text.split_once(' ')).unwrap_or_default();
        let switches = Switches { count: count.parse().unwrap_or(0), shared_from: shared_from.parse().unwrap_or(0) };
        // A version that did not count them may have switched.
        let missed = i64::from(switches.hides() == self.shares_receipts());
        Switches { count: switches.count + missed, ..switches }
    }

    /// Whether services hear of every change of the user's numbers: a device has asked for it.
    #[must_use]
    pub fn has_push(&self) -> bool {
        get(&self.0, PUSH).is_some()
    }

    /// Sets whether services hear of every change of the user's numbers.
    pub fn set_push(&mut self, push: bool) {
        self.set(PUSH, if push { "1" } else { "" });
    }

    /// Whether the user is erased: its rows are being removed.
    #[must_use]
    pub fn is_erased(&self) -> bool {
        is_erased(&self.0)
    }

    /// Of a user that is erased, and has no row any more.
    #[must_use]
    pub fn erased() -> Self {
        Self(format!("{ERASED}:1").into())
    }

    /// The user is erased. What it hides stays hidden for as long as its rows are there.
    pub fn erase(&mut self) {
        for letter in [NOT_IN_TOTAL, APPROVES, PUSH] {
            self.set(letter, "");
        }
        self.set(ERASED, "1");
    }

    /// Sets what the total leaves out.
    pub fn set_not_in_total<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) {
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort_unstable();
        parts.dedup();
        self.set(NOT_IN_TOTAL, &parts.join(" "));
    }

    /// Sets whether others see which messages the user has read. `inbox_head` is the last row of the
    /// user's inbox.
    pub fn set_shares_receipts(&mut self, shares: bool, inbox_head: i64) {
        let Switches { count, shared_from } = self.switches();
        if shares != self.shares_receipts() {
            let shared_from = if shares { inbox_head } else { shared_from };
            self.set(RECEIPTS, if shares { "" } else { "0" });
            self.set(SWITCHES, &format!("{} {shared_from}", count + 1));
        }
    }

    /// Sets one value; an empty one is the default.
    fn set(&mut self, letter: &str, value: &str) {
        let mut settings: Vec<_> = all(&self.0).filter(|(of, _)| *of != letter).collect();
        if !value.is_empty() {
            settings.push((letter, value));
        }
        settings.sort_unstable();
        let settings: Vec<_> = settings.into_iter().map(|(of, value)| format!("{of}:{value}")).collect();
        self.0 = settings.join(";").into();
    }
}

/// The names of one kind that the total leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOut<'a>(Vec<&'a str>);

impl<'a> LeftOut<'a> {
    /// Those of a kind among what the total leaves out.
    pub(super) fn new(not_in_total: impl Iterator<Item = &'a str>, kind: &str) -> Self {
        Self(not_in_total.filter_map(|part| part.strip_prefix(kind)?.strip_prefix('.')).collect())
    }

    /// Whether the total leaves out this one.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.binary_search(&name).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_row_reads_as_the_migration_has_it() {
        let mut settings = UserSettings::default();
        settings.set_not_in_total(["counters.like", "broadcasts.system", "counters.like"]);
        settings.set_shares_receipts(true, 7);
        assert_eq!(settings.as_str(), "t:broadcasts.system counters.like", "the default is no switch");
        settings.set_shares_receipts(false, 7);
        assert_eq!(settings.as_str(), "h:1 0;r:0;t:broadcasts.system counters.like");
        assert!(!settings.shares_receipts() && settings.switches().hides());
        settings.set_not_in_total([]);
        settings.set_shares_receipts(false, 8);
        settings.set_shares_receipts(true, 9);
        assert_eq!(settings.as_str(), "h:2 9");
        settings.set_shares_receipts(false, 11);
        assert_eq!(settings.as_str(), "h:3 9;r:0");
    }

    #[test]
    fn what_is_said_of_follows_reads_as_it_was_set() {
        let mut settings = UserSettings::default();
        assert!(!settings.approves_follows() && settings.lists() == ListVisibility::All);
        settings.set_approves_follows(true);
        for (lists, text) in
            [(ListVisibility::Followers, "a:1;l:followers"), (ListVisibility::Own, "a:1;l:self"), (ListVisibility::All, "a:1")]
        {
            settings.set_lists(lists);
            assert_eq!((settings.as_str(), settings.lists(), settings.approves_follows()), (text, lists, true));
        }
        settings.set_approves_follows(false);
        assert_eq!(settings, UserSettings::default());
        assert_eq!(UserSettings::from_row("l:friends").lists(), ListVisibility::Own, "a newer version may mean fewer");
    }

    #[test]
    fn push_is_kept_beside_the_others() {
        let mut settings = UserSettings::from_row("h:1 0;r:0");
        assert!(!settings.has_push());
        settings.set_push(true);
        settings.set_push(true);
        assert_eq!((settings.as_str(), settings.has_push()), ("h:1 0;p:1;r:0", true));
        settings.set_push(false);
        assert_eq!((settings.as_str(), settings.has_push()), ("h:1 0;r:0", false));
    }

    #[test]
    fn an_erased_user_reads_as_one() {
        assert_eq!((UserSettings::erased().as_str(), UserSettings::erased().lists()), ("e:1", ListVisibility::Own));
        let mut settings = UserSettings::from_row("a:1;h:1 0;l:followers;p:1;r:0;t:counters.like");
        let hides = settings.switches();
        settings.erase();
        assert_eq!(settings.as_str(), "e:1;h:1 0;l:followers;r:0");
        assert_eq!((settings.is_erased(), settings.switches(), settings.shares_receipts()), (true, hides, false));
        assert_eq!(settings.lists(), ListVisibility::Own, "to followers, too");
        assert!(UserSettings::from_row("e:1").is_erased() && !UserSettings::from_row("h:1 0;r:0").is_erased());
    }

    #[test]
    fn a_switch_that_was_not_counted_counts() {
        let switches = |text: &str| UserSettings::from_row(text).switches();
        assert_eq!(switches(""), Switches::default());
        assert_eq!(switches("r:0"), Switches { count: 1, shared_from: 0 });
        assert_eq!(switches("h:2 9;r:0"), Switches { count: 3, shared_from: 9 });
        assert_eq!(switches("h:3 9"), Switches { count: 4, shared_from: 9 });
    }

    #[test]
    fn what_a_newer_version_wrote_stays() {
        let mut settings = UserSettings::from_row("b:7;z:x y");
        settings.set_not_in_total(["counters.like"]);
        assert_eq!(settings.as_str(), "b:7;t:counters.like;z:x y");
        settings.set_not_in_total([]);
        assert_eq!(settings.as_str(), "b:7;z:x y");
    }

    proptest! {
        #[test]
        fn what_is_left_out_is_a_set(parts in prop::collection::btree_set("(counters|broadcasts)\\.[a-c][a-c.-]{0,2}", 0..12)) {
            let mut settings = UserSettings::default();
            settings.set_not_in_total(parts.iter().map(String::as_str));
            let settings = UserSettings::from_row(settings.as_str());
            prop_assert!(settings.not_in_total().eq(parts.iter()));
            let left_out = LeftOut::new(settings.not_in_total(), "counters");
            for name in ["a", "a.b", "b-", "c", "cc"] {
                prop_assert_eq!(left_out.has(name), parts.contains(&format!("counters.{name}")));
            }
        }
    }
}
