//! The lines of a chat log, and of a log of who joined and left.

use csv::ByteRecord;

use crate::base::clock::UnixMs;
use crate::base::ids::{GroupId, UserId};
use crate::features::inbox::MAX_CONTENT_CHARS;
use crate::maintenance::import::field::{self, id, shown, time};

/// How the first line of a chat log may look.
pub(crate) const EXAMPLE: &str = "timestamp,channel,sender,content";

/// How the first line of a log of members may look.
pub(super) const EVENT_EXAMPLE: &str = "timestamp,channel,user,event";

/// The columns that a chat log may have. A topic is a thing of other programs, and is ignored.
const KNOWN: [&str; 6] = ["timestamp", "channel", "sender", "content", "event", "topic"];

/// The columns of a log of members.
const KNOWN_OF_EVENTS: [&str; 4] = ["timestamp", "channel", "user", "event"];

/// Where in a line of a chat log each value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageColumns(field::Columns);

/// Where in a line of a log of members each value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventColumns(field::Columns);

/// A line of a log; `G` is what the channel stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<G = GroupId> {
    pub(crate) at: UnixMs,
    pub(crate) group: G,
    pub(crate) user: UserId,
    pub(crate) entry: Entry,
}

/// What a line says that the user did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Joined.
    Join,
    /// Left.
    Leave,
    /// Sent this.
    Message(String),
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
    pub(crate) fn from_header(header: &ByteRecord) -> Result<Self, String> {
        field::Columns::from_header(header, &KNOWN, &["timestamp", "channel", "sender"], EXAMPLE).map(Self)
    }

    /// Whether lines may also be joins and leaves.
    pub(crate) fn has_events(&self) -> bool {
        self.0.has("event")
    }

    /// Reads a line. `id_offset` is added to the sender's id; `before` is the time of the line
    /// above.
    ///
    /// # Errors
    /// A sentence: why it cannot be taken.
    pub(crate) fn parse<G>(
        &self,
        line: &ByteRecord,
        id_offset: i64,
        before: UnixMs,
        group: impl FnOnce(&str) -> Result<G, String>,
    ) -> Result<Line<G>, String> {
        let [timestamp, channel, sender, content, event, _topic] = self.0.values(line)?;
        let at = in_order(timestamp, before)?;
        let user = id("sender", sender.unwrap_or_default(), id_offset)?;
        let content = content.unwrap_or_default();
        if content.contains('\0') || content.chars().count() > MAX_CONTENT_CHARS {
            return Err(format!("has a content with U+0000 or of more than {MAX_CONTENT_CHARS} characters"));
        }
        let entry = match event.unwrap_or_default() {
            "" | "message" => Entry::Message(content.to_owned()),
            "join" => Entry::Join,
            "leave" => Entry::Leave,
            other => return Err(format!("has '{}' as event, not message, join or leave", shown(other))),
        };
        // Last, so that no group is made for a line that is bad otherwise.
        Ok(Line { at, group: group(channel.unwrap_or_default())?, user, entry })
    }
}

impl EventColumns {
    /// Reads the first line.
    ///
    /// # Errors
    /// A sentence: which column is unknown, missing, or there twice.
    pub(super) fn from_header(header: &ByteRecord) -> Result<Self, String> {
        field::Columns::from_header(header, &KNOWN_OF_EVENTS, &KNOWN_OF_EVENTS, EVENT_EXAMPLE).map(Self)
    }

    /// Reads a line, as [`MessageColumns::parse`].
    ///
    /// # Errors
    /// A sentence: why it cannot be taken.
    pub(super) fn parse(
        &self,
        line: &ByteRecord,
        id_offset: i64,
        before: UnixMs,
        group: impl FnOnce(&str) -> Result<GroupId, String>,
    ) -> Result<Line, String> {
        let [timestamp, channel, user, event] = self.0.values(line)?;
        let at = in_order(timestamp, before)?;
        let user = id("user", user.unwrap_or_default(), id_offset)?;
        let entry = match event {
            Some("join") => Entry::Join,
            Some("leave") => Entry::Leave,
            other => return Err(format!("has '{}' as event, not join or leave", shown(other.unwrap_or_default()))),
        };
        Ok(Line { at, group: group(channel.unwrap_or_default())?, user, entry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintenance::import::field::record;

    fn nine(channel: &str) -> Result<GroupId, String> {
        if channel.is_empty() { Err("has no channel".to_owned()) } else { Ok(GroupId::try_from(9).unwrap()) }
    }

    #[test]
    fn a_line_says_who_said_what_where_and_when() {
        let columns = MessageColumns::from_header(&record(b"timestamp,channel,sender,topic,content")).unwrap();
        let parse = |line: &str, offset| columns.parse(&record(line.as_bytes()), offset, UnixMs(5000), nine);
        for (content, wanted) in [("\"hello, \"\"you\"\"\nthere\"", "hello, \"you\"\nthere"), (" x ", " x "), ("", "")] {
            let line = parse(&format!("5,general,41,7,{content}"), 1).unwrap();
            assert_eq!((line.at, line.user.get(), line.entry), (UnixMs(5000), 42, Entry::Message(wanted.to_owned())));
        }
        let longest = format!("5,general,1,7,{}", "é".repeat(MAX_CONTENT_CHARS));
        assert!(parse(&longest, 0).is_ok() && parse(&format!("{longest}é"), 0).is_err());
        for (line, why) in [
            ("4,general,1,7,x", "is before a line above it"),
            ("5,general,0,7,x", "has 0 as sender"),
            ("5,,1,7,x", "has no channel"),
            (",general,1,7,x", "has '' as timestamp"),
            ("5,general,1,7", "has 4 fields, not 5"),
        ] {
            let told = parse(line, 0).unwrap_err();
            assert!(told.contains(why), "{line}: {told}");
        }
        for (header, why) in [("timestamp,channel", "there is no 'sender'"), ("timestamp,channel,sender,room", "it has 'room'")] {
            assert!(MessageColumns::from_header(&record(header.as_bytes())).unwrap_err().contains(why));
        }
    }

    #[test]
    fn a_line_may_also_be_a_join_or_a_leave() {
        let columns = MessageColumns::from_header(&record(b"timestamp,channel,sender,event")).unwrap();
        let parse = |event: &str| columns.parse(&record(format!("5,general,1,{event}").as_bytes()), 0, UnixMs(0), nine);
        for (event, wanted) in [
            ("", Entry::Message(String::new())),
            ("message", Entry::Message(String::new())),
            ("join", Entry::Join),
            ("leave", Entry::Leave),
        ] {
            assert_eq!(parse(event).map(|line| line.entry), Ok(wanted));
        }
        assert!(parse("kick").unwrap_err().contains("has 'kick' as event, not message, join or leave"));
    }

    #[test]
    fn an_event_is_a_join_or_a_leave() {
        let columns = EventColumns::from_header(&record(b"event,user,channel,timestamp")).unwrap();
        let parse = |line: &str| columns.parse(&record(line.as_bytes()), 0, UnixMs(0), nine).map(|line| (line.at, line.entry));
        assert_eq!(parse("join,1,general,5"), Ok((UnixMs(5000), Entry::Join)));
        assert_eq!(parse("leave,1,general,6"), Ok((UnixMs(6000), Entry::Leave)));
        assert!(parse("kick,1,general,5").unwrap_err().contains("has 'kick' as event"));
        assert!(EventColumns::from_header(&record(b"event,user,channel")).unwrap_err().contains("there is no 'timestamp'"));
    }
}
