//! Why a group is refused.

use crate::base::error::{Code, Problem};
use crate::base::ids::{GroupId, UserId};

pub(crate) fn unknown(group: GroupId) -> Problem {
    Problem::new(Code::NotFound, format!("Group {group} does not exist."))
}

pub(crate) fn deleted(group: GroupId) -> Problem {
    Problem::new(Code::Gone, format!("Group {group} was deleted. Its id cannot be used again."))
}

pub(crate) fn no_member(group: GroupId, user: UserId) -> Problem {
    Problem::new(Code::Forbidden, format!("User {user} is not a member of group {group}."))
}
