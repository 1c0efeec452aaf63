//! What users and others are to each other, where a cache is shared: a small number for each two,
//! which the cache does not look into.
//!
//! A user's facts are a second entry of the user (`{u:42}:r` in Redis), under the same protocol: a
//! reader that finds it clean is told all from it, and one who is not in it is nothing to the user.
//! They have one revision, which tells nothing of what is missing. So only a writer that found them
//! clean, and was alone inside, applies what it changed; else they are read again. In process there
//! are none: SQL is in the same process.

use super::{Cache, CacheError, FillToken};
use crate::base::ids::UserId;

/// What one committed batch changed of what a user and others are to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactsChange {
    pub user: UserId,
    /// The others, with the new numbers: none where nothing changed. None where the writer's begin found no facts.
    pub codes: Option<Vec<(UserId, u8)>>,
}

impl Cache {
    /// What each of these users and these others are to each other, as new as the last acknowledged
    /// write; None of a user of whom nothing is kept.
    pub async fn get_facts(&self, asked: &[(UserId, &[UserId])]) -> Result<Vec<Option<Vec<u8>>>, CacheError> {
        match self {
            Self::Memory(_) => Ok(vec![None; asked.len()]),
            Self::Redis(redis) => redis.get_facts(asked).await,
        }
    }

    /// Of a user of whom nothing is kept, before SQL is asked: the right to fill in what it will
    /// tell. None while a writer is inside.
    pub async fn facts_token(&self, user: UserId) -> Result<Option<FillToken>, CacheError> {
        match self {
            Self::Memory(_) => Ok(None),
            Self::Redis(redis) => redis.facts_token(user).await,
        }
    }

    /// Brings all others of whom the number is not 0, read after the token was given. Whether it
    /// was kept; not if the token has died meanwhile.
    ///
    /// # Errors
    /// If Redis is away.
    pub async fn fill_facts(&self, user: UserId, token: FillToken, codes: &[(UserId, u8)]) -> Result<bool, CacheError> {
        match self {
            Self::Memory(_) => Ok(false),
            Self::Redis(redis) => redis.fill_facts(user, token, codes).await,
        }
    }
}
