//! Who calls, once that is known.

use std::fmt;
use std::sync::Arc;

use crate::base::error::{Code, Problem};
use crate::base::ids::UserId;

/// The name of every caller of a server without credentials; no service key may take it.
pub(super) const OPEN_NAME: &str = "open";

/// Who made a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Caller {
    /// A service, which may act for anyone.
    Service {
        /// The name of its key; the same after the key was rotated.
        name: Arc<str>,
    },
    /// An end user, who may act for nobody else.
    User {
        /// The `sub` of the token.
        id: UserId,
    },
}

impl Caller {
    /// The caller as one text, to which idempotency keys and operations belong: `service:name`,
    /// `user:42` or `open`.
    #[must_use]
    pub fn id(&self) -> String {
        self.to_string()
    }

    /// Whether it is a service, which is shown at once what any node has acknowledged.
    #[must_use]
    pub fn is_service(&self) -> bool {
        matches!(self, Self::Service { .. })
    }

    /// Refuses a user who names somebody else; a service may name anyone.
    ///
    /// # Errors
    /// A 403 problem.
    pub fn may_act_for(&self, user: UserId) -> Result<(), Problem> {
        match self {
            Self::User { id } if *id != user => Err(Problem::new(Code::Forbidden, "A user token can only act for its own user.")),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service { name } if &**name == OPEN_NAME => f.write_str(OPEN_NAME),
            Self::Service { name } => write!(f, "service:{name}"),
            Self::User { id } => write!(f, "user:{id}"),
        }
    }
}
