//! What notes that a user was seen, and what forgets one who stays away.

use crate::base::clock::UnixMs;
use crate::base::error::Problem;
use crate::base::ids::UserId;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::features::feed::rows::need_snapshot;
use crate::features::feed::{self, Followed};

/// What a user who is seen writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserCommand {
    /// The user was seen. One who is to be enrolled and follows somebody needs `followed` for it,
    /// as of the present list: without it nothing is changed, and the answer is not empty.
    See {
        user: UserId,
        /// On which day.
        day: i64,
        /// Whom the user follows and what they had posted.
        followed: Option<Followed>,
    },
    /// The user was not seen since before this day: the marks of what everybody shares are
    /// forgotten.
    Forget {
        user: UserId,
        /// The first day of those that count as recent.
        before: i64,
    },
}

impl lanes::Command for UserCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::See { user, followed, .. } => {
                needs.enrolment(*user);
                if followed.is_some() {
                    need_snapshot(needs, *user);
                }
            }
            Self::Forget { user, .. } => needs.user(*user),
        }
    }

    fn lane_key(&self) -> i64 {
        match self {
            Self::See { user, .. } | Self::Forget { user, .. } => user.get(),
        }
    }

    fn names(&self) -> Names {
        match self {
            Self::See { user, .. } => vec![in_path(*user)],
            Self::Forget { .. } => Vec::new(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::See { followed: Some(followed), .. } => followed.weight(),
            Self::See { .. } | Self::Forget { .. } => 1,
        }
    }

    fn apply(&self, rows: &mut Rows, _now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::See { user, day, followed } => {
                let row = rows.user(*user);
                if !row.is_enrolled() && row.following > 0 {
                    let Some(followed) = followed.as_ref().filter(|followed| followed.version == row.feed) else {
                        // Whom the user follows is needed, too.
                        return Ok(Answer::ok(false));
                    };
                    feed::look(rows, *user, followed)?;
                    // In any case: while the user was not enrolled, the list counted for nothing.
                    rows.feed_changed(*user);
                }
                rows.see_user(*user, *day);
            }
            Self::Forget { user, before } => {
                let row = rows.user(*user);
                // Looked at again under the lock: the user may have come back meanwhile.
                if row.is_enrolled() && row.seen_day < *before {
                    rows.forget_user(*user);
                }
            }
        }
        Ok(Answer::ok(true))
    }
}
