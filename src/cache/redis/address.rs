//! The addresses in the setting.

use deadpool_redis::redis::io::tcp::TcpSettings;
use deadpool_redis::redis::{ConnectionInfo, IntoConnectionInfo, RedisError};
use secrecy::ExposeSecret;

use crate::cache::RedisConfig;

/// Packets go out at once.
pub(super) fn without_delay(info: ConnectionInfo) -> ConnectionInfo {
    info.set_tcp_settings(TcpSettings::default().set_nodelay(true))
}

/// The addresses in the setting.
pub(super) fn nodes(redis: &RedisConfig) -> Result<Vec<ConnectionInfo>, RedisError> {
    redis.url.expose_secret().split(',').map(|url| url.trim().into_connection_info().map(without_delay)).collect()
}
