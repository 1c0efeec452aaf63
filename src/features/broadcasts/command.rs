//! What is written to broadcasts: the commands, and the rule of each over the rows of a batch.

use std::sync::Arc;

use serde::Serialize;

use super::rows::NoticeRows;
use super::{MAX_CHANNEL_NAMES, MAX_CHANNELS, MAX_NOTICES, Notice, NoticeKey, NoticeOut};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{Name, UserId};
use crate::engine::events::{BroadcastEventOut, Event};
use crate::engine::heads::Deleted;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::marks::{Kind, Refused, Stream, StreamKey};

/// A write to broadcasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BroadcastCommand {
    /// A broadcast to all users.
    Send {
        /// In which channel.
        channel: Name,
        /// Title, body and data, as one JSON object.
        content: Arc<str>,
        /// From when on it is gone by itself; None: never.
        expires_at: Option<UnixMs>,
    },
    /// It is taken back.
    Withdraw {
        /// In which channel.
        channel: Name,
        seq: i64,
    },
    /// A channel goes, with all that is in it.
    Delete(Name),
    /// A user has read a channel, up to a notice or up to its head.
    Read {
        user: UserId,
        channel: Name,
        /// How far; None: all that is there now.
        up_to: Option<i64>,
        /// What this node has heard of channels that were deleted.
        deleted: Deleted,
    },
}

/// What reading a channel answers inside; the route adds what is unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(super) struct ReadOut {
    pub(super) head: i64,
    pub(super) revision: i64,
}

impl lanes::Command for BroadcastCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Send { channel, .. } | Self::Delete(channel) => {
                needs.head(StreamKey::channel(channel));
                needs.head(StreamKey::broadcast_state());
            }
            Self::Withdraw { channel, seq } => {
                needs.seen_head(StreamKey::channel(channel));
                needs.head(StreamKey::broadcast_state());
                needs.of::<NoticeRows>().insert(NoticeKey { channel: channel.shared(), seq: *seq });
            }
            Self::Read { user, channel, .. } => {
                needs.mark(*user, Kind::Broadcast, channel);
                needs.seen_head(StreamKey::channel(channel));
            }
        }
    }

    // All that changes the broadcast state goes through one lane, as it is one row.
    fn lane_key(&self) -> i64 {
        match self {
            Self::Send { .. } | Self::Withdraw { .. } | Self::Delete(_) => 0,
            Self::Read { user, .. } => user.get(),
        }
    }

    fn names(&self) -> Names {
        match self {
            Self::Send { .. } | Self::Withdraw { .. } | Self::Delete(_) => Vec::new(),
            Self::Read { user, .. } => vec![in_path(*user)],
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Send { channel, content, expires_at } => send(rows, channel, content, *expires_at, now),
            Self::Withdraw { channel, seq } => withdraw(rows, channel, *seq, now),
            Self::Delete(channel) => delete(rows, channel, now),
            Self::Read { user, channel, up_to, deleted } => Ok(read(rows, *user, channel, *up_to, deleted)),
        }
    }
}

/// Raises the head of the broadcast state and returns it.
///
/// # Errors
/// 409 when it has reached the highest head there is.
pub fn raise_broadcast_state(rows: &mut Rows, now: UnixMs) -> Result<i64, Problem> {
    let mut broadcast_state = rows.head(&StreamKey::broadcast_state());
    let position = broadcast_state.advance(now).map_err(|_| full())?;
    rows.set_head(&StreamKey::broadcast_state(), broadcast_state);
    Ok(position)
}

fn full() -> Problem {
    Problem::new(Code::TooMany, "The channel has reached the highest possible head, 2^53-1.")
}

