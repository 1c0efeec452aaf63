//! The sender that a body names.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use utoipa::ToSchema;

use crate::base::error::Problem;
use crate::base::ids::UserId;
use crate::http::auth::Caller;

/// The sender: a user id, or `me` for the user of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, pattern = "^(me|[1-9][0-9]{0,18})$", example = "42")]
pub struct SenderIn(
    /// None for `me`.
    Option<UserId>,
);

impl SenderIn {
    /// The sender that a body means. An end user's token may leave the field out or say `me`, and
    /// sends as nobody else. A service names the sender by id.
    ///
    /// # Errors
    /// 422 where a service names nobody, 403 where a user names somebody else.
    pub fn resolve(given: Option<Self>, caller: &Caller) -> Result<UserId, Problem> {
        match (given, caller) {
            (None | Some(Self(None)), Caller::User { id }) => Ok(*id),
            (Some(Self(Some(sender))), caller) => caller.may_act_for(sender).map(|()| sender),
            (None, Caller::Service { .. }) => Err(Problem::invalid("/sender_id", "is required with a service key")),
            (Some(Self(None)), Caller::Service { .. }) => {
                Err(Problem::invalid("/sender_id", "must be a user id: 'me' works only with a user token"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for SenderIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MeOrId;

        impl Visitor<'_> for MeOrId {
            type Value = SenderIn;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("'me', or a user id as a decimal string or an integer from 1 to 9223372036854775807")
            }

            fn visit_i64<E: Error>(self, id: i64) -> Result<SenderIn, E> {
                UserId::try_from(id).map(|id| SenderIn(Some(id))).map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, id: u64) -> Result<SenderIn, E> {
                // What does not fit breaks the same rule as 0 does.
                self.visit_i64(i64::try_from(id).unwrap_or_default())
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SenderIn, E> {
                if text == "me" { Ok(SenderIn(None)) } else { text.parse().map(|id| SenderIn(Some(id))).map_err(E::custom) }
            }
        }

        deserializer.deserialize_any(MeOrId)
    }
}
