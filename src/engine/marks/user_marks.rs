//! A user's marks of counters, channels and dots: one text in the user's row, as
//! `b:news 5;c:mention 120 3 118-119`.
//!
//! Each mark is a letter for its kind, the name, the head, how far the mark is behind it, and the
//! positions that were taken back; what is 0 or empty at the end is left out. They are in the order
//! of the text. The cache entry holds the same text, and people read it in SQL as it is.
//!
//! A counter that was deleted leaves its head behind (`g:like 120`), so that it continues there
//! when it is made again. [`MAX_DELETED_COUNTERS`] heads are kept; of the others one number, the
//! highest (`g: 57`), at which a counter begins whose head is not kept.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{Kind, Mark};
use crate::base::clock::UnixMs;

/// Of how many deleted counters a user's row keeps the head. Above it, the lowest head is forgotten.
pub const MAX_DELETED_COUNTERS: usize = 100;

/// The letter of the heads that deleted counters leave behind.
const DELETED: &str = "g:";

/// What keys begin with: marks of channels, of counters and of dots, and heads of deleted counters.
pub const SORTS_OF_MARKS: [&str; 4] = ["b:", "c:", "d:", DELETED];

/// A user's marks of counters, channels and dots. What a newer version wrote there stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserMarks(Arc<str>);

/// A mark as the text has it, before anything is brought into order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedMark<'a> {
    pub name: &'a str,
    pub head: i64,
    /// How far the mark is below the head.
    pub behind: i64,
    /// The positions that were taken back, as runs.
    pub retracted: &'a str,
}

impl PackedMark<'_> {
    /// How far the user has read, 0 to head.
    #[must_use]
    pub fn mark(&self) -> i64 {
        let head = self.head.max(0);
        head - self.behind.clamp(0, head)
    }

    /// What the user has not read: never negative.
    #[must_use]
    pub fn unread(&self) -> i64 {
        if self.retracted.is_empty() { self.head.max(0) - self.mark() } else { self.unpack().unread() }
    }

    fn unpack(&self) -> Mark {
        Mark::from_row(self.head, self.mark(), self.retracted, UnixMs(0))
    }
}

/// The letter of a kind; None for those whose marks are elsewhere.
fn letter(kind: Kind) -> Option<char> {
    match kind {
        Kind::Counter => Some('c'),
        Kind::Broadcast => Some('b'),
        Kind::Dot => Some('d'),
        Kind::View | Kind::Post | Kind::Group | Kind::BroadcastState => None,
    }
}

/// Splits a mark into letter and name, and its numbers.
fn split(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// The marks of a text, each as letter and name, and its numbers.
fn all(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(';').filter(|text| !text.is_empty()).map(split)
}

/// The name in such a key, if it is of this kind.
fn name_of(key: &str, kind: Kind) -> Option<&str> {
    key.strip_prefix(letter(kind)?)?.strip_prefix(':')
}

fn packed<'a>(name: &'a str, numbers: &'a str) -> Option<PackedMark<'a>> {
    let (head, rest) = split(numbers);
    let (behind, retracted) = split(rest);
    let behind = if behind.is_empty() { 0 } else { behind.parse().ok()? };
    Some(PackedMark { name, head: head.parse().ok()?, behind, retracted })
}

/// The marks of a kind in a text, in the order of their names.
pub(super) fn of_kind(text: &str, kind: Kind) -> impl Iterator<Item = PackedMark<'_>> {
    all(text).filter_map(move |(key, numbers)| packed(name_of(key, kind)?, numbers))
}

/// One mark of a text.
pub(super) fn find<'a>(text: &'a str, kind: Kind, name: &str) -> Option<PackedMark<'a>> {
    let named = |(key, numbers)| Some((name_of(key, kind).filter(|found| *found == name)?, numbers));
    all(text).find_map(named).and_then(|(name, numbers)| packed(name, numbers))
}

/// Whether marks of this kind are in the user's row.
#[must_use]
pub fn is_own(kind: Kind) -> bool {
    letter(kind).is_some()
}

impl UserMarks {
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

