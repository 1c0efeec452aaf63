//! The addresses in the setting.

use deadpool_redis::redis::io::tcp::TcpSettings;
use deadpool_redis::redis::{ConnectionInfo, IntoConnectionInfo, RedisError};
use secrecy::ExposeSecret;

use crate::cache::RedisConfig;

impl RedisConfig {
    /// Checks the addresses.
    ///
    /// # Errors
    /// A sentence for the operator. It does not show the addresses, which may hold a password.
    pub fn check(&self) -> Result<(), String> {
        nodes(self).map(drop).map_err(|_| "REDIS_URL is not a valid redis:// or rediss:// URL".to_owned())
    }
}

/// Packets go out at once.
pub(super) fn without_delay(info: ConnectionInfo) -> ConnectionInfo {
    info.set_tcp_settings(TcpSettings::default().set_nodelay(true))
}

/// The addresses in the setting.
pub(super) fn nodes(redis: &RedisConfig) -> Result<Vec<ConnectionInfo>, RedisError> {
    redis.url.expose_secret().split(',').map(|url| url.trim().into_connection_info().map(without_delay)).collect()
}
