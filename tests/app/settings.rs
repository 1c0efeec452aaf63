//! Settings: misspelt variables, secrets in files, and a data folder that other accounts cannot
//! read.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use headmark::base::secret::MAX_SECRET_FILE_BYTES;
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use crate::both_tiers;
use crate::support::{Client, JWT_SECRET, Process, Tier, World, ask, connect, engine, refusal, run, upstream_and_account};

const KEY: &str = "s3cret-of-the-suite";

/// Writes a file and returns its path.
fn file(world: &World, name: &str, content: &str) -> String {
    let path = world.dir.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_misspelt_variable_stops_every_command() {
    let world = World::new(Tier::Embedded).await;
    let dir = world.dir.join("data");
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["migrate"], &["recount", "--dry-run"]] {
        let args = [command, &["--data-dir", dir.to_str().unwrap()]].concat();
        let why = refusal(&args, &[("HEADMARK_SERVICE_KEY", "web:hush-of-16-chars")]).await;
        assert!(why.contains("HEADMARK_SERVICE_KEY,") && why.contains("the nearest is HEADMARK_SERVICE_KEYS"), "{why}");
        assert!(!why.contains("hush"), "{why}");
    }
    assert!(!dir.exists(), "nothing was made");
}

/// A supervisor need not try again, and `config check` finds what would stop the server.
#[tokio::test]
async fn wrong_settings_end_as_a_wrong_line_does() {
    let world = World::new(Tier::Embedded).await;
    let dir = world.dir.join("data");
    let postgres = ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none");
    for env in [
        &[("HEADMARK_LISTN", "127.0.0.1:0")][..],
        &[("HEADMARK_SERVICE_KEYS", "web:short")],
        &[("HEADMARK_SERVICE_KEYS_FILE", "/nowhere/keys")],
        &[("HEADMARK_LISTEN", "0.0.0.0:0")],
        &[("HEADMARK_LOG", "foo=bar=baz")],
        &[("HEADMARK_LOG", "warning")],
        &[("HEADMARK_OTLP_ENDPOINT", "https://collector:4318")],
        &[("DATABASE_URL", "mysql://127.0.0.1/none")],
        &[postgres, ("REDIS_URL", "http://127.0.0.1")],
        &[postgres, ("HEADMARK_REPLICA_URL", "replica")],
    ] {
        for command in [&["serve"][..], &["config", "check"]] {
            let output = run(&[command, &["--data-dir", dir.to_str().unwrap()]].concat(), env).await;
            assert_eq!(output.status.code(), Some(2), "{command:?} {env:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    assert!(!dir.exists(), "nothing was made");
}

/// The value and the source of a setting, as `config print` has them.
async fn printed(args: &[&str], env: &[(&str, &str)], name: &str) -> String {
    let output = run(&[&["config", "print"], args].concat(), env).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")) || line.starts_with(&format!("# {name} is")));
    line.unwrap_or_else(|| panic!("{name} in {text}")).to_owned()
}

#[tokio::test]
async fn an_option_overrides_a_variable_which_overrides_the_file() {
    let world = World::new(Tier::Embedded).await;
    let path = file(&world, "some.toml", "lanes = 3\ncompression = false\ncors_origins = [\"https://a.example\", \"https://b.example\"]\n");
    let by_file = ["--config", &path];
    assert_eq!(printed(&[], &[], "lanes").await, "lanes = 2  # default");
    assert_eq!(printed(&by_file, &[], "lanes").await, format!("lanes = 3  # {path}"));
    assert_eq!(printed(&[], &[("HEADMARK_CONFIG", &path)], "lanes").await, format!("lanes = 3  # {path}"));
    assert_eq!(printed(&by_file, &[("HEADMARK_LANES", "4")], "lanes").await, "lanes = 4  # HEADMARK_LANES");
    assert_eq!(printed(&by_file, &[("HEADMARK_LANES", "")], "lanes").await, format!("lanes = 3  # {path}"), "as compose files have it");
    let all = [&by_file[..], &["--lanes", "5"]].concat();
    assert_eq!(printed(&all, &[("HEADMARK_LANES", "4")], "lanes").await, "lanes = 5  # --lanes");
    assert_eq!(printed(&by_file, &[], "compression").await, format!("compression = false  # {path}"));
    let origins = format!("cors_origins = \"https://a.example,https://b.example\"  # {path}");
    assert_eq!(printed(&by_file, &[], "cors_origins").await, origins);
    // What is printed is a file that says the same.
    let text = run(&["config", "print", "--config", &path], &[]).await.stdout;
    let again = file(&world, "again.toml", std::str::from_utf8(&text).unwrap());
    assert_eq!(printed(&["--config", &again], &[], "cors_origins").await, origins.replace(&path, &again));
}

#[tokio::test]
async fn secrets_of_a_settings_file_show_nowhere_and_are_one_with_their_file() {
    let world = World::new(Tier::Embedded).await;
    let path = file(
        &world,
        "some.toml",
        "service_keys = [\"web:hush-of-16-chars-or-more\"]\njwt_secret = \"hush-0123456789abcdef0123456789abcdef\"\n",
    );
    let text = String::from_utf8(run(&["config", "print", "--config", &path], &[]).await.stdout).unwrap();
    assert!(!text.contains("hush"), "{text}");
    assert!(text.contains(&format!("# service_keys is set and secret  # {path}")), "{text}");
    let help = String::from_utf8(run(&["--config", &path, "--help"], &[]).await.stdout).unwrap();
    assert!(help.contains("HEADMARK_SERVICE_KEYS") && !help.contains("hush"), "{help}");
    // A variable for the file of a secret overrides the secret in the settings file.
    let keys = file(&world, "keys", &format!("web:{KEY}"));
    assert_eq!(printed(&["--config", &path], &[("HEADMARK_SERVICE_KEYS_FILE", &keys)], "service_keys").await, "# service_keys is not set");
    let valid = run(&["config", "check", "--config", &path], &[("HEADMARK_SERVICE_KEYS_FILE", &keys)]).await;
    assert!(valid.status.success(), "{valid:?}");
}

#[tokio::test]
async fn what_is_wrong_in_a_settings_file_is_told_by_line() {
    let world = World::new(Tier::Embedded).await;
    let wrong = "lanes = 3\nservice_key = \"hush-of-16-chars\"\nredis_timeout_ms = \"soon\"\nHEADMARK_LISTEN = \"127.0.0.1:1\"\n";
    let path = file(&world, "wrong.toml", wrong);
    for command in [&["config", "check"][..], &["serve"], &[], &["migrate"]] {
        let why = refusal(&[command, &["--config", &path]].concat(), &[]).await;
        for part in [
            ":2: service_key is not a setting; the nearest is service_keys",
            ":3: invalid value 'soon'",
            ":4: HEADMARK_LISTEN is not a setting; the nearest is listen",
        ] {
            assert!(why.contains(&format!("{path}{part}")), "{part} in {why}");
        }
        assert!(!why.contains("hush"), "{why}");
    }
    let why = refusal(&["config", "check", "--config", &file(&world, "broken.toml", "lanes = 3\nlisten = 127.0.0.1\n")], &[]).await;
    assert!(why.contains("broken.toml:2:"), "{why}");
    let why = refusal(&["config", "check", "--config", "/nowhere/headmark.toml"], &[]).await;
    assert!(why.contains("/nowhere/headmark.toml: cannot read the settings"), "{why}");
    // The settings are each right, but do not go together.
    let open = file(&world, "open.toml", "listen = \"0.0.0.0:8080\"\n");
    let why = refusal(&["config", "check", "--config", &open], &[]).await;
    assert!(why.contains("refusing to listen on 0.0.0.0:8080 without credentials"), "{why}");
}

#[tokio::test]
async fn a_server_takes_its_settings_from_headmark_toml() {
    let world = World::new(Tier::Embedded).await;
    let settings = format!("service_keys = \"web:{KEY}\"\nlisten = \"127.0.0.1:0\"\ndata_dir = {:?}\n", world.dir.join("data"));
    file(&world, "headmark.toml", &settings);
    let process =
        Process::start_after(&format!("unset HEADMARK_CONFIG; cd '{}'", world.dir.display()), &[], &[], &world.dir.join("log")).await;
    assert_eq!(process.client.get("/v1/users/1/badges").await.status, 401);
    assert!(world.dir.join("data").exists());
}

/// Every local account reaches the ports of the engines.
#[tokio::test]
async fn the_engines_of_the_suite_ask_for_a_password_and_show_it_nowhere() {
    let (postgres, redis) = (engine("HEADMARK_TEST_POSTGRES"), engine("HEADMARK_TEST_REDIS"));
    let (account, address) = postgres.split_once('@').unwrap();
    let (user, password) = account.rsplit_once(':').unwrap();
    assert!(password.len() >= 32, "it cannot be guessed");
    for url in [format!("{user}@{address}"), format!("{user}:{}@{address}", "0".repeat(password.len()))] {
        let code = match PgConnection::connect(&url).await {
            Err(sqlx::Error::Database(error)) => error.code().unwrap().into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(code, "28P01");
    }
    let (address, _) = upstream_and_account(&redis);
    let refused = connect(&format!("redis://{address}")).await;
    let refused = match refused {
        Ok(mut connection) => ask(&mut connection, &["INFO"]).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(refused.to_string().contains("NOAUTH"), "{refused}");
    if cfg!(target_os = "linux") {
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let arguments = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments);
            assert!(!arguments.contains(password), "{}", arguments.replace(password, "(password)"));
        }
    }
}

both_tiers! {
    async fn secrets_come_from_files(world: World) {
        let (keys, jwt) = (file(&world, "keys", &format!("web:{KEY}\nworker:another-{KEY}\n")), file(&world, "jwt", &format!("{JWT_SECRET}\r\n")));
        let mut env = vec![("HEADMARK_SERVICE_KEYS_FILE", keys), ("HEADMARK_JWT_SECRET_FILE", jwt)];
        // As compose files have it: there, but empty.
        env.push(("HEADMARK_SERVICE_KEYS", String::new()));
        env.push(("HEADMARK_JWT_SECRET", String::new()));
        if world.tier == Tier::Server {
            env.push(("DATABASE_URL_FILE", file(&world, "database", &format!("{}\n", world.database_url))));
            env.push(("REDIS_URL_FILE", file(&world, "redis", &world.redis_url)));
        } else {
            env.push(("HEADMARK_DATA_DIR", world.dir.join("data").to_str().unwrap().to_owned()));
        }
        env.push(("HEADMARK_CACHE_PREFIX", world.prefix.clone()));
        let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut node = Process::start(&["--listen", "127.0.0.1:0"].map(String::from), &env).await;
        let as_caller = |token: &str| Client::new(&node.base).with_bearer(token);
        as_caller(KEY).post("/v1/users/42/badges/mention/increment", &json!({"by": 3})).await.ok();
        assert_eq!(as_caller(&format!("another-{KEY}")).summary(42).await["total"], 3);
        let token = run(&["token", "--user", "42"], &[("HEADMARK_JWT_SECRET_FILE", env[1].1)]).await;
        let token = String::from_utf8(token.stdout).unwrap();
        assert_eq!(as_caller(token.trim()).get("/v1/users/me/badges").await.ok()["total"], 3);
        node.terminate();
        assert!(node.ended().await.success());
        let dry = run(&["recount", "--dry-run"], &env).await;
        assert!(dry.status.success(), "every command takes them: {dry:?}");
    }
}

/// `headmark token --service > FILE` makes the file that the variable names already.
#[tokio::test]
async fn a_key_is_made_before_its_file_is_there() {
    let world = World::new(Tier::Embedded).await;
    for path in [world.dir.join("missing").to_str().unwrap().to_owned(), file(&world, "empty", "")] {
        let made = run(&["token", "--service", "web"], &[("HEADMARK_SERVICE_KEYS_FILE", &path)]).await;
        assert!(made.status.success() && made.stdout.starts_with(b"web:"), "{made:?}");
    }
}

#[tokio::test]
async fn files_of_secrets_are_refused_when_they_leave_a_doubt() {
    let world = World::new(Tier::Embedded).await;
    let args = ["--data-dir", world.dir.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    for (name, value) in [
        ("HEADMARK_SERVICE_KEYS", "web:hush-of-16-chars"),
        ("HEADMARK_JWT_SECRET", "hush456789abcdef0123456789abcdef"),
        ("DATABASE_URL", "postgres://hush@127.0.0.1/hush"),
        ("REDIS_URL", "redis://:hush@127.0.0.1"),
        ("REDIS_SENTINEL_PASSWORD", "hush"),
    ] {
        let (path, of_file) = (file(&world, "secret", value), format!("{name}_FILE"));
        let why = refusal(&args, &[(name, value), (&of_file, &path)]).await;
        assert!(why.contains(&format!("{name} and {of_file} are both set")) && !why.contains("hush"), "{why}");
    }
    let long = "x".repeat(usize::try_from(MAX_SECRET_FILE_BYTES).unwrap() + 1);
    for (content, says) in [(Some(" \n"), "the file is empty"), (Some(&long), "more than 65536 bytes"), (None, "cannot read the file")] {
        let path =
            content.map_or_else(|| world.dir.join("missing").to_str().unwrap().to_owned(), |content| file(&world, "secret", content));
        let why = refusal(&args, &[("HEADMARK_SERVICE_KEYS_FILE", &path)]).await;
        assert!(why.contains(says), "{why}");
    }
    let why = refusal(&args, &[("HEADMARK_SERVICE_KEYS_FILE", &file(&world, "secret", ",\n,"))]).await;
    assert!(why.contains("there is no key in the file"), "an open server would be a surprise: {why}");
}

#[tokio::test]
async fn settings_of_redis_that_contradict_each_other_are_refused() {
    let (database, url) = (("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none"), ("REDIS_URL", "redis://127.0.0.1:1"));
    let name = ("REDIS_SENTINEL", "main");
    for (env, says) in [
        (vec![database, name], "REDIS_SENTINEL is set but REDIS_URL is not"),
        (vec![database, url, name, ("REDIS_CLUSTER", "true")], "REDIS_SENTINEL and REDIS_CLUSTER are both set"),
        (vec![database, url, ("REDIS_SENTINEL_PASSWORD", "hush")], "REDIS_SENTINEL is not set"),
        (vec![database, ("REDIS_CLUSTER", "true")], "REDIS_CLUSTER is set but REDIS_URL is not"),
    ] {
        let why = refusal(&["--listen", "127.0.0.1:0"], &env).await;
        assert!(why.contains(says) && !why.contains("hush"), "{why}");
    }
}

/// What is in a data folder in use.
const FILES: [&str; 4] = ["headmark.sqlite", "headmark.sqlite-wal", "headmark.sqlite-shm", "lock"];

async fn node_in(dir: &Path) -> Process {
    let node = Process::start(&["--listen", "127.0.0.1:0", "--data-dir", dir.to_str().unwrap()].map(String::from), &[]).await;
    node.client.post("/v1/users/42/badges/mention/increment", &json!({})).await.ok();
    node
}

#[tokio::test]
async fn a_new_data_folder_is_closed_to_other_accounts() {
    let world = World::new(Tier::Embedded).await;
    let dir = world.dir.join("above/data");
    let _node = node_in(&dir).await;
    assert_eq!((mode(&dir), mode(&world.dir.join("above"))), (0o700, 0o700));
    assert_eq!(FILES.map(|name| mode(&dir.join(name))), [0o600; 4]);
}

#[tokio::test]
async fn files_of_an_earlier_version_are_closed_to_other_accounts_and_their_folder_stays() {
    let world = World::new(Tier::Embedded).await;
    let dir = world.dir.join("data");
    // The killed node leaves the log and its index.
    node_in(&dir).await.kill().await;
    FILES.iter().for_each(|name| fs::set_permissions(dir.join(name), Permissions::from_mode(0o644)).unwrap());
    fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
    let node = node_in(&dir).await;
    assert_eq!(node.client.summary(42).await["total"], 2);
    assert_eq!(mode(&dir), 0o755, "the folder may be for other things too");
    assert_eq!(FILES.map(|name| mode(&dir.join(name))), [0o600; 4]);
}