    /// The marks of a kind, in the order of their names.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = PackedMark<'_>> {
        of_kind(&self.0, kind)
    }

    /// The marks of a kind with their names, in the order of the names.
    pub fn marks(&self, kind: Kind) -> impl Iterator<Item = (&str, Mark)> {
        self.of_kind(kind).map(|packed| (packed.name, packed.unpack()))
    }

    /// Whether the user has this mark.
    #[must_use]
    pub fn has(&self, kind: Kind, name: &str) -> bool {
        find(&self.0, kind, name).is_some()
    }

    /// One mark, or the default if the user has no such mark. A counter that was deleted is read up to
    /// the head that it had.
    #[must_use]
    pub fn get(&self, kind: Kind, name: &str) -> Mark {
        match find(&self.0, kind, name) {
            Some(packed) => packed.unpack(),
            None if kind == Kind::Counter => self.deleted(name),
            None => Mark::default(),
        }
    }

    /// What a deleted counter left behind, or one that may be forgotten.
    fn deleted(&self, name: &str) -> Mark {
        let heads = || self.deleted_counters();
        let kept = heads().find(|(of, _)| *of == name).or_else(|| heads().find(|(of, _)| of.is_empty()));
        kept.map(|(_, head)| Mark::from_row(head, head, "", UnixMs(0))).unwrap_or_default()
    }

    /// The heads that deleted counters left behind, by name; the highest of the forgotten ones has an empty name.
    pub fn deleted_counters(&self) -> impl Iterator<Item = (&str, i64)> {
        all(&self.0).filter_map(|(key, numbers)| Some((key.strip_prefix(DELETED)?, split(numbers).0.parse().ok()?)))
    }

    /// Deletes a counter, whose head is kept. Whether there was one.
    pub fn delete_counter(&mut self, name: &str) -> bool {
        let Some(head) = find(&self.0, Kind::Counter, name).map(|packed| packed.unpack().head()) else { return false };
        self.write(&format!("c:{name}"), None);
        self.write(&format!("{DELETED}{name}"), Some(&Mark::from_row(head, head, "", UnixMs(0))));
        let named = || self.deleted_counters().filter(|(of, _)| !of.is_empty());
        if named().count() > MAX_DELETED_COUNTERS
            && let Some((lowest, head)) = named().min_by_key(|(_, head)| *head).map(|(of, head)| (format!("{DELETED}{of}"), head))
        {
            let highest = self.deleted_counters().find(|(of, _)| of.is_empty()).map_or(head, |(_, highest)| highest.max(head));
            self.write(&lowest, None);
            self.write(DELETED, Some(&Mark::from_row(highest, highest, "", UnixMs(0))));
        }
        true
    }

    /// Sets one mark, or removes it where it is the default.
    pub fn set(&mut self, kind: Kind, name: &str, mark: &Mark) {
        let Some(letter) = letter(kind) else { return };
        if kind == Kind::Counter && self.0.contains(DELETED) {
            // It is there again, and has its head itself.
            self.write(&format!("{DELETED}{name}"), None);
        }
        self.write(&format!("{letter}:{name}"), Some(mark).filter(|mark| **mark != Mark::default()));
    }

    /// Writes one mark, or removes it.
    fn write(&mut self, key: &str, mut mark: Option<&Mark>) {
        let mut text = String::with_capacity(self.0.len() + key.len() + 16);
        for (other, numbers) in all(&self.0) {
            if other >= key
                && let Some(mark) = mark.take()
            {
                write_mark(&mut text, key, mark);
            }
            if other != key {
                write_text(&mut text, other, numbers);
            }
        }
        if let Some(mark) = mark {
            write_mark(&mut text, key, mark);
        }
        self.0 = text.into();
    }

    /// Keeps of the marks of a kind those that `keeps` says of, by name and how far the user has read.
    pub fn retain(&mut self, kind: Kind, keeps: impl Fn(&str, i64) -> bool) {
        let mut text = String::with_capacity(self.0.len());
        for (key, numbers) in all(&self.0) {
            let packed = name_of(key, kind).and_then(|name| packed(name, numbers));
            if packed.is_none_or(|packed| keeps(packed.name, packed.mark())) {
                write_text(&mut text, key, numbers);
            }
        }
        self.0 = text.into();
    }

    /// Removes all marks of these kinds.
    pub fn remove(&mut self, kinds: &[Kind]) {
        let mut text = String::with_capacity(self.0.len());
        for (key, numbers) in all(&self.0) {
            if !kinds.iter().any(|kind| name_of(key, *kind).is_some()) {
                write_text(&mut text, key, numbers);
            }
        }
        self.0 = text.into();
    }

    /// Whether it holds marks of a kind that this version does not know (written by a newer one).
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        all(&self.0).any(|(key, _)| !SORTS_OF_MARKS.iter().any(|known| key.starts_with(known)))
    }
}

