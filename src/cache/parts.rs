//! The parts of an entry, in one piece of memory: anyone who shows an unread summary reads all of
//! them, and each text in a place of its own was a wait for memory.

use std::fmt;
use std::ops::Range;

/// The parts of an unread summary as the cache holds them: a short field (`g:42`) and its
/// encoded value (`120`). The cache does not look into either, so that a new kind of badge
/// changes nothing here. A field never begins with `!`, which is the protocol's own.
#[derive(Default)]
pub struct Parts {
    /// The fields and values, in the order in which they came.
    text: String,
    /// Where each is, in the order of the fields.
    places: Vec<Place>,
    /// Bytes of the text that were replaced.
    dead_bytes: usize,
}

/// A field, and its value behind it or elsewhere.
#[derive(Clone)]
struct Place {
    field: Range<usize>,
    value: Range<usize>,
}

impl Parts {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// None, with room for so many of usual length.
    pub(super) fn with_room(parts: usize) -> Self {
        const USUAL_BYTES: usize = 24;
        Self { text: String::with_capacity(parts * USUAL_BYTES), places: Vec::with_capacity(parts), dead_bytes: 0 }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How much memory they take, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.text.capacity() + self.places.capacity() * size_of::<Place>()
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&str> {
        let at = self.find(field).ok()?;
        self.places.get(at).map(|place| self.at(&place.value))
    }

    /// All of them, in the order of their fields.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places.iter().map(|place| (self.at(&place.field), self.at(&place.value)))
    }

    /// Those whose field begins with this, the rest of the field and the value, in the order of
    /// their fields.
    pub fn starting_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let from = self.places.partition_point(|place| self.at(&place.field) < prefix);
        let rest = self.places.get(from..).unwrap_or_default().iter();
        rest.map_while(move |place| Some((self.at(&place.field).strip_prefix(prefix)?, self.at(&place.value))))
    }

    /// Sets a field.
    pub fn insert(&mut self, field: impl AsRef<str>, value: impl AsRef<str>) {
        let (field, value) = (field.as_ref(), value.as_ref());
        match self.find(field) {
            Err(at) => {
                let place = Place { field: self.add(field), value: self.add(value) };
                self.places.insert(at, place);
            }
            Ok(at) => self.replace(at, value),
        }
    }

    fn replace(&mut self, at: usize, value: &str) {
        let Some(old) = self.places.get(at).map(|place| place.value.clone()) else { return };
        if old.len() == value.len() {
            self.text.replace_range(old, value);
            return;
        }
        let new = self.add(value);
        if let Some(place) = self.places.get_mut(at) {
            place.value = new;
        }
        self.dead_bytes += old.len();
        // Numbers grow seldom: the text is written again only once half of it is dead.
        if self.dead_bytes > self.text.len() / 2 {
            *self = self.clone();
        }
    }

    fn add(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    fn at(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// The place of a field, or the one that it would have. They come sorted, most often.
    fn find(&self, field: &str) -> Result<usize, usize> {
        match self.places.last() {
            Some(last) if self.at(&last.field) >= field => self.places.binary_search_by(|place| self.at(&place.field).cmp(field)),
            _ => Err(self.places.len()),
        }
    }
}

/// A copy without anything dead.
impl Clone for Parts {
    fn clone(&self) -> Self {
        let mut clone =
            Self { text: String::with_capacity(self.text.len() - self.dead_bytes), places: Vec::with_capacity(self.len()), dead_bytes: 0 };
        for (field, value) in self.iter() {
            let place = Place { field: clone.add(field), value: clone.add(value) };
            clone.places.push(place);
        }
        clone
    }
}

impl PartialEq for Parts {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Parts {}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Extend<(Box<str>, Box<str>)> for Parts {
    fn extend<I: IntoIterator<Item = (Box<str>, Box<str>)>>(&mut self, parts: I) {
        parts.into_iter().for_each(|(field, value)| self.insert(field, value));
    }
}

impl FromIterator<(Box<str>, Box<str>)> for Parts {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Box<str>)>>(parts: I) -> Self {
        let mut all = Self::new();
        all.extend(parts);
        all
    }
}

impl<const N: usize> From<[(Box<str>, Box<str>); N]> for Parts {
    fn from(parts: [(Box<str>, Box<str>); N]) -> Self {
        parts.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_sorted_map(steps in proptest::collection::vec(("[a-d]{0,2}", "[0-9é]{0,6}"), 0..60)) {
            let (mut parts, mut model) = (Parts::new(), BTreeMap::new());
            for (field, value) in &steps {
                parts.insert(field, value);
                model.insert(field.as_str(), value.as_str());
                prop_assert!(parts.dead_bytes <= parts.text.len() / 2);
            }
            prop_assert!(parts.iter().eq(model.iter().map(|(field, value)| (*field, *value))));
            prop_assert_eq!(parts.len(), model.len());
            prop_assert_eq!(parts.is_empty(), model.is_empty());
            prop_assert_eq!(parts.get("ab"), model.get("ab").copied());
            let again: Parts = model.iter().map(|(field, value)| ((*field).into(), (*value).into())).collect();
            prop_assert_eq!(&parts, &again);
            prop_assert_eq!(parts.clone().text.len(), again.text.len());
        }
    }
}
