//! Addresses of Postgres at which another server can answer, or others on the way can read along.

use std::net::IpAddr;

use secrecy::SecretString;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::open::address;
use super::{ReplicaConfig, StoreConfig};

/// The variables that name such an address.
#[must_use]
pub fn unverified(stores: &StoreConfig, replica: &ReplicaConfig) -> Vec<&'static str> {
    let urls = [("DATABASE_URL", &stores.database_url), ("HEADMARK_REPLICA_URL", &replica.replica_url)];
    let is_such = |url: &Option<SecretString>| url.as_ref().and_then(address).is_some_and(|options| is_unverified(&options));
    urls.into_iter().filter(|(_, url)| is_such(url)).map(|(variable, _)| variable).collect()
}

/// Whether it is on another machine, and its certificate is not looked at. `require` encrypts, but any server may
/// answer; with `prefer`, the default, and `allow`, the other side decides about that, too. `disable` is said by
/// somebody who knows the network. So is a name without a dot: containers of one machine call each other so.
fn is_unverified(options: &PgConnectOptions) -> bool {
    let is_open = matches!(options.get_ssl_mode(), PgSslMode::Allow | PgSslMode::Prefer | PgSslMode::Require);
    let host = options.get_host();
    let is_far = host.contains(['.', ':']) && !host.starts_with('/') && !is_loopback(host);
    is_open && is_far && options.get_socket().is_none()
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_another_machine_is_to_show_a_certificate() {
        let judged = |url: &str| is_unverified(&address(&url.to_owned().into()).unwrap());
        for mode in ["allow", "prefer", "require"] {
            for host in ["db.example", "10.0.0.1", "[2001:db8::1]", "localhost.example"] {
                assert!(judged(&format!("postgres://u:p@{host}:5433/d?sslmode={mode}")), "{host} {mode}");
            }
            for host in ["localhost", "postgres", "127.0.0.1", "127.8.0.1", "[::1]", "%2Frun%2Fpostgresql"] {
                assert!(!judged(&format!("postgres://u:p@{host}/d?sslmode={mode}")), "{host} {mode}");
            }
            assert!(!judged(&format!("postgres:///d?host=/run/postgresql&sslmode={mode}")), "{mode}");
            assert!(judged(&format!("postgres:///d?host=db.example&sslmode={mode}")), "{mode}");
        }
        for mode in ["disable", "verify-ca", "verify-full"] {
            assert!(!judged(&format!("postgresql://db.example/d?sslmode={mode}")), "{mode}");
        }
    }
}
