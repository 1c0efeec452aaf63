//! How a cache entry holds the groups of a user: `g:42` has `120 1767225600123m u1767229200000
//! 122-124`. That is:
//!
//! - read up to, and when the user was there last;
//! - `m` right behind it where nothing of the group counts, `l2` where its mentions do;
//! - `u` with the time when that level ends;
//! - `a` with the message up to which all shows as read, while messages are unread again;
//! - `j` where the user has read nothing since joining;
//! - `n` with messages that mention the user by name, as runs with commas: `n118,120-121`;
//! - single messages above that show as read.
//!
//! What does not apply is left out. An empty text: not in the group any more. A word that this
//! version does not know is skipped, as nodes of a newer version may share the cache.

use std::fmt::Write as _;

use super::GroupMark;
use crate::base::clock::UnixMs;
use crate::base::ids::GroupId;
use crate::cache::Parts;
use crate::engine::marks::Intervals;
use crate::engine::marks::parts::Part;
use crate::features::level::{Level, LevelUntil};

/// How far the user has read a group, as a part; an empty one where the user has left it.
#[must_use]
pub fn group_part(group: GroupId, mark: Option<&GroupMark>) -> Part {
    (format!("g:{group}").into(), mark.map(text).unwrap_or_default().into())
}

fn text(mark: &GroupMark) -> String {
    let mut text = format!("{} {}", mark.read_seq, mark.at.0);
    // Writing to a String cannot fail.
    let _ = match mark.level.set() {
        Level::All => Ok(()),
        Level::None => write!(text, "m"),
        level => write!(text, " l{}", level.code()),
    };
    if let Some(until) = mark.level.until() {
        let _ = write!(text, " u{}", until.0);
    }
    if mark.mark != mark.read_seq {
        let _ = write!(text, " a{}", mark.mark);
    }
    if mark.is_new {
        text.push_str(" j");
    }
    if !mark.mentions.is_empty() {
        let _ = write!(text, " n{}", mark.mentions.to_string().replace(' ', ","));
    }
    if !mark.extra.is_empty() {
        let _ = write!(text, " {}", mark.extra);
    }
    text
}

/// The groups of an entry.
pub fn groups(parts: &Parts) -> impl Iterator<Item = (GroupId, GroupMark)> {
    parts.starting_with("g:").filter_map(|(group, text)| Some((group.parse().ok()?, parse(text)?)))
}

fn parse(text: &str) -> Option<GroupMark> {
    let (read_seq, rest) = text.split_once(' ')?;
    let (at, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (at, muted) = at.strip_suffix('m').map_or((at, false), |at| (at, true));
    let (read_seq, at) = (read_seq.parse().ok()?, UnixMs(at.parse().ok()?));
    let (mut level, mut until) = (if muted { Level::None } else { Level::All }, None);
    let (mut mark, mut mentions, mut is_new) = (read_seq, Intervals::default(), false);
    for word in rest.split_ascii_whitespace() {
        if let Some(code) = word.strip_prefix('l') {
            level = code.parse().map_or(level, Level::from_code);
        } else if let Some(at) = word.strip_prefix('u') {
            until = at.parse().ok().map(UnixMs);
        } else if let Some(seq) = word.strip_prefix('a') {
            mark = seq.parse().unwrap_or(mark);
        } else if word == "j" {
            is_new = true;
        } else if let Some(runs) = word.strip_prefix('n') {
            mentions = Intervals::parse(&runs.replace(',', " "));
        }
    }
    // It skips words that are no runs.
    let extra = Intervals::parse(rest);
    Some(GroupMark { read_seq, mark, extra, mentions, level: LevelUntil::new(level, until), at, is_new })
}
