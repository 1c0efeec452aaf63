//! A connection for what is rare and takes several statements, or a transaction. To open one for each
//! costs Postgres more than most of these statements, so there it comes from the pool, while that has one
//! to spare. On SQLite the pool's are for reads alone.

use std::ops::{Deref, DerefMut};

use tokio::sync::SemaphorePermit;

use super::conn::Conn;
use super::pool::Lent;
use super::{Db, DbResult};

/// A connection that goes back after its use. Dropped, it is closed, and an open transaction ends.
#[derive(Debug)]
pub struct Borrowed<'a>(Kind<'a>);

#[derive(Debug)]
enum Kind<'a> {
    Own(Conn),
    Pooled(Lent<'a>, SemaphorePermit<'a>),
}

impl Db {
    /// Borrows a connection.
    ///
    /// # Errors
    /// When the database is out of reach, or all connections of the pool are in use for too long.
    pub async fn borrow(&self) -> DbResult<Borrowed<'_>> {
        let spare = match self {
            Self::Postgres { reads, .. } => reads.spare().map(|spare| (reads, spare)),
            Self::Sqlite { .. } => None,
        };
        Ok(Borrowed(match spare {
            Some((reads, spare)) => Kind::Pooled(reads.acquire().await?, spare),
            None => Kind::Own(self.connect().await?),
        }))
    }
}

impl Borrowed<'_> {
    /// Gives it back after this outcome, without an open transaction.
    pub fn give_back_after<T>(self, outcome: &DbResult<T>) {
        if let Kind::Pooled(lent, _spare) = self.0
            && outcome.is_ok()
        {
            lent.give_back();
        }
    }
}

impl Deref for Borrowed<'_> {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        match &self.0 {
            Kind::Own(conn) => conn,
            Kind::Pooled(lent, _) => &lent.conn,
        }
    }
}

impl DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut Conn {
        match &mut self.0 {
            Kind::Own(conn) => conn,
            Kind::Pooled(lent, _) => &mut lent.conn,
        }
    }
}
