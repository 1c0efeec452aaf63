//! A user who hides which messages the user has read sees no receipts of others.

use crate::base::error::{Code, Error, Problem, Result};
use crate::base::ids::UserId;
use crate::engine::entries::{Entries, State};
use crate::engine::marks::parts;

/// Refuses the receipts of others to a user who hides which messages the user has read. A service
/// (None) sees them. It is asked after the receipts were read: what was read after a switch to hiding
/// is then refused, also where the request came before it.
///
/// # Errors
/// 403 for such a user, and 503 where that is not known now.
pub async fn must_share(entries: &Entries, user: Option<UserId>) -> Result<()> {
    let Some(user) = user else { return Ok(()) };
    let State::Current(entry) = entries.read(user, 0).await else { return Err(Error::store_unavailable()) };
    if parts::shares_receipts(&entry.parts) {
        return Ok(());
    }
    Err(Problem::new(Code::ReceiptsHidden, "Users who do not share receipts cannot read the receipts of others.").into())
}
