//! The time limit for connections that a start or a command opens for itself. The driver has none: where the way
//! to the database swallows everything, it waits for ever.

use std::io::{Error as IoError, ErrorKind};
use std::time::Duration;

use super::errors::DbResult;
use super::pool::MAX_FIRST_CONNECT;

/// What comes of opening such a connection, or of a short question over it, within [`MAX_FIRST_CONNECT`].
///
/// # Errors
/// The driver's own; and where nothing comes in time. Then the connection must not be used any more.
pub(super) async fn first_answer<T>(answer: impl Future<Output = DbResult<T>>) -> DbResult<T> {
    answer_within(MAX_FIRST_CONNECT, answer).await
}

async fn answer_within<T>(limit: Duration, answer: impl Future<Output = DbResult<T>>) -> DbResult<T> {
    let late = |_| {
        let said = format!("the database gives no answer within {} s", limit.as_secs());
        Err(sqlx::Error::Io(IoError::new(ErrorKind::TimedOut, said)))
    };
    tokio::time::timeout(limit, answer).await.unwrap_or_else(late)
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgConnectOptions;
    use sqlx::{Connection as _, PgConnection};

    use super::*;

    #[tokio::test]
    async fn a_start_does_not_wait_for_ever() {
        // It takes connections, and says nothing.
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let options: PgConnectOptions = format!("postgres://nobody@{}/none", silent.local_addr().unwrap()).parse().unwrap();
        let opening = answer_within(Duration::from_secs(1), PgConnection::connect_with(&options));
        let error = tokio::time::timeout(Duration::from_secs(60), opening).await.unwrap().unwrap_err();
        assert!(error.to_string().ends_with("the database gives no answer within 1 s"), "{error}");
        assert_eq!(answer_within(Duration::from_secs(1), async { Ok(7) }).await.unwrap(), 7);
    }
}