fn send(rows: &mut Rows, channel: &Name, content: &Arc<str>, expires_at: Option<UnixMs>, now: UnixMs) -> Result<Answer, Problem> {
    // Here and not where the request is read: one that was taken is answered as it was the first
    // time, also when it is sent again after the notice has expired.
    if expires_at.is_some_and(|at| at <= now) {
        return Err(Problem::invalid("/expires_at", "must be in the future"));
    }
    let key = StreamKey::channel(channel);
    let mut stream: Stream = rows.head(&key);
    if !stream.is_alive() && rows.shared_count(Kind::Broadcast) >= MAX_CHANNELS {
        return Err(Problem::new(Code::TooMany, format!("The limit of {MAX_CHANNELS} channels is reached. Delete a channel first.")));
    }
    if stream.head == 0 && rows.shared_names(Kind::Broadcast) >= MAX_CHANNEL_NAMES {
        let detail = format!("{MAX_CHANNEL_NAMES} names of channels have been used. Use the name of a deleted channel again.");
        return Err(Problem::new(Code::TooMany, detail));
    }
    if stream.head - stream.floor >= MAX_NOTICES {
        return Err(Problem::new(Code::TooMany, format!("The channel has reached the limit of {MAX_NOTICES} broadcasts.")));
    }
    let seq = stream.advance(now).map_err(|refused| match refused {
        Refused::HeadFull | Refused::UnknownPosition | Refused::TooManyRuns => full(),
    })?;
    let position = raise_broadcast_state(rows, now)?;
    stream.position = position;
    rows.set_head(&key, stream);
    let (content, expires_at) = (Arc::clone(content), expires_at.unwrap_or_default());
    let notice = Notice { position, content, created_at: now, expires_at, withdrawn: false, changed: position };
    let answer = Ok(Answer::created(NoticeOut::new(channel, seq, &notice, None)));
    rows.get_mut::<NoticeRows>().set(&NoticeKey { channel: channel.shared(), seq }, notice);
    rows.event(now, &Event::Broadcast(BroadcastEventOut { channel: channel.clone(), seq, withdrawn: false, channel_deleted: false }));
    answer
}

/// Once is enough: a second time changes nothing. One that has expired may be taken back too; of those
/// that went with their channel nothing is left to take back.
fn withdraw(rows: &mut Rows, channel: &Name, seq: i64, now: UnixMs) -> Result<Answer, Problem> {
    let key = NoticeKey { channel: channel.shared(), seq };
    let stream = rows.head(&StreamKey::channel(channel));
    if seq > stream.head {
        return Err(Problem::new(Code::NotFound, format!("Broadcast {seq} of channel {channel} does not exist.")));
    }
    let notice = rows.get::<NoticeRows>().notice(&key).filter(|_| seq > stream.floor);
    if let Some(mut notice) = notice.filter(|notice| !notice.withdrawn) {
        notice.withdrawn = true;
        notice.changed = raise_broadcast_state(rows, now)?;
        rows.get_mut::<NoticeRows>().set(&key, notice);
        rows.event(now, &Event::Broadcast(BroadcastEventOut { channel: channel.clone(), seq, withdrawn: true, channel_deleted: false }));
    }
    Ok(Answer::no_content())
}

/// Once is enough: a second time changes nothing. The rows of what was in the channel are swept.
fn delete(rows: &mut Rows, channel: &Name, now: UnixMs) -> Result<Answer, Problem> {
    let key = StreamKey::channel(channel);
    let mut stream = rows.head(&key);
    if stream.is_alive() {
        stream.delete();
        stream.position = raise_broadcast_state(rows, now)?;
        let seq = stream.head;
        rows.set_head(&key, stream);
        rows.event(now, &Event::Broadcast(BroadcastEventOut { channel: channel.clone(), seq, withdrawn: true, channel_deleted: true }));
    }
    Ok(Answer::no_content())
}

fn read(rows: &mut Rows, user: UserId, channel: &Name, up_to: Option<i64>, deleted: &Deleted) -> Answer {
    let stream = rows.head(&StreamKey::channel(channel));
    // In one that is not there, there is nothing to read.
    if stream.is_alive() {
        let mut mark = rows.mark(user, Kind::Broadcast, channel);
        mark.read_shared(up_to.unwrap_or(stream.head).min(stream.head));
        rows.set_mark(user, Kind::Broadcast, channel, mark);
        let is_over = |name: &str, mark: i64| mark <= deleted.head(Kind::Broadcast, name);
        rows.bound_marks(user, Kind::Broadcast, usize::try_from(MAX_CHANNELS).unwrap_or(usize::MAX), is_over);
    }
    Answer::ok(ReadOut { head: stream.head, revision: rows.revision(user) })
}
