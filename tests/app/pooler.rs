//! A pooler between a node and Postgres: pgbouncer as it comes, and as somebody may set it up so that
//! it takes the connection. What would lose locks, settings or prepared statements is refused at the
//! start, with what to do.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use headmark::base::clock::Clock;
use serde_json::json;
use tokio::net::TcpStream;

use crate::support::{Tier, World, eventually, run};

/// A pgbouncer before a world's database. Killed when dropped.
struct Pooler {
    child: Child,
    url: String,
}

impl Pooler {
    async fn start(world: &World, settings: &str) -> Self {
        // postgres://user:password@host:port/database
        let (account, place) = world.database_url.strip_prefix("postgres://").unwrap().split_once('@').unwrap();
        let ((user, password), (address, database)) = (account.split_once(':').unwrap(), place.split_once('/').unwrap());
        let (host, upstream) = address.split_once(':').unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = world.dir.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n{database} = host={host} port={upstream} user={user} password={password}\n\
            [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n{settings}\n"
        );
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let mut command = Command::new("pgbouncer");
        command.arg("-q").arg(&file).current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
        // It refuses to run as root, as Postgres does.
        if let Ok(owner) = std::env::var("HEADMARK_PG_OWNER") {
            let (uid, gid) = owner.split_once(':').unwrap();
            let (uid, gid) = (uid.parse().unwrap(), gid.parse().unwrap());
            chown(&file, Some(uid), Some(gid)).unwrap();
            command.gid(gid).uid(uid);
        }
        let child = command.spawn().expect("this test starts pgbouncer; install it (scripts/engines.sh install)");
        eventually("pgbouncer listens", async || TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await;
        Self { child, url: format!("postgres://{user}@127.0.0.1:{port}/{database}?sslmode=disable") }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const TAKES_SETTINGS: &str = "ignore_startup_parameters = options,extra_float_digits";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_pooler_that_would_lose_something_is_refused_with_the_fix() {
    let mut world = World::new(Tier::Server).await;
    let direct = world.database_url.clone();
    let says_timeout =
        direct.rsplit_once('/').map(|(_, database)| format!("alter database {database} set statement_timeout = 3000")).unwrap();
    let cases = [
        ("pool_mode = transaction".to_owned(), "startup parameter"),
        (format!("pool_mode = transaction\n{TAKES_SETTINGS}"), "drops the settings of a connection"),
        (format!("pool_mode = session\n{TAKES_SETTINGS}"), "drops the settings of a connection"),
    ];
    for (settings, why) in cases {
        refused(&mut world, &direct, &settings, why).await;
    }
    // Where the database itself has the settings, what is left is that sessions change.
    sqlx::Executor::execute(&mut world.postgres().await, sqlx::AssertSqlSafe(says_timeout)).await.unwrap();
    for pool in ["", "\ndefault_pool_size = 1"] {
        let settings = format!("pool_mode = transaction\n{TAKES_SETTINGS}{pool}");
        refused(&mut world, &direct, &settings, "gives each transaction another session").await;
    }
    // A pooler that gives each connection a session of its own is as good as none.
    let pooler = Pooler::start(&world, &format!("pool_mode = session\ndefault_pool_size = 100\n{TAKES_SETTINGS}")).await;
    world.database_url = pooler.url.clone();
    let node = world.node().await;
    assert_eq!(node.client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok()["unread"], 1);
    node.stop().await;
}

async fn refused(world: &mut World, direct: &str, settings: &str, why: &str) {
    world.database_url = direct.to_owned();
    let pooler = Pooler::start(world, settings).await;
    world.database_url = pooler.url.clone();
    let refusal = world.try_node(&[], Clock::System).await.map(|_| "it starts").unwrap_err();
    assert!(refusal.contains(why), "{settings}: {refusal}");
    let examined = run(&["doctor"], &[("DATABASE_URL", &pooler.url), ("HEADMARK_SERVICE_KEYS", "web:s3cret-of-the-suite")]).await;
    let text = String::from_utf8(examined.stdout).unwrap();
    assert!(examined.status.code() != Some(0) && text.contains(why) && text.contains("connect to Postgres itself"), "{settings}: {text}");
    world.database_url = direct.to_owned();
}
