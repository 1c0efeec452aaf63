//! `headmark export follows`.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use sqlx::Executor as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::both_tiers;
use crate::maintenance::import::{Ran, headmark, import, seconds_ago};
use crate::support::{Client, Tier, World, start};

async fn export(world: &World, more: &[&str]) -> Ran {
    headmark(world, &[&["export", "follows"], more].concat(), false, &[], Vec::new()).await
}

/// Who follows whom, of a line.
fn pair(line: &str) -> &str {
    let (at, _) = line.match_indices(',').nth(1).unwrap();
    line.split_at(at).0
}

both_tiers! {
    async fn an_export_is_imported_without_loss(world: World) {
        let node = world.node().await;
        for (follower, followee) in [(1, 2), (2, 1), (3, 1), (10, 9), (9, 1)] {
            node.client.follow(follower, followee).await;
        }
        let how = json!({"visibility": "secret", "special": true});
        Client::send(node.client.request(Method::PUT, "/v1/users/3/following/1").json(&how)).await.ok();
        let since = node.client.walk("/v1/users/3/following", 10).await[0]["since"].as_str().unwrap().to_owned();
        // Open requests are in it, before all follows.
        for user in [1, 20] {
            Client::send(node.client.request(Method::PATCH, &format!("/v1/users/{user}/settings")).json(&json!({"approve_follows": true}))).await.ok();
        }
        Client::send(node.client.request(Method::PUT, "/v1/users/4/following/20").json(&how)).await.ok();
        node.client.follow(5, 1).await;
        let beside = export(&world, &[]).await;
        node.stop().await;
        let all = export(&world, &[]).await;
        assert_eq!((all.status, &all.out), (Some(0), &beside.out), "it works beside a running node: {beside:?}");
        let lines: Vec<_> = all.out.lines().collect();
        let request = |line: &str| line.splitn(4, ',').nth(3).unwrap().to_owned();
        assert_eq!([request(lines[1]), request(lines[2])], ["secret,true,true", "public,false,true"]);
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.ends_with(",true")).collect();
        assert_eq!((lines[0], lines[3]), ("follower,followee,timestamp,visibility,special,requested", format!("3,1,{since},secret,true,false").as_str()));
        let pairs: Vec<_> = lines[1..].iter().map(|line| pair(line)).collect();
        assert_eq!(pairs, ["1,2", "2,1", "3,1", "9,1", "10,9"]);
        let of_user = export(&world, &["--user", "1"]).await;
        let mine: Vec<_> = of_user.out.lines().skip(1).map(pair).collect();
        assert_eq!(mine, ["5,1", "1,2", "2,1", "3,1", "9,1"], "requests, whom it follows, then who follows it");
        assert_eq!(export(&world, &["--user", "4"]).await.out.lines().nth(1).map(request).as_deref(), Some("secret,true,true"));
        assert_eq!(export(&world, &["--user", "77"]).await.out, "follower,followee,timestamp,visibility,special,requested\n");

        let path = world.dir.join("out.csv");
        assert_eq!(export(&world, &["--output", path.to_str().unwrap()]).await.out, "");
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written, all.out);
        assert_eq!(export(&world, &["-o", "-"]).await.out, all.out, "standard output");
        assert!(!std::path::Path::new("-").exists(), "it made no file with that name");
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o077, 0, "secret follows are in it");
        let fresh = World::new(world.tier).await;
        assert_eq!(import(&fresh, &written, &[]).await.told("followed"), 7);
        assert_eq!(export(&fresh, &[]).await.out, all.out);
        assert_eq!(import(&fresh, &written, &[]).await.told("known already"), 7, "a second time changes nothing");
        assert_eq!(import(&fresh, "follower,followee\n5,1\n", &[]).await.told("followed"), 1, "an imported follow needs no approval");
        assert!(!export(&fresh, &[]).await.out.contains("\n5,1,1"), "the request is gone");
        let unfollow = format!("follower,followee,timestamp,action\n4,20,{},unfollow\n", seconds_ago(-1));
        assert_eq!(import(&fresh, &unfollow, &[]).await.told("unfollowed"), 1, "also of a request");
    }

    async fn a_whole_export_is_longer_than_a_batch(world: World) {
        let line = |n: i64| format!("{},{},{}.{:03}\n", 1 + n % 50, 1000 + n, 1_600_000_000 + n, n % 1000);
        let text = format!("follower,followee,timestamp\n{}", (0..10_001).map(line).collect::<String>());
        assert_eq!(import(&world, &text, &[]).await.told("followed"), 10_001);
        let exported = export(&world, &[]).await;
        let pairs: BTreeSet<_> = exported.out.lines().skip(1).map(|line| pair(line).to_owned()).collect();
        let expected: BTreeSet<_> = text.lines().skip(1).map(|line| pair(line).to_owned()).collect();
        assert_eq!(exported.out.lines().count(), 10_002, "none twice");
        assert!(pairs == expected);

        // A reader that goes away.
        let mut args: Vec<String> = ["export", "follows", "--output", "-"].map(String::from).into();
        args.extend(world.store_args());
        let mut child = start(&args.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        reader.read_line(&mut first).await.unwrap();
        drop(reader);
        let end = tokio::time::timeout(Duration::from_secs(20), child.wait_with_output()).await.expect("it ends").unwrap();
        assert_eq!((first.as_str(), end.status.code(), end.stderr.as_slice()), ("follower,followee,timestamp,visibility,special,requested\n", Some(0), b"".as_slice()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_fails_leaves_the_last_one() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    node.client.follow(1, 2).await;
    node.stop().await;
    let folder = world.dir.join("exports");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("out.csv");
    let output = ["--output", path.to_str().unwrap()];
    assert_eq!(export(&world, &output).await.status, Some(0));
    let good = std::fs::read_to_string(&path).unwrap();
    // Requests come first, so the export begins and breaks off.
    world.postgres().await.execute("alter table following rename to elsewhere").await.unwrap();
    let failed = export(&world, &output).await;
    assert_eq!((failed.status, std::fs::read_to_string(&path).unwrap()), (Some(1), good), "{failed:?}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "it leaves nothing else");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_goes_into_a_pipe() {
    let world = World::new(Tier::Embedded).await;
    let node = world.node().await;
    node.client.follow(1, 2).await;
    node.stop().await;
    let pipe = world.dir.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = tokio::process::Command::new("cat").arg(&pipe).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let ran = export(&world, &["--output", pipe.to_str().unwrap()]).await;
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let read = String::from_utf8(reader.wait_with_output().await.unwrap().stdout).unwrap();
    assert_eq!(read.lines().nth(1).map(pair), Some("1,2"));
}
