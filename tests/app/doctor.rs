//! `headmark doctor` and `headmark healthcheck`, against real stores and servers.

use crate::both_tiers;
use crate::support::{Process, Tier, World, eventually, run};

const KEY: &str = "web:s3cret-of-the-suite";

/// The environment that names a world's stores, and a service key.
fn env(world: &World) -> Vec<(&str, String)> {
    let mut env = vec![("HEADMARK_SERVICE_KEYS", KEY.to_owned())];
    match world.tier {
        Tier::Embedded => env.push(("HEADMARK_DATA_DIR", world.dir.join("data").to_str().unwrap().to_owned())),
        Tier::Server => {
            env.push(("DATABASE_URL", world.database_url.clone()));
            env.push(("REDIS_URL", world.redis_url.clone()));
            env.push(("HEADMARK_CACHE_PREFIX", world.prefix.clone()));
        }
    }
    env
}

/// Runs a command; its exit status, and what it prints.
async fn told(args: &[&str], env: &[(&str, String)]) -> (Option<i32>, String) {
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let output = run(args, &env).await;
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

async fn start(env: &[(&str, String)]) -> Process {
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Process::start(&["--listen".to_owned(), "127.0.0.1:0".to_owned()], &env).await
}

/// The lines about a subject.
fn about<'a>(text: &'a str, subject: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.get(8..).is_some_and(|line| line.starts_with(subject))).collect()
}

