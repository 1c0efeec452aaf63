//! The groups of a user, as the sheet sums them up.

use super::Sheets;
use super::whole::Sheet;
use crate::features::groups::chats::ChatCount;
use crate::features::groups::part::groups;

impl Sheets {
    /// What of the groups is unread. None where a store is away.
    pub(super) async fn count_chats(&self, sheet: &Sheet) -> Option<ChatCount> {
        let entry = sheet.entry.as_ref()?;
        let mut groups = groups(&entry.parts).peekable();
        if groups.peek().is_none() {
            return Some(ChatCount::default());
        }
        let list = self.chats.list(sheet.user, entry.revision, groups);
        let most = sheet.cap().map_or(i64::MAX, |cap| cap.saturating_add(1));
        match self.chats.count_here(&list, most) {
            Some(count) => Some(count),
            // Boxed, so that the many polls that need it not need not carry its room.
            None => Box::pin(self.entries.in_turn_or_none("groups", self.chats.count(&list, most))).await,
        }
    }
}
