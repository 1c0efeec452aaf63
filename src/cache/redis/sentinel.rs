//! Asks the Sentinels which Redis is the master.
//!
//! All are asked at once, and the one that knows of the latest failover is believed: while a failover
//! goes round, others still name the master before it.

use std::collections::HashMap;
use std::time::Duration;

use deadpool_redis::redis::aio::{ConnectionLike, MultiplexedConnection};
use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisConnectionInfo, RedisError, Role,
    Value, cmd, from_redis_value,
};
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use secrecy::ExposeSecret;

use super::address::{nodes, without_delay};
use crate::cache::{RedisConfig, SentinelConfig};

/// The share of the timeout that the others are waited for once one has answered.
const OTHERS: u32 = 4;

/// What a Sentinel says of the master.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    /// Counts the failovers that it knows of.
    epoch: u64,
    host: String,
    port: u16,
}

/// What was found out about a Sentinel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentinelFacts {
    pub address: String,
    /// The address of the master that it names, or why it names none.
    pub named: Result<String, String>,
}

/// What each Sentinel answers, with its address, for an operator.
pub(super) async fn roll_call(redis: &RedisConfig, sentinel: &SentinelConfig) -> Result<Vec<SentinelFacts>, RedisError> {
    let urls = nodes(redis)?;
    let asked = urls.iter().map(async |url| SentinelFacts {
        address: url.addr().to_string(),
        named: ask(redis, sentinel, url).await.map(|named| format!("{}:{}", named.host, named.port)).map_err(|error| error.to_string()),
    });
    Ok(join_all(asked).await)
}

/// The address of the master, as the Sentinels name it now.
pub(super) async fn master(redis: &RedisConfig, sentinel: &SentinelConfig) -> Result<ConnectionInfo, RedisError> {
    let urls = nodes(redis)?;
    let [first, rest @ ..] = urls.as_slice() else { return Err(wrong("REDIS_URL names no Sentinel")) };
    if !rest.iter().all(|url| agree(first, url)) {
        return Err(wrong("the Sentinels in REDIS_URL differ in more than their addresses"));
    }
    let mut asked: FuturesUnordered<_> = urls.iter().map(|url| ask(redis, sentinel, url)).collect();
    let (mut newest, mut failure): (Option<Named>, Option<RedisError>) = (None, None);
    let mut patience = redis.timeout;
    while let Ok(Some(answer)) = tokio::time::timeout(patience, asked.next()).await {
        match answer {
            Ok(named) => {
                if newest.as_ref().is_none_or(|newest| newest.epoch < named.epoch) {
                    newest = Some(named);
                }
                patience = redis.timeout / OTHERS;
            }
            // One that refuses tells more than one that is away.
            Err(error) if failure.as_ref().is_none_or(RedisError::is_io_error) => failure = Some(error),
            Err(_) => {}
        }
    }
    match newest {
        Some(named) => Ok(without_delay(at(first, named).into_connection_info()?).set_redis_settings(first.redis_settings().clone())),
        None => Err(failure.unwrap_or_else(|| RedisError::from((ErrorKind::Io, "no Sentinel answers in time")))),
    }
}

/// Fails unless the other end says that it is a master. A Sentinel may name one that has yet to become
/// one, or that is none any more.
pub(super) async fn check_master(connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
    match cmd("ROLE").query_async(connection).await? {
        Role::Primary { .. } => Ok(()),
        _ => Err(RedisError::from((ErrorKind::Io, "the Redis that the Sentinels name is no master yet"))),
    }
}

/// The address of the master, with TLS if the Sentinels have it.
fn at(first: &ConnectionInfo, Named { host, port, .. }: Named) -> ConnectionAddr {
    match first.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        _ => ConnectionAddr::Tcp(host, port),
    }
}

/// Whether a URL says of the master what the first one says, or nothing.
fn agree(first: &ConnectionInfo, url: &ConnectionInfo) -> bool {
    let (one, other) = (first.redis_settings(), url.redis_settings());
    let is_tls = |url: &ConnectionInfo| matches!(url.addr(), ConnectionAddr::TcpTls { .. });
    let account = |info: &RedisConnectionInfo| (info.username().map(str::to_owned), info.password().map(str::to_owned));
    is_tls(first) == is_tls(url)
        && (account(other) == (None, None) || account(other) == account(one))
        && (other.db() == 0 || other.db() == one.db())
}

fn wrong(what: &'static str) -> RedisError {
    RedisError::from((ErrorKind::InvalidClientConfig, what))
}

async fn ask(redis: &RedisConfig, sentinel: &SentinelConfig, url: &ConnectionInfo) -> Result<Named, RedisError> {
    let mut account = RedisConnectionInfo::default();
    if let Some(name) = &sentinel.username {
        account = account.set_username(name);
    }
    if let Some(password) = &sentinel.password {
        account = account.set_password(password.expose_secret());
    }
    let client = Client::open(url.clone().set_redis_settings(account))?;
    let limits = limits(redis.timeout);
    let mut connection = client.get_multiplexed_async_connection_with_config(&limits).await?;
    let mut address = cmd("SENTINEL");
    address.arg("GET-MASTER-ADDR-BY-NAME").arg(&sentinel.master);
    let Some((host, port)) = from_redis_value::<Option<(String, u16)>>(connection.req_packed_command(&address).await?)? else {
        return Err(wrong("the Sentinels know no master of the name in REDIS_SENTINEL"));
    };
    let mut about = cmd("SENTINEL");
    about.arg("MASTER").arg(&sentinel.master);
    // An account may be allowed to ask for the address only.
    let about = connection.req_packed_command(&about).await.unwrap_or(Value::Nil);
    let about: HashMap<String, String> = from_redis_value(about).unwrap_or_default();
    let epoch = about.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    Ok(Named { epoch, host, port })
}

/// How long connecting and each answer may take.
fn limits(timeout: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(Some(timeout)).set_response_timeout(Some(timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(url: &str) -> ConnectionInfo {
        url.into_connection_info().unwrap()
    }

    #[test]
    fn the_master_has_the_account_and_the_encryption_of_the_first_url() {
        let named = || Named { epoch: 1, host: "10.0.0.7".to_owned(), port: 6380 };
        assert!(matches!(at(&info("redis://a:1"), named()), ConnectionAddr::Tcp(host, 6380) if host == "10.0.0.7"));
        let tls = at(&info("rediss://a:1"), named());
        assert!(matches!(tls, ConnectionAddr::TcpTls { host, port: 6380, insecure: false, .. } if host == "10.0.0.7"));
        let first = info("redis://me:secret@a:1/2");
        for same in ["redis://b:1", "redis://me:secret@b:1/2", "redis://b:1/2"] {
            assert!(agree(&first, &info(same)), "{same}");
        }
        for other in ["rediss://b:1", "redis://you:secret@b:1", "redis://me:other@b:1", "redis://b:1/3"] {
            assert!(!agree(&first, &info(other)), "{other}");
        }
    }
}
