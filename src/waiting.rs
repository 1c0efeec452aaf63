//! The places of requests that wait (`wait=`): a bound for all of them, and one for each caller.

use tokio::sync::SemaphorePermit;

use crate::error::Problem;
use crate::http::context;
use crate::http::shares::Share;
use crate::state::AppState;

/// A place to wait in, given back when dropped.
#[derive(Debug)]
pub struct WaitingPlace<'a> {
    _room: SemaphorePermit<'a>,
    _share: Option<Share>,
}

/// A place for the request being served, which asked to wait. None where all places are taken: it is answered at once.
///
/// # Errors
/// A 429 problem where its caller holds as many as it may. Were it answered at once, a client that always waits would turn into a busy loop.
pub fn take(state: &AppState) -> Result<Option<WaitingPlace<'_>>, Problem> {
    let Ok(room) = state.waiting.try_acquire() else { return Ok(None) };
    let share = context::caller().map(|caller| state.waiting_shares.take(&caller)).transpose()?;
    Ok(Some(WaitingPlace { _room: room, _share: share }))
}