both_tiers! {
    async fn a_server_is_examined_as_its_clients_use_it(world: World) {
        let env = env(&world);
        let nodes = if world.tier == Tier::Server { vec![start(&env).await, start(&env).await] } else { vec![start(&env).await] };
        let (url, last) = (nodes[0].base.as_str(), nodes.last().unwrap().base.as_str());
        let args = ["doctor", "--url", url, "--node", url, "--node", last, "--hold-seconds", "1"];
        let (_, text) = told(&args, &env).await;
        let service = about(&text, "service");
        assert!(service.iter().all(|line| line.starts_with("ok ")), "{text}");
        for part in ["is ready", "a write took", "304", "held for 1 s", &format!("through {last}/ wakes a poll")] {
            assert!(service.iter().any(|line| line.contains(part)), "{part} in {text}");
        }
        let stores = about(&text, if world.tier == Tier::Server { "postgres" } else { "sqlite" });
        assert!(stores.iter().any(|line| line.contains("its schema is up to date")), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
        // It leaves nothing unread.
        let user = nodes[0].client.with_bearer("s3cret-of-the-suite").get("/v1/users/9223372036854775807/badges").await.ok();
        assert_eq!(user["counters"]["headmark-doctor"]["unread"], 0, "{user}");
        assert_eq!(told(&["healthcheck", "--url", url], &[]).await.0, Some(0));
        // An address that is given as an option comes before the server's settings.
        let (listen, nobody) = (url.strip_prefix("http://").unwrap(), "127.0.0.1:1".to_owned());
        let admin = [("HEADMARK_ADMIN_LISTEN", nobody.clone())];
        assert_eq!(told(&["healthcheck", "--listen", listen], &admin).await.0, Some(0));
        assert_eq!(told(&["healthcheck", "--listen", listen, "--admin-listen", &nobody], &[]).await.0, Some(1));
        let listens = [("HEADMARK_LISTEN", listen.to_owned())];
        assert_eq!(told(&["healthcheck"], &listens).await.0, Some(0));
        assert_eq!(told(&["healthcheck"], &[admin, listens].concat()).await.0, Some(1), "operators' address first");
    }

    async fn an_old_backup_is_told(world: World) {
        let env = env(&world);
        let folder = world.dir.join("backups");
        std::fs::create_dir(&folder).unwrap();
        let told_of = async |more: &[&str]| {
            let args = [&["doctor", "--backups", folder.to_str().unwrap()], more].concat();
            let (status, text) = told(&args, &env).await;
            (status, about(&text, "backups").join("\n"))
        };
        let (status, text) = told_of(&[]).await;
        assert!(status == Some(3) && text.contains("has no backup"), "{text}");
        std::fs::write(folder.join("monday"), "rows").unwrap();
        let (_, text) = told_of(&[]).await;
        assert!(text.starts_with("ok") && text.contains("monday, is 0 h old"), "{text}");
        let old = std::time::SystemTime::UNIX_EPOCH;
        std::fs::File::options().write(true).open(folder.join("monday")).unwrap().set_modified(old).unwrap();
        let (status, text) = told_of(&["--backup-max-age", "24"]).await;
        assert!(status == Some(3) && text.contains("more than 24 h"), "{text}");
    }

    async fn what_is_wrong_is_told_with_its_fix(world: World) {
        let env = env(&world);
        let node = start(&env).await;
        let mut other = env.clone();
        other[0].1 = "web:another-secret-of-the-suite".to_owned();
        let (status, text) = told(&["doctor", "--url", &node.base, "--hold-seconds", "1"], &other).await;
        assert_eq!(status, Some(3), "{text}");
        assert!(text.contains("a write: 401 Unauthorized") && text.contains("fix: give the service keys"), "{text}");
        let proxy = [("HTTP_PROXY", "http://127.0.0.1:1".to_owned()), ("http_proxy", "http://127.0.0.1:1".to_owned())];
        assert_eq!(told(&["healthcheck", "--url", &node.base], &proxy).await.0, Some(0), "asked without a proxy");
        let mut node = node;
        node.kill().await;
        let (status, text) = told(&["doctor", "--url", &node.base], &env).await;
        assert_eq!(status, Some(3), "{text}");
        assert!(text.contains("does not answer: Connection refused") && text.contains("fix: check the address"), "{text}");
        let unhealthy = run(&["healthcheck", "--url", &node.base], &[]).await;
        let why = String::from_utf8(unhealthy.stderr).unwrap();
        assert!(unhealthy.status.code() == Some(1) && why.contains("no answer: Connection refused"), "{why}");
        if world.tier == Tier::Server {
            // The engines of the suite skip fsync, and have no bound on memory.
            assert!(text.contains("FAILURE postgres  fsync is off") && text.contains("warning redis     maxmemory is not set"), "{text}");
            let gone = [
                ("REDIS_URL", "redis://127.0.0.1:1".to_owned()),
                ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none".to_owned()),
                ("HEADMARK_REPLICA_URL", "postgres://nobody@127.0.0.1:1/none".to_owned()),
            ];
            let (status, text) = told(&["doctor"], &gone).await;
            assert_eq!(status, Some(3), "{text}");
            assert!(text.contains("FAILURE replica   cannot look at it"), "{text}");
            assert!(text.contains("FAILURE postgres  cannot connect") && text.contains("FAILURE redis     cannot use it"), "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_clients_count_as_connections() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let mut conn = world.postgres().await;
    let mut clients = async || -> i64 {
        let sql = "select count(*) from pg_stat_activity where backend_type = 'client backend'";
        sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap()
    };
    // Other tests connect meanwhile.
    eventually("all that is counted are clients, and the one that looks", async || {
        let before = clients().await;
        node.app.state().db.facts().await.unwrap().connections == before + 1
    })
    .await;
    node.stop().await;
}

#[tokio::test]
async fn the_connections_of_operators_need_files_too() {
    let world = World::new(Tier::Embedded).await;
    let more = [("HEADMARK_MAX_CONNECTIONS", "100".to_owned()), ("HEADMARK_ADMIN_LISTEN", "127.0.0.1:0".to_owned())];
    let (_, text) = told(&["doctor"], &[env(&world), more.into()].concat()).await;
    assert!(about(&text, "machine").iter().any(|line| line.contains("the 712 files that it needs")), "{text}");
}
