//! `headmark import follows`.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::{Edges, Ran, assert_degrees, edges, gzip, headmark, import, list, sample};
use crate::both_tiers;
use crate::support::{Client, Tier, World, start};

/// Imports a file with this content.
async fn import_file(world: &World, content: &[u8]) -> Ran {
    let path = world.dir.join("follows");
    std::fs::write(&path, content).unwrap();
    headmark(world, &["import", "follows", path.to_str().unwrap()], true, &[], Vec::new()).await
}

async fn following(client: &Client, user: i64) -> BTreeSet<i64> {
    list(client, user, "following").await.into_iter().map(|(user, _)| user).collect()
}

/// The present time as the API writes it.
fn jiff_now() -> String {
    headmark::base::clock::Clock::System.now().to_string()
}

both_tiers! {
    async fn every_format_is_read(world: World) {
        let text = |user: i64| format!("follower,followee\n{user},1\n{user},2\n");
        let mut runs = Vec::new();
        for content in [text(11).into_bytes(), gzip(&text(12)), zstd::encode_all(text(13).as_bytes(), 3).unwrap()] {
            runs.push(import_file(&world, &content).await);
        }
        for (user, compressed) in [(14, false), (15, true)] {
            let input = if compressed { gzip(&text(user)) } else { text(user).into_bytes() };
            runs.push(headmark(&world, &["import", "follows", "-"], true, &[], input).await);
        }
        for ran in runs {
            assert_eq!((ran.status, ran.counts(), ran.told("lines read"), ran.err.as_str()), (Some(0), [2, 0, 0, 0, 0], 2, ""), "{ran:?}");
        }
        let node = world.node().await;
        assert_degrees(&node.client, &(11..=15).flat_map(|user| [(user, 1), (user, 2)]).collect()).await;
        node.stop().await;
    }

    async fn columns_and_times_of_both_kinds(world: World) {
        let seconds = import(&world, "timestamp,followee,follower,special,visibility\n1671916715,2,1,0,public\n1671916715.25,3,1,false,\n", &[]).await;
        assert_eq!((seconds.status, seconds.counts()), (Some(0), [2, 0, 0, 0, 0]), "{seconds:?}");
        let written = import(&world, "follower,followee,timestamp\r\n1,4,2022-12-24T22:18:35.5+01:00\r\n\r\n1,5,1671916714\r\n", &["--id-offset", "0"]).await;
        assert_eq!((written.status, written.told("lines read")), (Some(0), 2), "{written:?}");
        let before = jiff_now();
        let offset = import(&world, "follower,followee\n0,5\n0,7\n", &["--id-offset", "1"]).await;
        assert_eq!((offset.status, offset.counts()), (Some(0), [2, 0, 0, 0, 0]), "{offset:?}");
        assert_eq!(import(&world, "follower,followee\n1001,1009\n", &["--id-offset=-1000"]).await.status, Some(0));
        let node = world.node().await;
        let shown = list(&node.client, 1, "following").await;
        let dated: Vec<_> = shown.iter().skip(3).map(|(user, since)| (*user, since.as_str())).collect();
        let expected = [(4, "2022-12-24T21:18:35.500Z"), (3, "2022-12-24T21:18:35.250Z"), (2, "2022-12-24T21:18:35.000Z"), (5, "2022-12-24T21:18:34.000Z")];
        assert_eq!(dated, expected);
        assert_eq!(shown[..3].iter().map(|(user, _)| *user).collect::<Vec<_>>(), [9, 8, 6], "without a time, those are as of now");
        assert_eq!(shown[1].1, shown[2].1, "one moment for the whole import");
        assert!(shown[1].1 >= before, "{} but {before}", shown[1].1);
        node.stop().await;
    }

    async fn secret_and_special_follows_are_imported_and_blocks_are_kept(world: World) {
        let node = world.node().await;
        Client::send(node.client.request(reqwest::Method::PUT, "/v1/users/5/blocks/1")).await.ok();
        node.stop().await;
        let text = "follower,followee,timestamp,visibility,special\n1,2,5,secret,1\n1,3,6,public,true\n1,5,7,,\n2,1,8,,0\n3,1,9,,\n";
        let ran = import(&world, text, &["--events"]).await;
        assert_eq!((ran.status, ran.told("followed"), ran.told("refused by block")), (Some(3), 4, 1), "{ran:?}");
        let again = import(&world, "follower,followee,visibility\n1,2,public\n", &[]).await;
        assert_eq!((again.status, again.told("known already")), (Some(0), 1), "what is there stays as it is");
        let node = world.node().await;
        let counts = node.client.get("/v1/users/1/relation-counts").await.ok();
        assert_eq!(counts, json!({"following": 2, "followers": 2, "mutuals": 1, "secret": 1, "special": 2, "blocked": 0, "requests": 0, "requests_sent": 0}));
        let listed = node.client.walk("/v1/users/1/following", 5).await;
        assert_eq!(listed[1], json!({"user_id": "2", "since": "1970-01-01T00:00:05.000Z", "mutual": false, "special": true, "secret": true}));
        let told = crate::features::events::all(&node.client, 5).await;
        let pairs: std::collections::BTreeSet<_> = told[1..].iter().map(|event| (event["data"]["user_id"].clone().to_string(), event["data"]["target_id"].to_string())).collect();
        assert_eq!(pairs.len(), 4, "the block, and then the follows: {told:?}");
        node.stop().await;
    }

    /// A block was accepted by a node that died before it did it. An import of a follow between the
    /// two never comes before it.
    async fn a_line_comes_after_what_was_accepted_of_its_pair(world: World) {
        // It dies in the first batch after the one that accepted.
        let mut doomed = world.process(&[], &[("FAILPOINTS", "lane::after_begin_write=2*off->return")]).await;
        doomed.client.get("/v1/users/2/relations?ids=1").await.ok();
        let accepted = Client::send(doomed.client.request(Method::PUT, "/v1/users/2/blocks/1").header("prefer", "respond-async")).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        doomed.ended().await;
        let text = "follower,followee\n1,2\n1,3\n2,1\n3,1\n";
        let ran = import(&world, text, &[]).await;
        let counts = ["followed", "refused by block", "writes pending"].map(|what| ran.told(what));
        assert_eq!((ran.status, counts), (Some(3), [2, 0, 2]), "no server does it, so they are given up: {ran:?}");
        // Where servers run, it waits until they have done it; on the embedded tier it cannot run
        // beside one.
        let again = if world.tier == Tier::Server {
            let (ran, node) = tokio::join!(import(&world, text, &[]), async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                world.node().await
            });
            node.stop().await;
            ran
        } else {
            let node = world.node().await;
            crate::features::operations::all_done(&node.client).await;
            node.stop().await;
            import(&world, text, &[]).await
        };
        let counts = ["known already", "refused by block", "writes pending"].map(|what| again.told(what));
        assert_eq!((again.status, counts), (Some(3), [2, 2, 0]), "{again:?}");
        let node = world.node().await;
        let done = node.client.get(accepted.header("location")).await.ok();
        assert_eq!((&done["status"], &done["answer"]["body"]["blocking"]), (&json!("done"), &json!(true)), "{done}");
        assert_eq!(following(&node.client, 1).await, BTreeSet::from([3]));
        node.stop().await;
    }

    async fn bad_lines_are_told_by_number_and_the_rest_goes_on(world: World) {
        let text = "follower,followee,timestamp,visibility\n1,2,5,\nx,2,5,\n3,3,5,\n1,0,5,\n1,4,never,\n1,5,5\n1,6,5,,\n\n1,7,5,hidden\n1,8,5,public\n";
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend(b"1,\xff,5,\n1,9,5,\n");
        bytes.extend(b"0,1,5,\n".repeat(30));
        let ran = headmark(&world, &["import", "follows", "-"], true, &[], bytes).await;
        assert_eq!((ran.status, ran.counts(), ran.told("lines read")), (Some(3), [3, 0, 0, 0, 38], 41), "{ran:?}");
        let told: Vec<_> = ran.err.lines().collect();
        for (at, expected) in [
            "line 3 has 'x' as follower, which is not an id",
            "line 4 has user 3 follow itself",
            "line 5 has 0 as followee; ids must be between 1 and",
            "line 6 has 'never' as timestamp, which is neither Unix seconds nor RFC 3339",
            "line 7 has 3 fields, not 4",
            "line 8 has 5 fields, not 4",
            "line 10 has 'hidden' as visibility, not public or secret",
            "line 12 is not UTF-8",
            "line 14 has 0 as follower",
        ]
        .iter()
        .enumerate()
        {
            assert!(told[at].starts_with(&format!("headmark: {expected}")), "{}", told[at]);
        }
        let numbers: BTreeSet<_> = told.iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
        assert_eq!((told.len(), numbers.len()), (38, 38), "each, however many");
        let node = world.node().await;
        assert_degrees(&node.client, &[(1, 2), (1, 8), (1, 9)].into()).await;
        node.stop().await;
    }

    async fn what_cannot_be_read_ends_the_import(world: World) {
        for (text, why) in [
            ("", "standard input is empty; its first line must name the columns"),
            ("1,2\n3,4\n", "the first line must name the columns, as in `follower,followee,timestamp`; it has '1'"),
            ("follower,followee,weight\n1,2,3\n", "it has 'weight', and known are follower, followee"),
            ("follower,timestamp\n1,2\n", "there is no 'followee'"),
            ("follower,followee,action\n1,2,follow\n", "a file with the column 'action' needs 'timestamp' too"),
        ] {
            let ran = import(&world, text, &[]).await;
            assert_eq!((ran.status, ran.out.as_str()), (Some(1), ""), "{ran:?}");
            assert!(ran.err.contains(why), "{why}: {}", ran.err);
        }
        let missing = headmark(&world, &["import", "follows", "/no/such/file"], true, &[], Vec::new()).await;
        assert_eq!(missing.status, Some(1));
        assert!(missing.err.contains("cannot read /no/such/file: No such file"), "{}", missing.err);
        let whole = gzip(&format!("follower,followee\n{}", (2..3000).map(|n| format!("1,{}\n", n * 7919 % 65537 + 2)).collect::<String>()));
        let cut = import_file(&world, &whole[..whole.len() - 200]).await;
        assert_eq!(cut.status, Some(1));
        assert!(cut.err.contains(" breaks off after ") && cut.err.contains("the lines before that are imported"), "{}", cut.err);
        let read = cut.told("followed");
        assert!((1..2998).contains(&read) && cut.told("lines read") == read, "what was written is told: {cut:?}");
        assert_eq!(import(&world, "follower,followee\n", &["--max-events", "0"]).await.status, Some(2), "wrong usage");
        let node = world.node().await;
        let count = node.client.get("/v1/users/1/relation-counts").await.ok()["following"].as_i64().unwrap();
        assert_eq!(count, read);
        node.stop().await;
        let whole = import_file(&world, &whole).await;
        assert_eq!((whole.status, whole.counts()), (Some(0), [2998 - count, 0, count, 0, 0]));
    }

    async fn of_actions_that_break_off_nothing_is_imported(world: World) {
        let actions: String = (2..3000).map(|n| format!("1,{},{n},follow\n", n * 7919 % 65537 + 2)).collect();
        let whole = gzip(&format!("follower,followee,timestamp,action\n{actions}"));
        let cut = import_file(&world, &whole[..whole.len() - 200]).await;
        assert_eq!((cut.status, cut.told("followed")), (Some(1), 0), "{cut:?}");
        assert!(cut.err.contains(" breaks off after ") && cut.err.contains("nothing is imported"), "{}", cut.err);
        assert_eq!(import_file(&world, &whole).await.counts(), [2998, 0, 0, 0, 0]);
    }

    async fn a_second_run_changes_nothing(world: World) {
        let text = "follower,followee,timestamp,action\n1,2,5,follow\n1,3,5,follow\n1,3,6,unfollow\n2,1,5,follow\n1,2,7,unfollow\n1,2,8,follow\n";
        let first = import(&world, text, &[]).await;
        assert_eq!((first.status, first.counts(), first.told("overtaken")), (Some(0), [2, 0, 1, 0, 0], 3), "{first:?}");
        let node = world.node().await;
        let before = (node.client.summary(1).await, list(&node.client, 1, "following").await);
        node.stop().await;
        let second = import(&world, text, &[]).await;
        assert_eq!((second.status, second.counts()), (Some(0), [0, 0, 3, 0, 0]), "{second:?}");
        let plain = import(&world, "follower,followee,timestamp\n1,2,99\n2,1,99\n", &[]).await;
        assert_eq!((plain.status, plain.counts()), (Some(0), [0, 0, 2, 0, 0]), "a follow that is there stays as it is");
        let node = world.node().await;
        assert_eq!((node.client.summary(1).await, list(&node.client, 1, "following").await), before);
        assert_eq!(before.1, [(2, "1970-01-01T00:00:08.000Z".to_owned())]);
        node.stop().await;
    }

    async fn actions_are_taken_in_the_order_of_time(world: World) {
        let node = world.node().await;
        node.client.follow(1, 9).await;
        node.stop().await;
        let text = "action,timestamp,follower,followee\nunfollow,30,1,2\nfollow,40,1,2\nfollow,20,1,2\nunfollow,20,1,3\nfollow,10,1,3\nunfollow,50,1,9\n\
                    follow,60,1,4\nunfollow,60,1,4\nunfollow,70,1,5\nfollow,70,1,5\n";
        let ran = import(&world, text, &[]).await;
        assert_eq!((ran.status, ran.counts(), ran.told("overtaken")), (Some(0), [2, 1, 2, 0, 0], 5), "{ran:?}");
        let many = import(&world, text, &["--max-events", "9"]).await;
        assert_eq!(many.status, Some(1));
        assert!(many.err.contains("more than 9 lines with actions") && many.err.contains("--max-events"), "{}", many.err);
        let node = world.node().await;
        let expected = [(5, "1970-01-01T00:01:10.000Z"), (2, "1970-01-01T00:00:40.000Z")];
        assert_eq!(list(&node.client, 1, "following").await, expected.map(|(user, since)| (user, since.to_owned())));
        assert_degrees(&node.client, &[(1, 2), (1, 5)].into()).await;
        node.stop().await;
    }

    async fn limits_hold_where_they_are_asked_for(world: World) {
        let text = "follower,followee\n1,2\n1,3\n1,4\n1,5\n2,1\n";
        let held = import(&world, text, &["--enforce-limits", "--max-following", "2"]).await;
        assert_eq!((held.status, held.counts()), (Some(3), [3, 0, 0, 2, 0]), "{held:?}");
        let node = world.node_with(&["--max-following", "2"]).await;
        assert_eq!(following(&node.client, 1).await, [2, 3].into(), "the first in the file");
        node.stop().await;
        let over = import(&world, text, &["--max-following", "2"]).await;
        assert_eq!((over.status, over.counts()), (Some(0), [2, 0, 3, 0, 0]));
        // An unfollow makes room for what comes later.
        let events = "follower,followee,timestamp,action\n3,1,1,follow\n3,2,2,follow\n3,1,3,unfollow\n3,4,4,follow\n3,5,5,follow\n";
        let held = import(&world, events, &["--enforce-limits", "--max-following", "2"]).await;
        assert_eq!((held.status, held.counts()), (Some(3), [2, 0, 1, 1, 0]), "{held:?}");
        let node = world.node_with(&["--max-following", "2"]).await;
        assert_degrees(&node.client, &[(1, 2), (1, 3), (1, 4), (1, 5), (2, 1), (3, 2), (3, 4)].into()).await;
        Client::send(node.client.request(Method::PUT, "/v1/users/1/following/6")).await.problem(409, "following_limit");
        node.stop().await;
    }

    async fn the_samples_give_the_degrees_of_the_files(world: World) {
        let text = sample("follows-nostr-sample.csv.gz");
        let ran = import(&world, &text, &[]).await;
        assert_eq!((ran.status, ran.counts()), (Some(0), [2999, 0, 0, 0, 0]), "{ran:?}");
        let node = world.node().await;
        assert_degrees(&node.client, &edges(&text)).await;
        node.stop().await;
    }

    async fn the_events_of_the_sample_leave_what_a_replay_leaves(world: World) {
        let text = sample("follow-events-nostr-sample.csv.gz");
        let mut replayed = Edges::new();
        for line in text.lines().skip(1) {
            let fields: Vec<_> = line.split(',').collect();
            let pair = (fields[1].parse().unwrap(), fields[2].parse().unwrap());
            assert!(if fields[3] == "follow" { replayed.insert(pair) } else { replayed.remove(&pair) }, "{line}");
        }
        let ran = import(&world, &text, &[]).await;
        let (kept, lines) = (i64::try_from(replayed.len()).unwrap(), 2996);
        assert_eq!((ran.status, ran.told("lines read"), ran.told("followed")), (Some(0), lines, kept), "{ran:?}");
        let node = world.node().await;
        assert_degrees(&node.client, &replayed).await;
        node.stop().await;
    }

    async fn kill_in_the_middle_of_an_import_and_run_it_again(world: World) {
        // More than goes into one batch.
        let more = (1..=60).flat_map(|follower| (200_001..200_201).map(move |followee| format!("{},{followee},1671916715\n", 100_000 + follower)));
        let text = sample("follows-nostr-sample.csv.gz") + &more.collect::<String>();
        let path = world.dir.join("follows.csv");
        std::fs::write(&path, &text).unwrap();
        let command = ["import", "follows", path.to_str().unwrap()];
        // At steps of the write path first: before and after the commit of the second batch.
        for step in ["lane::before_commit", "lane::after_commit"] {
            let died = headmark(&world, &command, true, &[("FAILPOINTS", &format!("{step}=1*off->return"))], Vec::new()).await;
            assert_eq!((died.status, died.out.as_str()), (None, ""), "{died:?}");
        }
        // Then anywhere.
        let mut args: Vec<String> = command.iter().map(ToString::to_string).collect();
        args.extend(world.store_args().into_iter().chain(world.cache_args()));
        for _ in 0..3 {
            let mut child = start(&args.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
            tokio::time::sleep(Duration::from_millis(rand::random_range(1..400))).await;
            child.kill().await.unwrap();
        }
        let ran = import_file(&world, text.as_bytes()).await;
        let [followed, _, known, ..] = ran.counts();
        assert_eq!((ran.status, followed + known), (Some(0), 14_999), "{ran:?}");
        assert!(known > 0, "nothing of what the first ones committed was there");
        let node = world.node().await;
        assert_degrees(&node.client, &edges(&text)).await;
        node.stop().await;
    }
}
