//! Promise 1, its second half: what was acknowledged survives the database's own crash recovery.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use crate::support::{Client, Tier, World, engine, eventually_within};

/// A Postgres of the test's own, durable.
struct Cluster {
    data: PathBuf,
    bin: PathBuf,
    /// Whom it runs as, where the test is root, which Postgres refuses to be.
    owner: Option<(u32, u32)>,
    port: u16,
}

impl Cluster {
    fn start(world: &World) -> Self {
        let owner = std::env::var("HEADMARK_PG_OWNER").ok().map(|owner| {
            let (uid, gid) = owner.split_once(':').unwrap();
            (uid.parse().unwrap(), gid.parse().unwrap())
        });
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let this = Self { data: world.dir.join("pg"), bin: PathBuf::from(engine("HEADMARK_PG_BIN")), owner, port };
        std::fs::create_dir(&this.data).unwrap();
        if let Some((uid, gid)) = owner {
            chown(&this.data, Some(uid), Some(gid)).unwrap();
        }
        this.run("initdb", &["-U", "headmark", "-A", "trust", "--no-sync"]);
        this.begin();
        this
    }

    fn begin(&self) {
        let options = format!("-c port={} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=on", self.port);
        self.run("pg_ctl", &["-w", "-l", self.data.join("log").to_str().unwrap(), "-o", &options, "start"]);
    }

    /// Stops every process at once, without a checkpoint: the next start is a crash recovery.
    fn crash(&self) {
        self.run("pg_ctl", &["-m", "immediate", "stop"]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.bin.join(program));
        command.arg("-D").arg(&self.data).args(arguments).current_dir("/").stdout(std::process::Stdio::null());
        if let Some((uid, gid)) = self.owner {
            command.gid(gid).uid(uid);
        }
        assert!(command.status().unwrap().success(), "{program} {arguments:?}");
    }

    fn url(&self) -> String {
        format!("postgres://headmark@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.crash();
    }
}

/// The head that a poll shows, degraded or not.
async fn shown(client: &Client) -> i64 {
    client.get("/v1/users/1/badges").await.body["counters"]["dm"]["head"].as_i64().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_crash_of_the_database_loses_nothing_acknowledged() {
    let mut world = World::new(Tier::Server).await;
    let cluster = Cluster::start(&world);
    world.database_url = cluster.url();
    let node = world.node().await;
    let client = node.client.clone();
    let load = tokio::spawn(async move {
        let mut acknowledged = Vec::new();
        for n in 0..400 {
            // The same key until it is acknowledged: a crash in between must neither lose it nor count it twice.
            while client.post_once("/v1/users/1/badges/dm/increment", &format!("k{n}"), &json!({})).await.status != 200 {}
            acknowledged.push(n);
        }
        acknowledged.len()
    });
    for crash in 1..=2 {
        eventually_within(20, "some writes went through", async || shown(&node.client).await > crash * 40).await;
        cluster.crash();
        cluster.begin();
    }
    assert_eq!(load.await.unwrap(), 400);
    let mut conn = PgConnection::connect(&cluster.url()).await.unwrap();
    let (head,): (i64,) = sqlx::query_as("select head from marks where user_id = 1").fetch_one(&mut conn).await.unwrap();
    assert_eq!(head, 400);
    eventually_within(20, "the node shows it", async || shown(&node.client).await == 400).await;
}
