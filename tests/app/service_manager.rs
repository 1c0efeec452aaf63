//! What a service manager is told: a fake socket of systemd, and the real program.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use crate::both_tiers;
use crate::support::{Client, Process, Proxy, Tier, World, eventually};

/// The watchdog of most tests, in microseconds: long enough for a busy machine.
const WATCHDOG_USEC: &str = "4000000";

/// The socket that the service manager reads.
struct Manager {
    socket: UnixDatagram,
    name: String,
}

impl Manager {
    /// On a path.
    fn on_path(world: &World) -> Self {
        let path = world.dir.join("notify");
        Self { socket: UnixDatagram::bind(&path).unwrap(), name: path.to_str().unwrap().to_owned() }
    }

    /// The next message; None where none comes in time.
    fn told_within(&self, limit: Duration) -> Option<String> {
        self.socket.set_read_timeout(Some(limit)).unwrap();
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).ok()?;
        Some(String::from_utf8(message[..length].to_vec()).unwrap())
    }

    /// All that was told until now.
    fn told(&self) -> Vec<String> {
        std::iter::from_fn(|| self.told_within(Duration::from_millis(1))).collect()
    }

    /// How long until the watchdog is fed for the next time.
    fn fed_after(&self) -> Duration {
        self.told();
        let asked = Instant::now();
        while self.told_within(Duration::from_secs(20)).expect("the watchdog is fed") != "WATCHDOG=1" {}
        asked.elapsed()
    }

    async fn start(&self, world: &World, more: &[(&str, &str)]) -> Process {
        let env: Vec<(&str, &str)> = [("NOTIFY_SOCKET", self.name.as_str())].into_iter().chain(more.iter().copied()).collect();
        world.process(&[], &env).await
    }
}

both_tiers! {
    async fn a_node_says_when_it_is_ready_healthy_and_stops(world: World) {
        let manager = Manager::on_path(&world);
        let mut node = manager.start(&world, &[("WATCHDOG_USEC", WATCHDOG_USEC)]).await;
        let ready = manager.told_within(Duration::from_secs(20)).unwrap();
        assert_eq!(ready, format!("READY=1\nSTATUS=Listening on {}", node.base.trim_start_matches("http://")));
        assert_eq!(node.client.get("/readyz").await.status, 200);
        assert!(manager.fed_after() < Duration::from_secs(4), "in the time that the watchdog allows");
        node.terminate();
        assert_eq!(node.ended().await.code(), Some(0));
        let told = manager.told();
        assert!(told.iter().any(|message| message == "STOPPING=1\nSTATUS=Draining"), "{told:?}");
    }

    async fn a_node_whose_lane_has_ended_says_nothing(world: World) {
        let manager = Manager::on_path(&world);
        let fails = [("FAILPOINTS", "lane::outside_of_a_batch=3*off->panic"), ("WATCHDOG_USEC", WATCHDOG_USEC)];
        let node = manager.start(&world, &fails).await;
        eventually("a lane has ended", async || {
            let raise = node.client.request(reqwest::Method::POST, "/v1/users/42/badges/mention/increment");
            let _ = Client::try_send(raise.timeout(Duration::from_millis(500))).await;
            node.client.get("/readyz").await.body["node"] == "failed"
        })
        .await;
        manager.told();
        assert_eq!(manager.told_within(Duration::from_secs(4)), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_stores_are_away_is_healthy() {
    let mut world = World::new(Tier::Server).await;
    let manager = Manager::on_path(&world);
    let (postgres, database_url) = Proxy::start(&world.database_url).await;
    let (redis, redis_url) = Proxy::start_redis(&world.redis_url).await;
    (world.database_url, world.redis_url) = (database_url, redis_url);
    let node = manager.start(&world, &[("WATCHDOG_USEC", WATCHDOG_USEC)]).await;
    postgres.leave();
    redis.leave();
    eventually("it is not ready", async || node.client.get("/readyz").await.status == 503).await;
    assert_eq!(node.client.get("/livez").await.status, 200, "a restart would not help");
    for _ in 0..4 {
        assert!(manager.fed_after() < Duration::from_secs(4), "a restart would not help");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watchdog_of_another_process_is_not_fed() {
    let world = World::new(Tier::Embedded).await;
    let manager = Manager::on_path(&world);
    let _node = manager.start(&world, &[("WATCHDOG_USEC", "400000"), ("WATCHDOG_PID", "1")]).await;
    assert!(manager.told_within(Duration::from_secs(20)).unwrap().starts_with("READY=1"));
    assert_eq!(manager.told_within(Duration::from_secs(1)), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_is_gone_stops_nobody() {
    let world = World::new(Tier::Embedded).await;
    let gone = world.dir.join("gone").to_str().unwrap().to_owned();
    let mut node = world.process(&[], &[("NOTIFY_SOCKET", &gone), ("WATCHDOG_USEC", "400000")]).await;
    assert_eq!(node.client.get("/readyz").await.status, 200);
    node.terminate();
    assert_eq!(node.ended().await.code(), Some(0));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_socket_may_have_an_abstract_name() {
    use std::os::linux::net::SocketAddrExt as _;
    let world = World::new(Tier::Embedded).await;
    let name = world.prefix.trim_end_matches(':').to_owned();
    let socket = UnixDatagram::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let manager = Manager { socket, name: format!("@{name}") };
    let _node = manager.start(&world, &[]).await;
    assert!(manager.told_within(Duration::from_secs(20)).unwrap().starts_with("READY=1"));
}
