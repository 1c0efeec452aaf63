//! Idempotency keys: the first answer to a key is kept for a day and some minutes, in the transaction
//! of its effect, and replayed after.

use std::collections::HashMap;

use futures_util::future::try_join;
use sha2::{Digest, Sha256};

use crate::base::clock::{DAY_MS, MAX_SKEW_MS, UnixMs};
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};

/// How long an answer is kept: a day, and as much as the clock of the node that wrote it may be behind that of the node
/// that reads it.
pub const KEPT_MS: i64 = DAY_MS + 2 * MAX_SKEW_MS;

/// How many keys one transaction takes: each holds an advisory lock, of which Postgres has a
/// bounded number.
pub const MAX_KEYS_PER_BATCH: usize = 128;

/// How many outdated keys one sweep removes.
const SWEEP_ROWS: i64 = 1000;

/// A key as one caller sent it, with the digest of the request that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Who sent it, by name.
    pub caller: String,
    /// The header's value.
    pub key: String,
    /// SHA-256 of method, path and what the body says as JSON, in hex: the same JSON written
    /// otherwise is the same request.
    pub digest: String,
}

/// An answer that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Of which request.
    pub digest: String,
    /// HTTP status.
    pub status: u16,
    /// JSON.
    pub body: String,
}

/// Takes each key without waiting; returns those that were got. A transaction elsewhere holds the
/// others.
static TRY_LOCK: Statement = Statement::each(
    "select lock_id from {rows} r",
    "select lock_id from {rows} r where pg_try_advisory_xact_lock(lock_id)",
    &[("lock_id", Type::Int)],
);

static LOAD: Statement = Statement::new(
    "select k.caller, k.key, k.digest, k.status, k.body
    from {rows} r
    join idempotency_keys k on k.caller = r.caller and k.key = r.key
    where k.created_at > r.oldest",
    &[("caller", Type::Text), ("key", Type::Text), ("oldest", Type::Int)],
);

static SAVE: Statement = Statement::new(
    "insert into idempotency_keys (caller, key, digest, status, body, created_at)
    select caller, key, digest, status, body, created_at
    from {rows} r
    where true
    on conflict (caller, key) do update set
        digest = excluded.digest,
        status = excluded.status,
        body = excluded.body,
        created_at = excluded.created_at",
    &[
        ("caller", Type::Text),
        ("key", Type::Text),
        ("digest", Type::Text),
        ("status", Type::Int),
        ("body", Type::Content),
        ("created_at", Type::Int),
    ],
);

static SWEEP: Statement = Statement::one(
    "delete from idempotency_keys
    where (caller, key) in (
        select k.caller, k.key
        from idempotency_keys k
        where k.created_at <= $1
        order by k.created_at
        limit $2
    )",
    &[("oldest", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 4] {
    [&TRY_LOCK, &LOAD, &SAVE, &SWEEP]
}

impl Key {
    /// The advisory lock of this key: 63 bits of a hash, so that two keys in a great many share
    /// one, which costs a short wait.
    fn lock_id(&self) -> i64 {
        let mut hash = Sha256::new();
        hash.update(b"headmark:idempotency:");
        hash.update(self.caller.as_bytes());
        hash.update([0]);
        hash.update(self.key.as_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let mut head = [0_u8; 8];
        head.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        i64::from_be_bytes(head)
    }

    fn name(&self) -> (String, String) {
        (self.caller.clone(), self.key.clone())
    }
}

/// A row of `idempotency_keys`.
type Row = (String, String, String, i64, String);

/// What is known of the keys of one batch.
#[derive(Debug, Default)]
pub struct Keys {
    kept: HashMap<(String, String), Kept>,
    new: Vec<(Key, Kept)>,
    held: Vec<i64>,
}

impl Keys {
    /// Takes the keys and loads the answers that are kept.
    pub async fn load(pipeline: &Pipeline, keys: &[&Key], now: UnixMs) -> DbResult<Self> {
        if keys.is_empty() {
            return Ok(Self::default());
        }
        let locks = Column::Int(keys.iter().map(|key| key.lock_id()).collect());
        let columns = [
            Column::Text(keys.iter().map(|key| key.caller.clone()).collect()),
            Column::Text(keys.iter().map(|key| key.key.clone()).collect()),
            Column::Int(vec![now.0 - KEPT_MS; keys.len()]),
        ];
        let held = pipeline.fetch(&TRY_LOCK, [locks]);
        let kept = pipeline.fetch(&LOAD, columns);
        let (held, rows): (Vec<(i64,)>, Vec<Row>) = try_join(held, kept).await?;
        let kept = rows.into_iter().map(|(caller, key, digest, status, body)| {
            ((caller, key), Kept { digest, status: u16::try_from(status).unwrap_or(500), body })
        });
        Ok(Self { kept: kept.collect(), new: Vec::new(), held: held.into_iter().map(|(id,)| id).collect() })
    }

    /// Whether this transaction holds the key.
    #[must_use]
    pub fn holds(&self, key: &Key) -> bool {
        self.held.contains(&key.lock_id())
    }

    /// The answer kept under this key, earlier or by a command before in the same batch.
    #[must_use]
    pub fn kept(&self, key: &Key) -> Option<&Kept> {
        self.kept.get(&key.name())
    }

    /// Keeps an answer.
    pub fn keep(&mut self, key: &Key, status: u16, body: &str) {
        let kept = Kept { digest: key.digest.clone(), status, body: body.to_owned() };
        self.kept.insert(key.name(), kept.clone());
        self.new.push((key.clone(), kept));
    }

    /// Writes the new answers.
    pub async fn save(&self, conn: &mut Conn, now: UnixMs) -> DbResult<()> {
        if self.new.is_empty() {
            return Ok(());
        }
        let column = |pick: fn(&(Key, Kept)) -> &String| Column::Text(self.new.iter().map(|new| pick(new).clone()).collect());
        let columns = [
            column(|(key, _)| &key.caller),
            column(|(key, _)| &key.key),
            column(|(_, kept)| &kept.digest),
            Column::Int(self.new.iter().map(|(_, kept)| i64::from(kept.status)).collect()),
            column(|(_, kept)| &kept.body),
            Column::Int(vec![now.0; self.new.len()]),
        ];
        conn.later(&SAVE, &columns).await
    }
}

/// Removes some keys that are no longer kept; returns how many. Call again while it returns many.
pub async fn sweep(db: &Db, now: UnixMs) -> DbResult<u64> {
    db.run(&SWEEP, &[Column::Int(vec![now.0 - KEPT_MS]), Column::Int(vec![SWEEP_ROWS])]).await
}
