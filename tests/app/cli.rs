//! The command line.

use std::fs;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use crate::maintenance::import::headmark;
use crate::support::{JWT_SECRET, Tier, World, refusal, run};

#[tokio::test]
async fn the_help_names_the_variables() {
    for (command, names) in [
        (
            vec!["import", "follows"],
            vec!["DATABASE_URL", "REDIS_URL", "HEADMARK_DATA_DIR", "HEADMARK_MAX_FOLLOWING", "HEADMARK_CACHE_PREFIX", "Exit status"],
        ),
        (vec!["migrate"], vec!["DATABASE_URL", "HEADMARK_DATA_DIR"]),
        (vec!["token"], vec!["HEADMARK_JWT_SECRET", "HEADMARK_SERVICE_KEYS"]),
        (vec!["openapi"], vec!["/openapi.json"]),
        (vec!["export", "follows"], vec!["DATABASE_URL", "HEADMARK_DATA_DIR", "both directions", "Exit status"]),
        (vec!["recount"], vec!["DATABASE_URL", "HEADMARK_DATA_DIR", "--dry-run", "Exit status"]),
    ] {
        let args = [command.as_slice(), &["--help"]].concat();
        let help = run(&args, &[]).await;
        let help = String::from_utf8(help.stdout).unwrap();
        for name in names {
            assert!(help.contains(name), "{name} in {help}");
        }
        assert!(!help.contains("HEADMARK_LISTEN"), "{command:?} has no server's settings");
    }
}

