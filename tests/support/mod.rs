//! A world per test: its own data folder, or its own database and key prefix; nodes over real
//! sockets, in this process or as processes.

mod client;
mod contract;
mod dice;
pub mod distributed;
mod hand;
mod nodes;
mod notification_list;
mod pause;
mod postgres;
mod process;
mod proxy;
mod redis;
mod redis_cluster;
mod sentinels;
pub mod wire;
mod world;

pub use self::redis::{RedisServer, ask, connect};
pub use client::{Client, Reply};
pub use dice::Dice;
pub use hand::Hand;
pub use nodes::Nodes;
pub use notification_list::{NotificationList, ShownEntry};
pub use pause::Pause;
pub use postgres::{PostgresServer, Recovery};
pub use process::{Process, STORES, kill, refusal, run, run_with_input, start};
pub use proxy::{Proxy, Trap, upstream_and_account};
pub use redis_cluster::RedisCluster;
pub use sentinels::{MASTER, Sentinels};
pub use world::{CREDENTIALS, JWT_SECRET, Node, Tier, World, engine};

/// Runs each case on both tiers: `both_tiers! { async fn name(world: World) { … } }` becomes
/// `name::embedded` and `name::server`.
#[macro_export]
macro_rules! both_tiers {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        $(
            $(#[$meta])*
            mod $name {
                use super::*;

                async fn case($world: $crate::support::World) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn embedded() {
                    case($crate::support::World::new($crate::support::Tier::Embedded).await).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn server() {
                    case($crate::support::World::new($crate::support::Tier::Server).await).await;
                }
            }
        )*
    };
}

/// Waits until `check` holds, for at most ten seconds.
pub async fn eventually<F: AsyncFnMut() -> bool>(what: &str, check: F) {
    eventually_within(10, what, check).await;
}

/// Waits until `check` holds, for at most so many seconds.
pub async fn eventually_within<F: AsyncFnMut() -> bool>(seconds: u64, what: &str, mut check: F) {
    let give_up = tokio::time::Instant::now() + std::time::Duration::from_secs(seconds);
    while !check().await {
        assert!(tokio::time::Instant::now() < give_up, "still not so after {seconds} seconds: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
