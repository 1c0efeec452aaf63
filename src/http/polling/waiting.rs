//! The places of requests that wait (`wait=`): a bound for all of them, and one for each caller.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::base::error::Problem;
use crate::http::context;
use crate::http::shares::{Share, Shares};

/// The places of a node.
#[derive(Debug)]
pub struct Waiting {
    room: Semaphore,
    size: usize,
    shares: Arc<Shares>,
}

/// A place to wait in, given back when dropped.
#[derive(Debug)]
pub struct WaitingPlace<'a> {
    _room: SemaphorePermit<'a>,
    _share: Option<Share>,
}

impl Waiting {
    /// So many places, of which each caller may hold its share.
    #[must_use]
    pub fn new(size: u32, shares: Arc<Shares>) -> Self {
        let size = usize::try_from(size).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Self { room: Semaphore::new(size), size, shares }
    }

    /// How many places are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.size.saturating_sub(self.room.available_permits())
    }

    /// How many places there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// A place for the request being served, which asked to wait. None where all places are taken:
    /// it is answered at once.
    ///
    /// # Errors
    /// A 429 problem where its caller holds as many as it may. Were it answered at once, a client
    /// that always waits would turn into a busy loop.
    pub fn take(&self) -> Result<Option<WaitingPlace<'_>>, Problem> {
        let Ok(room) = self.room.try_acquire() else { return Ok(None) };
        let share = context::caller().map(|caller| self.shares.take(&caller)).transpose()?;
        context::note_held();
        Ok(Some(WaitingPlace { _room: room, _share: share }))
    }
}