fn write_text(text: &mut String, key: &str, numbers: &str) {
    if !text.is_empty() {
        text.push(';');
    }
    text.push_str(key);
    if !numbers.is_empty() {
        text.push(' ');
        text.push_str(numbers);
    }
}

fn write_mark(text: &mut String, key: &str, mark: &Mark) {
    write_text(text, key, "");
    let behind = mark.head() - mark.mark();
    // Writing to a String cannot fail.
    let _ = write!(text, " {}", mark.head());
    if behind > 0 || !mark.retracted().is_empty() {
        let _ = write!(text, " {behind}");
    }
    if !mark.retracted().is_empty() {
        let _ = write!(text, " {}", mark.retracted());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::marks::Intervals;

    fn mark(head: i64, mark: i64, retracted: &str) -> Mark {
        Mark::from_row(head, mark, retracted, UnixMs(0))
    }

    #[test]
    fn a_row_reads_as_the_page_on_marks_has_it() {
        let mut marks = UserMarks::default();
        marks.set(Kind::Counter, "mention", &mark(120, 117, "118-119"));
        assert_eq!(marks.as_str(), "c:mention 120 1", "what was taken back right above the mark is passed");
        marks.set(Kind::Counter, "mention", &mark(120, 116, "118-119"));
        marks.set(Kind::Broadcast, "news", &mark(5, 5, ""));
        assert_eq!(marks.as_str(), "b:news 5;c:mention 120 4 118-119");
        let packed: Vec<_> = marks.of_kind(Kind::Counter).collect();
        assert_eq!(packed, [PackedMark { name: "mention", head: 120, behind: 4, retracted: "118-119" }]);
        assert_eq!((packed[0].unread(), packed[0].mark()), (2, 116));
        assert_eq!(marks.get(Kind::Counter, "mention"), mark(120, 116, "118-119"));
        assert_eq!(marks.get(Kind::Dot, "mention"), Mark::default());
        marks.set(Kind::Counter, "mention", &Mark::default());
        assert_eq!(marks.as_str(), "b:news 5");
    }

    #[test]
    fn what_a_newer_version_wrote_stays() {
        let mut marks = UserMarks::from_row("b:news 5;x:new 7 seven;y");
        assert!(marks.has_unknown());
        marks.set(Kind::Counter, "like", &mark(1, 0, ""));
        assert_eq!(marks.as_str(), "b:news 5;c:like 1 1;x:new 7 seven;y");
        marks.remove(&[Kind::Broadcast, Kind::Dot]);
        assert_eq!(marks.as_str(), "c:like 1 1;x:new 7 seven;y");
        assert!(!UserMarks::from_row("b:news 5;c:like 1;d:mall 2").has_unknown());
        assert!(!UserMarks::default().has_unknown());
    }

    #[test]
    fn a_deleted_counter_leaves_its_head_behind() {
        let mut marks = UserMarks::from_row("b:news 5;c:like 9 4;c:mention 120 3 118-119;d:mall 2;g:old 7;z:new");
        assert!(marks.delete_counter("mention") && !marks.delete_counter("mention") && !marks.delete_counter("none"));
        assert_eq!(marks.as_str(), "b:news 5;c:like 9 4;d:mall 2;g:mention 120;g:old 7;z:new");
        assert!(marks.marks(Kind::Counter).map(|(name, _)| name).eq(["like"]) && !marks.has(Kind::Counter, "mention"));
        assert_eq!(marks.get(Kind::Counter, "mention"), mark(120, 120, ""));
        assert_eq!(marks.get(Kind::Dot, "mention"), Mark::default());
        marks.set(Kind::Counter, "mention", &mark(122, 120, ""));
        assert_eq!(marks.as_str(), "b:news 5;c:like 9 4;c:mention 122 2;d:mall 2;g:old 7;z:new");
        marks.remove(&[Kind::Broadcast, Kind::Dot]);
        assert_eq!(marks.as_str(), "c:like 9 4;c:mention 122 2;g:old 7;z:new", "those who are forgotten keep counters");
    }

    #[test]
    fn of_the_heads_that_are_forgotten_the_highest_is_kept() {
        let mut marks = UserMarks::default();
        let most = i64::try_from(MAX_DELETED_COUNTERS).unwrap();
        for head in (1..=most + 2).rev() {
            marks.set(Kind::Counter, &format!("b{head}"), &mark(head, 0, ""));
            assert!(marks.delete_counter(&format!("b{head}")));
        }
        assert_eq!(marks.deleted_counters().count(), MAX_DELETED_COUNTERS + 1);
        assert!(!marks.has_unknown());
        let head = |name: &str| marks.get(Kind::Counter, name).head();
        assert_eq!((head("b1"), head("b2"), head("b3"), head("never")), (2, 2, 3, 2));
        assert_eq!(head(&format!("b{}", most + 2)), most + 2);
    }

    #[test]
    fn marks_of_a_kind_go_by_name_and_place() {
        let mut marks = UserMarks::from_row("b:a 5;b:b 7;c:a 5;d:a 5;x:a 5");
        marks.retain(Kind::Broadcast, |name, at| name == "a" && at > 4);
        assert_eq!(marks.as_str(), "b:a 5;c:a 5;d:a 5;x:a 5");
        marks.retain(Kind::Broadcast, |_, at| at > 5);
        assert_eq!(marks.as_str(), "c:a 5;d:a 5;x:a 5");
    }

    #[test]
    fn numbers_out_of_order_are_brought_into_order() {
        for text in ["c:like 4 -5", "c:like 4 9", "c:like 4", "c:like -4 2 1-3", "c:like 4 2 9-8 x"] {
            let mark = UserMarks::from_row(text).get(Kind::Counter, "like");
            assert!(0 <= mark.mark() && mark.mark() <= mark.head() && mark.unread() >= 0, "{text}: {mark:?}");
            let packed: Vec<_> = of_kind(text, Kind::Counter).collect();
            assert!(packed.iter().all(|packed| packed.unread() >= 0), "{text}");
        }
        assert_eq!(UserMarks::from_row("c:like x;c:;c: 3;:;c").get(Kind::Counter, "like"), Mark::default());
    }

    type Step = (usize, String, i64, i64, Vec<i64>);

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (0..3_usize, "[a-c][a-c.-]{0,2}", 0..30_i64, 0..30_i64, prop::collection::vec(1..30_i64, 0..4));
        prop::collection::vec(step, 0..40)
    }

    proptest! {
        #[test]
        fn they_are_a_sorted_map(steps in steps(), forgotten in any::<bool>()) {
            let kinds = [Kind::Counter, Kind::Broadcast, Kind::Dot];
            let (mut marks, mut model) = (UserMarks::default(), BTreeMap::new());
            for (kind, name, head, behind, retracted) in steps {
                let mut intervals = Intervals::default();
                retracted.iter().for_each(|at| intervals.insert(*at, *at));
                let mark = mark(head, head - behind, &intervals.to_string());
                marks.set(kinds[kind], &name, &mark);
                model.insert((kinds[kind], name), mark);
            }
            if forgotten {
                marks.remove(&[Kind::Broadcast, Kind::Dot]);
                model.retain(|(kind, _), _| *kind == Kind::Counter);
            }
            model.retain(|_, mark| *mark != Mark::default());
            for kind in kinds {
                let found: Vec<_> = marks.marks(kind).map(|(name, mark)| (name.to_owned(), mark)).collect();
                let wanted: Vec<_> = model.iter().filter(|((of, _), _)| *of == kind).map(|((_, name), mark)| (name.clone(), mark.clone())).collect();
                prop_assert_eq!(&found, &wanted);
                prop_assert!(marks.of_kind(kind).map(|packed| packed.unread()).eq(wanted.iter().map(|(_, mark)| mark.unread())));
                for (name, mark) in wanted {
                    prop_assert_eq!(marks.get(kind, &name), mark);
                }
            }
            prop_assert!(!marks.has_unknown());
        }
    }
}
