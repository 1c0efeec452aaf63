//! The lines of a chat log, and of a log of who joined and left.

use super::{Step, What};
use crate::clock::UnixMs;
use crate::groups::MAX_CONTENT_CHARS;
use crate::ids::{GroupId, UserId};
use crate::import::field::{self, id, shown, time};

/// How the first line of a chat log may look.
pub(crate) const EXAMPLE: &str = "timestamp,channel,sender,content";

/// How the first line of a log of members may look.
pub(super) const EVENT_EXAMPLE: &str = "timestamp,channel,user,event";

/// The columns that a chat log may have. A topic is a thing of other programs, and is passed over.
const KNOWN: [&str; 5] = ["timestamp", "channel", "sender", "content", "topic"];

/// The columns of a log of members.
const KNOWN_OF_EVENTS: [&str; 4] = ["timestamp", "channel", "user", "event"];

/// Where in a line of a chat log each value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageColumns(field::Columns);

/// Where in a line of a log of members each value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventColumns(field::Columns);

/// A message of a log; `G` is what the channel stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<G = GroupId> {
    pub(crate) at: UnixMs,
    pub(crate) group: G,
    pub(crate) sender: UserId,
    pub(crate) content: String,
}

/// Somebody joined or left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at: UnixMs,
    group: GroupId,
    user: UserId,
    joins: bool,
}

impl Event {
    pub(super) fn step(self) -> Step {
        Step { group: self.group, user: self.user, at: self.at, what: if self.joins { What::Join } else { What::Leave } }
    }
}

/// When something happened, which must not be before what stands above it.
fn in_order(text: Option<&str>, before: UnixMs) -> Result<UnixMs, String> {
    let at = time(text.unwrap_or_default())?;
    if at < before { Err("is before a line above it; a log must be in the order of time".to_owned()) } else { Ok(at) }
}

impl MessageColumns {
    /// Reads the first line.
    ///
    /// # Errors
    /// A sentence: which column is unknown, missing, or there twice.
    pub(crate) fn from_header(header: &[u8]) -> Result<Self, String> {
        field::Columns::from_header(header, &KNOWN, &["timestamp", "channel", "sender"], EXAMPLE).map(Self)
    }

    /// Reads a line. `id_offset` is added to the sender's id; `before` is the time of the line above.
    ///
    /// # Errors
    /// A sentence: why it cannot be taken.
    pub(crate) fn parse<G>(
        &self,
        line: &[u8],
        id_offset: i64,
        before: UnixMs,
        group: impl FnOnce(&str) -> Result<G, String>,
    ) -> Result<Line<G>, String> {
        let [timestamp, channel, sender, content, _topic] = self.0.values(line)?;
        let at = in_order(timestamp, before)?;
        let sender = id("sender", sender.unwrap_or_default(), id_offset)?;
        let content = content.unwrap_or_default();
        if content.contains('\0') || content.chars().count() > MAX_CONTENT_CHARS {
            return Err(format!("has a content with U+0000 or of more than {MAX_CONTENT_CHARS} characters"));
        }
        // Last, so that no group is made for a line that is bad otherwise.
        Ok(Line { at, group: group(channel.unwrap_or_default())?, sender, content: content.to_owned() })
    }
}

impl EventColumns {
    /// Reads the first line.
    ///
    /// # Errors
    /// A sentence: which column is unknown, missing, or there twice.
    pub(super) fn from_header(header: &[u8]) -> Result<Self, String> {
        field::Columns::from_header(header, &KNOWN_OF_EVENTS, &KNOWN_OF_EVENTS, EVENT_EXAMPLE).map(Self)
    }

    /// Reads a line, as [`MessageColumns::parse`].
    ///
    /// # Errors
    /// A sentence: why it cannot be taken.
    pub(super) fn parse(
        &self,
        line: &[u8],
        id_offset: i64,
        before: UnixMs,
        group: impl FnOnce(&str) -> Result<GroupId, String>,
    ) -> Result<Event, String> {
        let [timestamp, channel, user, event] = self.0.values(line)?;
        let at = in_order(timestamp, before)?;
        let user = id("user", user.unwrap_or_default(), id_offset)?;
        let joins = match event {
            Some("join") => true,
            Some("leave") => false,
            other => return Err(format!("has '{}' as event, not join or leave", shown(other.unwrap_or_default()))),
        };
        Ok(Event { at, group: group(channel.unwrap_or_default())?, user, joins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nine(channel: &str) -> Result<GroupId, String> {
        if channel.is_empty() { Err("has no channel".to_owned()) } else { Ok(GroupId::try_from(9).unwrap()) }
    }

    #[test]
    fn a_line_says_who_said_what_where_and_when() {
        let columns = MessageColumns::from_header(b"timestamp,channel,sender,topic,content").unwrap();
        let line = columns.parse(b"5,general,41,7,\"hello there\"", 1, UnixMs(5000), nine).unwrap();
        assert_eq!((line.at, line.sender.get(), line.content.as_str()), (UnixMs(5000), 42, "hello there"));
        for (line, why) in [
            ("4,general,1,7,x", "is before a line above it"),
            ("5,general,0,7,x", "has 0 as sender"),
            ("5,,1,7,x", "has no channel"),
            (",general,1,7,x", "has '' as timestamp"),
            ("5,general,1,7", "has 4 fields, not 5"),
        ] {
            let told = columns.parse(line.as_bytes(), 0, UnixMs(5000), nine).unwrap_err();
            assert!(told.contains(why), "{line}: {told}");
        }
        for (header, why) in [("timestamp,channel", "there is no 'sender'"), ("timestamp,channel,sender,room", "it has 'room'")] {
            assert!(MessageColumns::from_header(header.as_bytes()).unwrap_err().contains(why));
        }
    }

    #[test]
    fn an_event_is_a_join_or_a_leave() {
        let columns = EventColumns::from_header(b"event,user,channel,timestamp").unwrap();
        let parse = |line: &str| columns.parse(line.as_bytes(), 0, UnixMs(0), nine).map(|event| (event.at, event.joins));
        assert_eq!((parse("join,1,general,5"), parse("leave,1,general,6")), (Ok((UnixMs(5000), true)), Ok((UnixMs(6000), false))));
        assert!(parse("kick,1,general,5").unwrap_err().contains("has 'kick' as event"));
        assert!(EventColumns::from_header(b"event,user,channel").unwrap_err().contains("there is no 'timestamp'"));
    }
}
