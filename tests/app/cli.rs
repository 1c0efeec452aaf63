//! The command line.

use crate::maintenance::import::headmark;
use crate::support::{Tier, World, run};

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
