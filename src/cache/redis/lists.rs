//! What Redis keeps beside the entries: lists by version (`{u:42}:f`, `:l`, `:b`), and the stream
//! of events. Facts are in `facts.rs`.

use deadpool_redis::redis::{Cmd, Value, cmd, from_redis_value};

use super::Redis;
use super::shared::{COMMANDS_PER_PIPELINE, Replies, Shared, unexpected_reply};
use super::wire::away;
use crate::base::ids::UserId;
use crate::cache::{CacheError, ListKey, ListVersion, RedisStream};

/// What Redis answers to an entry whose number is not above the last one.
const NOT_ABOVE: &str = "equal or smaller";

/// How many entries one command takes out of a stream, and how many such commands go at once.
const IDS_PER_REMOVAL: usize = 256;
const REMOVALS_AT_ONCE: usize = 4;

impl Shared {
    fn list_key(&self, user: UserId, list: ListKey) -> String {
        let suffix = match list {
            ListKey::Feed => "f",
            ListKey::Following => "l",
            ListKey::Blocks => "b",
            ListKey::Mutes => "m",
        };
        format!("{}:{suffix}", self.key(user))
    }

    /// Sends a part of something larger. It has the time of one operation: that all parts take long does not say
    /// that Redis is away.
    async fn send_part(&self, commands: Vec<Cmd>) -> Result<Replies, CacheError> {
        self.send(self.scripts_wire()?, commands, self.deadline()).await
    }

    fn ttl_ms(&self) -> u64 {
        u64::try_from(self.config.ttl.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Redis {
    pub(in crate::cache) async fn get_list(&self, user: UserId, list: ListKey) -> Result<Option<(ListVersion, Vec<u8>)>, CacheError> {
        let shared = &self.shared;
        let mut get = cmd("GET");
        get.arg(shared.list_key(user, list));
        let value = shared.send(shared.scripts_wire()?, vec![get], shared.deadline()).await?.pop().ok_or_else(unexpected_reply)?;
        match value.map_err(|error| away(&error))? {
            Value::BulkString(bytes) => Ok(decode(&bytes)),
            _ => Ok(None),
        }
    }

    pub(in crate::cache) async fn set_list(
        &self,
        user: UserId,
        list: ListKey,
        version: ListVersion,
        content: &[u8],
    ) -> Result<(), CacheError> {
        let shared = &self.shared;
        let mut set = cmd("SET");
        let value = [version.history.to_be_bytes().as_slice(), &version.revision.to_be_bytes(), content].concat();
        set.arg(shared.list_key(user, list)).arg(value).arg("PX").arg(shared.ttl_ms());
        for result in shared.send(shared.scripts_wire()?, vec![set], shared.deadline()).await? {
            result.map_err(|error| away(&error))?;
        }
        Ok(())
    }

    pub(in crate::cache) fn life_ms(&self) -> i64 {
        i64::try_from(self.shared.ttl_ms()).unwrap_or(i64::MAX)
    }

    pub(in crate::cache) async fn remove(&self, stream: &RedisStream, ids: &[i64]) -> Result<(), CacheError> {
        let shared = &self.shared;
        let remove = |ids: &[i64]| {
            let mut remove = cmd("XDEL");
            remove.arg(&stream.key).arg(ids.iter().map(|id| format!("{id}-0")).collect::<Vec<_>>());
            remove
        };
        for part in ids.chunks(IDS_PER_REMOVAL * REMOVALS_AT_ONCE) {
            for result in shared.send_part(part.chunks(IDS_PER_REMOVAL).map(remove).collect()).await? {
                result.map_err(|error| away(&error))?;
            }
        }
        Ok(())
    }

    pub(in crate::cache) async fn append(&self, stream: &RedisStream, entries: &[(i64, String)]) -> Result<bool, CacheError> {
        let shared = &self.shared;
        let mut refused = None;
        for chunk in entries.chunks(COMMANDS_PER_PIPELINE - 1) {
            let commands = chunk.iter().map(|(id, entry)| add(stream, *id, entry)).chain([expire(stream)]).collect();
            let mut results = shared.send_part(commands).await?;
            results.pop().ok_or_else(unexpected_reply)?.map_err(|error| away(&error))?;
            for (entry, result) in chunk.iter().zip(results) {
                match result {
                    Err(error) if !error.to_string().contains(NOT_ABOVE) => return Err(away(&error)),
                    Err(_) => refused = Some(entry),
                    Ok(_) => {}
                }
            }
        }
        match refused {
            Some((id, entry)) => self.has(stream, *id, entry).await,
            None => Ok(true),
        }
    }

    /// Whether the stream has this entry under this number.
    async fn has(&self, stream: &RedisStream, id: i64, entry: &str) -> Result<bool, CacheError> {
        let shared = &self.shared;
        let mut range = cmd("XRANGE");
        range.arg(&stream.key).arg(format!("{id}-0")).arg(format!("{id}-0"));
        let value = shared.send(shared.scripts_wire()?, vec![range], shared.deadline()).await?.pop().ok_or_else(unexpected_reply)?;
        let found: Vec<(String, Vec<String>)> = from_redis_value(value.map_err(|error| away(&error))?).map_err(|_| unexpected_reply())?;
        Ok(found.iter().any(|(_, fields)| fields.iter().any(|field| field == entry)))
    }
}

fn decode(bytes: &[u8]) -> Option<(ListVersion, Vec<u8>)> {
    let (history, rest) = bytes.split_first_chunk()?;
    let (revision, list) = rest.split_first_chunk()?;
    let version = ListVersion { history: i64::from_be_bytes(*history), revision: i64::from_be_bytes(*revision) };
    Some((version, list.to_vec()))
}

/// It does not stay for ever.
fn expire(stream: &RedisStream) -> Cmd {
    let mut expire = cmd("PEXPIRE");
    expire.arg(&stream.key).arg(u64::try_from(stream.ttl.as_millis()).unwrap_or(u64::MAX));
    expire
}

/// Numbered by us, so that one that is sent twice is there once.
fn add(stream: &RedisStream, id: i64, entry: &str) -> Cmd {
    let mut add = cmd("XADD");
    add.arg(&stream.key).arg("MAXLEN").arg("~").arg(stream.max_entries).arg(format!("{id}-0")).arg("event").arg(entry);
    add
}
