//! A page of events as it is read: rows one after the other, each with many events, until it is full.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::base::error::{Fault, Result};
use crate::db::Db;
use crate::engine::events::publisher::{is_there, with_id};
use crate::engine::events::{EventTypes, store};

/// How many rows are read first; each may hold many events. Then twice as many each time, up to the
/// most.
const FIRST_ROWS: i64 = 4;
const MOST_ROWS: i64 = 256;

/// How many rows one answer passes by in search of the types that were asked for. Then it says how
/// far it came.
const MAX_ROWS_SEARCHED: i64 = 10_000;

/// A page as it is read.
#[derive(Debug)]
pub(super) struct Page {
    /// Each with its number.
    pub(super) items: Vec<(i64, Box<RawValue>)>,
    /// The number of the last event that was looked at, or of the last that fits.
    pub(super) reached: i64,
    pub(super) has_more: bool,
}

/// The type of an event in a row.
#[derive(Deserialize)]
struct TypeOf<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
}

fn is_wanted(types: EventTypes, event: &RawValue) -> serde_json::Result<bool> {
    Ok(types == EventTypes::ALL || types.has_name(&serde_json::from_str::<TypeOf<'_>>(event.get())?.r#type))
}

impl Page {
    /// Takes in a row; whether it has room for more.
    fn take(&mut self, row: &store::EventRow, types: EventTypes, limit: usize) -> serde_json::Result<bool> {
        let events: Vec<&RawValue> = if row.content.is_empty() { Vec::new() } else { serde_json::from_str(&row.content)? };
        let from = self.reached;
        for (id, event) in (row.first..).zip(events) {
            if id <= from || !is_there(event) || !is_wanted(types, event)? {
                continue;
            }
            if self.items.len() == limit {
                self.has_more = true;
                return Ok(false);
            }
            self.items.push((id, RawValue::from_string(with_id(id, event))?));
            self.reached = id;
        }
        self.reached = self.reached.max(row.last);
        Ok(true)
    }

    /// Without the events up to this number, which expired while the page was read: some of them may
    /// be missing.
    pub(super) fn above(mut self, floor: i64) -> Self {
        self.items.retain(|(id, _)| *id > floor);
        Self { has_more: self.has_more || self.reached < floor, reached: self.reached.max(floor), ..self }
    }
}

/// Events after a number, and how far that is.
pub(super) async fn search(db: &Db, from: i64, types: EventTypes, limit: usize) -> Result<Page> {
    let broken = |error: serde_json::Error| Fault::Bug(error.to_string());
    let mut page = Page { items: Vec::new(), reached: from, has_more: false };
    let (mut rows, mut searched) = (FIRST_ROWS, 0);
    loop {
        let found = store::read(db, page.reached, types, rows).await?;
        let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
        for row in &found {
            if !page.take(row, types, limit).map_err(broken)? {
                return Ok(page);
            }
        }
        if count < rows {
            return Ok(page);
        }
        searched += count;
        if searched >= MAX_ROWS_SEARCHED {
            return Ok(Page { has_more: true, ..page });
        }
        rows = (rows * 2).min(MOST_ROWS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ids: &[i64], reached: i64, has_more: bool) -> Page {
        Page { items: ids.iter().map(|id| (*id, RawValue::from_string(id.to_string()).unwrap())).collect(), reached, has_more }
    }

    /// The numbers, how far it came, and whether there may be more.
    fn above(page: Page, floor: i64) -> (Vec<i64>, i64, bool) {
        let Page { items, reached, has_more } = page.above(floor);
        (items.into_iter().map(|(id, _)| id).collect(), reached, has_more)
    }

    #[test]
    fn a_page_has_nothing_that_expired_while_it_was_read() {
        assert_eq!(above(page(&[1, 3, 4], 5, false), 0), (vec![1, 3, 4], 5, false));
        assert_eq!(above(page(&[1, 3, 4], 5, false), 3), (vec![4], 5, false));
        assert_eq!(above(page(&[1, 3], 4, true), 4), (vec![], 4, true));
        assert_eq!(above(page(&[1, 3], 4, false), 9), (vec![], 9, true), "what is above was not looked at");
        assert_eq!(above(page(&[], 4, false), 4), (vec![], 4, false));
    }
}