#[tokio::test]
async fn the_manual_page_and_the_completions_have_every_command_and_setting() {
    let page = String::from_utf8(run(&["man"], &[]).await.stdout).unwrap();
    for part in [".TH headmark 1", "HEADMARK IMPORT FOLLOWS", "HEADMARK CONFIG CHECK", "HEADMARK_SERVICE_KEYS", r"group\-message\-days"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell], &[]).await.stdout;
        let text = String::from_utf8(script.clone()).unwrap();
        assert!(text.contains("redis-url") && text.contains("healthcheck"), "{shell}: {text}");
        if shell == "bash" {
            let mut check =
                tokio::process::Command::new("bash").args(["-n", "/dev/stdin"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut check.stdin.take().unwrap(), &script).await.unwrap();
            assert!(check.wait().await.unwrap().success());
        }
    }
    assert_eq!(run(&["completions", "cmd"], &[]).await.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_of_a_command_look_as_they_are_told_to() {
    for (format, is_json) in [("json", true), ("text", false), ("auto", true)] {
        // In a new database there is news: Redis is another run than the one that it knows.
        let world = World::new(Tier::Server).await;
        let env = [("HEADMARK_LOG", "info"), ("HEADMARK_LOG_FORMAT", format)];
        let ran = headmark(&world, &["import", "follows", "-"], true, &env, b"follower,followee\n1,2\n".to_vec()).await;
        let is_line = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok_and(|line| line["level"].is_string());
        assert!(!ran.err.is_empty(), "{format}");
        assert_eq!((ran.status, ran.err.lines().all(is_line)), (Some(0), is_json), "{format}: {}", ran.err);
    }
}

/// A command line that cannot be right says how it would be.
#[tokio::test]
async fn what_a_command_lacks_is_told() {
    let short = ("HEADMARK_JWT_SECRET", "too-short");
    let same = [("HEADMARK_LISTEN", "127.0.0.1:8080"), ("HEADMARK_ADMIN_LISTEN", "127.0.0.1:8080")];
    for (args, env, says) in [
        (&["token"][..], &[][..], &["--user", "--service"][..]),
        (&["token", "--user", "42"], &[], &["HEADMARK_JWT_SECRET"]),
        (&["token", "--user", "42"], &[short], &["shorter than 32 bytes"]),
        (&["token", "--user", "42", "--service"], &[("HEADMARK_JWT_SECRET", JWT_SECRET)], &["--user", "--service"]),
        // What would do nothing.
        (&["token", "--service", "--ttl", "5m"], &[], &["--ttl", "--service"]),
        (&["migrate", "--rows-per-step", "5"], &[], &["--repartition"]),
        (&["doctor", "--user", "5"], &[], &["--url"]),
        (&["doctor", "--hold-seconds", "9"], &[], &["--url"]),
        (&["import", "messages", "x", "--as", "directs", "--members", "y"], &[], &["--members is about groups", "--as directs"]),
        (&["import", "messages", "x", "--as", "directs", "--merge"], &[], &["--merge is about groups", "--as directs"]),
        (&["import", "messages", "x", "--as", "directs", "--first-group-id", "9"], &[], &["--first-group-id is about groups"]),
        (&["config", "check", "--listen", "localhost:8080"], &[], &["127.0.0.1:8080"]),
        (&["config", "check", "--admin-listen", "8080"], &[], &["127.0.0.1:8080"]),
        (&["healthcheck", "--listen", "127.0.0.1"], &[], &["127.0.0.1:8080"]),
        (&["healthcheck", "--url", "nonsense"], &[], &["http://127.0.0.1:8080"]),
        (&["doctor", "--url", "localhost:8080"], &[], &["http://127.0.0.1:8080"]),
        (&["doctor", "--listen", "0.0.0.0:8080"], &[], &["without credentials"]),
        (&["config", "check"], &same, &["HEADMARK_ADMIN_LISTEN and HEADMARK_LISTEN"]),
        (&["config", "check"], &[("HEADMARK_LOG", "warning")], &["HEADMARK_LOG", "'warning'", "info"]),
        (&["recount"], &[("HEADMARK_LOG", "verbose")], &["HEADMARK_LOG", "'verbose'", "info"]),
    ] {
        let output = run(args, env).await;
        let why = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {why}");
        assert!(says.iter().all(|part| why.contains(part)) && !why.contains("too-short"), "{args:?}: {why}");
    }
}

#[tokio::test]
async fn an_import_says_that_its_database_is_new() {
    let world = World::new(Tier::Embedded).await;
    let dir = world.dir.join("elsewhere");
    fs::write(world.dir.join("follows.csv"), "follower,followee\n1,2\n").unwrap();
    let file = world.dir.join("follows.csv");
    let args = ["import", "follows", file.to_str().unwrap(), "--data-dir", dir.to_str().unwrap()];
    for is_new in [true, false] {
        let output = run(&args, &[]).await;
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{told}");
        assert_eq!(told.contains("elsewhere/headmark.sqlite was not there"), is_new, "{told}");
    }
}

#[tokio::test]
async fn a_damaged_file_is_no_older_schema() {
    let world = World::new(Tier::Embedded).await;
    fs::write(world.dir.join("headmark.sqlite"), "damage".repeat(1000)).unwrap();
    for command in [&["recount", "--dry-run"][..], &["epoch"]] {
        let why = refusal(&[command, &["--data-dir", world.dir.to_str().unwrap()]].concat(), &[]).await;
        assert!(why.contains("restore a backup") && !why.contains("schema"), "{why}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_not_called_up_to_date() {
    let world = World::new(Tier::Embedded).await;
    let args = ["migrate", "--data-dir", world.dir.to_str().unwrap()];
    assert_eq!(run(&args, &[]).await.stdout, b"The schema is up to date.\n");
    let mut conn = SqliteConnectOptions::new().filename(world.dir.join("headmark.sqlite")).connect().await.unwrap();
    let later =
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time) values (9999, 'later', true, x'00', 0)";
    conn.execute(later).await.unwrap();
    conn.close().await.unwrap();
    let told = String::from_utf8(run(&args, &[]).await.stdout).unwrap();
    assert!(told.contains("a newer version") && told.contains("9999"), "{told}");
}

#[tokio::test]
async fn a_postgres_that_is_away_is_named_without_its_password() {
    let why = refusal(&["recount", "--dry-run"], &[("DATABASE_URL", "postgres://nobody:hush@127.0.0.1:1/none")]).await;
    assert!(why.contains("127.0.0.1:1: ") && !why.contains("hush"), "{why}");
    let world = World::new(Tier::Server).await;
    let nowhere = format!("{}_nowhere", world.database_url);
    let why = refusal(&["recount", "--dry-run"], &[("DATABASE_URL", &nowhere)]).await;
    assert!(why.contains("does not exist") && !why.contains("at line"), "{why}");
}
