//! What users and others are to each other, where a cache is shared: a small number for each two,
//! which the cache does not look into.
//!
//! The protocol is that of the entries, but for one thing: a hash of facts is filled bit by bit, or
//! all at once: then one who is not in it is nothing to the user. So a writer takes out what it may
//! change, before its commit (or says there that it is not known), instead of marking all of it
//! dirty; what is there is true, and while a writer is inside nothing is added. In process there
//! are none: SQL is in the same process.

use super::{Cache, CacheError, FillToken, Writer};
use crate::base::ids::UserId;

/// What SQL told of a user and others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub user: UserId,
    /// Given before SQL was asked.
    pub token: FillToken,
    /// Others, and a number for each.
    pub codes: Vec<(UserId, u8)>,
    /// Whether these are all others of whom the number is not 0.
    pub complete: bool,
}

/// What is kept of a user and the others that were asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Whether all others are kept of whom the number is not 0, so that only those that changed
    /// meanwhile are not known.
    pub complete: bool,
    /// A number for each other, where it is known.
    pub codes: Vec<Option<u8>>,
}

impl Cache {
    /// What each of these users and others are to each other, as new as the last acknowledged
    /// write.
    pub async fn get_facts(&self, asked: &[(UserId, &[UserId])]) -> Result<Vec<Told>, CacheError> {
        match self {
            Self::Memory(_) => Ok(asked.iter().map(|(_, others)| Told { complete: false, codes: vec![None; others.len()] }).collect()),
            Self::Redis(redis) => redis.get_facts(asked).await,
        }
    }

    /// After some were not known, and before SQL is asked: for each user the right to fill in what
    /// it will tell. None while a writer is inside.
    pub async fn facts_tokens(&self, users: &[UserId]) -> Result<Vec<Option<FillToken>>, CacheError> {
        match self {
            Self::Memory(_) => Ok(vec![None; users.len()]),
            Self::Redis(redis) => redis.facts_tokens(users).await,
        }
    }

    /// Brings what SQL told, read after the token was given. Of how many users it was kept; not
    /// where the token has died meanwhile.
    ///
    /// # Errors
    /// If Redis is away; then some may have been kept.
    pub async fn fill_facts(&self, facts: &[Facts]) -> Result<usize, CacheError> {
        match self {
            Self::Memory(_) => Ok(0),
            Self::Redis(redis) => redis.fill_facts(facts).await,
        }
    }

    /// Before the commit: takes out what each of these users and these others are to each other,
    /// and puts the writer in, so that nothing is added for one lease. Doing it again renews the
    /// lease.
    ///
    /// # Errors
    /// If the write could not begin for any of them; then the transaction must not commit.
    pub async fn begin_facts_write(&self, written: &[(UserId, Vec<UserId>)], writer: Writer) -> Result<(), CacheError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.begin_facts_write(written, writer).await,
        }
    }

    /// Once the transaction is over, whatever became of it: takes the writer out, and once more
    /// what it may have changed, should its lease have ended before.
    ///
    /// # Errors
    /// If Redis is away; then the leases run out by themselves.
    pub async fn end_facts_write(&self, written: &[(UserId, Vec<UserId>)], writer: Writer) -> Result<(), CacheError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.end_facts_write(written, writer).await,
        }
    }
}
