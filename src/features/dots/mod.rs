//! Dots: lit for everybody by one write, cleared by each user alone. A head and a mark like
//! everything else; only whether there is anything is shown.
//!
//! Like a notice, a light raises the head of the broadcast state, so that it is dark for anyone who
//! is seen for the first time later. `http.rs` has the routes.

pub mod http;
pub mod summary;

use serde::Serialize;
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{Name, UserId};
use crate::engine::heads::{self, Deleted};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::marks::{Kind, StreamKey};
use crate::features::broadcasts::raise_broadcast_state;

/// How many dots there may be: each is shown in every unread summary.
pub const MAX_DOTS: i64 = 200;

/// How many names of dots may ever be used: one that was deleted leaves its head behind, so that it
/// continues there when it is lit again.
pub const MAX_DOT_NAMES: i64 = 10_000;

/// A dot that was lit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LitDotOut {
    /// The dot.
    pub dot: Name,
    /// How often the dot was lit.
    #[schema(minimum = 1, example = 4)]
    pub head: i64,
    /// When the dot was lit.
    pub lit_at: UnixMs,
}

/// A dot of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserDotOut {
    /// The dot.
    pub dot: Name,
    /// Whether it is lit for the user.
    pub lit: bool,
    /// How often the dot was lit.
    #[schema(minimum = 0, example = 4)]
    pub head: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 920)]
    pub revision: i64,
}

/// A write to dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DotCommand {
    /// Lit for everybody.
    Light(Name),
    /// It goes, for everybody.
    Delete(Name),
    /// Cleared by a user, up to what was shown or up to the head.
    Clear {
        user: UserId,
        dot: Name,
        /// How far; None: whatever lit it until now.
        up_to: Option<i64>,
        /// What this node has heard of dots that were deleted.
        deleted: Deleted,
    },
}

impl lanes::Command for DotCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Light(dot) | Self::Delete(dot) => {
                needs.head(StreamKey::dot(dot));
                needs.head(StreamKey::broadcast_state());
            }
            Self::Clear { user, dot, .. } => {
                needs.mark(*user, Kind::Dot, dot);
                needs.seen_head(StreamKey::dot(dot));
            }
        }
    }

    // All that changes the broadcast state goes through one lane, as it is one row.
    fn lane_key(&self) -> i64 {
        match self {
            Self::Light(_) | Self::Delete(_) => 0,
            Self::Clear { user, .. } => user.get(),
        }
    }

    fn names(&self) -> Names {
        match self {
            Self::Light(_) | Self::Delete(_) => Vec::new(),
            Self::Clear { user, .. } => vec![in_path(*user)],
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Light(dot) => light(rows, dot, now),
            Self::Delete(dot) => delete(rows, dot, now),
            Self::Clear { user, dot, up_to, deleted } => clear(rows, *user, dot, *up_to, deleted),
        }
    }
}

fn light(rows: &mut Rows, dot: &Name, now: UnixMs) -> Result<Answer, Problem> {
    let key = StreamKey::dot(dot);
    let mut stream = rows.head(&key);
    if !stream.is_alive() && rows.shared_count(Kind::Dot) >= MAX_DOTS {
        return Err(Problem::new(Code::TooMany, format!("The limit of {MAX_DOTS} dots is reached. Delete a dot first.")));
    }
    if stream.head == 0 && rows.shared_names(Kind::Dot) >= MAX_DOT_NAMES {
        let detail = format!("{MAX_DOT_NAMES} names of dots have been used. Use the name of a deleted dot again.");
        return Err(Problem::new(Code::TooMany, detail));
    }
    let head = stream.advance(now).map_err(|_| Problem::new(Code::TooMany, "The dot has reached the highest possible head, 2^53-1."))?;
    stream.position = raise_broadcast_state(rows, now)?;
    rows.set_head(&key, stream);
    Ok(Answer::ok(LitDotOut { dot: dot.clone(), head, lit_at: now }))
}

/// Once is enough: a second time changes nothing.
fn delete(rows: &mut Rows, dot: &Name, now: UnixMs) -> Result<Answer, Problem> {
    let key = StreamKey::dot(dot);
    let mut stream = rows.head(&key);
    if stream.is_alive() {
        stream.delete();
        stream.position = raise_broadcast_state(rows, now)?;
        rows.set_head(&key, stream);
    }
    Ok(Answer::no_content())
}

fn clear(rows: &mut Rows, user: UserId, name: &Name, up_to: Option<i64>, deleted: &Deleted) -> Result<Answer, Problem> {
    let stream = rows.head(&StreamKey::dot(name));
    let dot = heads::Dot { head: stream.head, position: stream.position, lit_at: stream.at };
    let enrolled = rows.user(user).enrolled;
    let mut mark = rows.mark(user, Kind::Dot, name);
    let is_lit = |mark: i64| stream.is_alive() && dot.is_lit(enrolled, mark);
    // One that is dark for the user needs no mark.
    if is_lit(mark.mark()) {
        mark.read_shared(up_to.unwrap_or(dot.head).min(dot.head));
        rows.set_mark(user, Kind::Dot, name, mark.clone());
        let is_over = |name: &str, mark: i64| mark <= deleted.head(Kind::Dot, name);
        rows.bound_marks(user, Kind::Dot, usize::try_from(MAX_DOTS).unwrap_or(usize::MAX), is_over);
    }
    let lit = is_lit(mark.mark());
    Ok(Answer::ok(UserDotOut { dot: name.clone(), lit, head: dot.head, revision: rows.revision(user) }))
}
