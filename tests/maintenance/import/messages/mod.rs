//! `headmark import messages`, as the command line has it.

mod channels;
mod files;
mod repeats;
mod runs;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::{Ran, gzip, headmark};
use crate::both_tiers;
use crate::support::{Client, Dice, World};

async fn import(world: &World, text: &str, more: &[&str]) -> Ran {
    headmark(world, &[&["import", "messages", "-"], more].concat(), true, &[], text.as_bytes().to_vec()).await
}

/// Sent, joined, left, known, refused, bad.
#[track_caller]
fn counts(ran: &Ran) -> [i64; 6] {
    ["sent", "joined", "left", "known already", "refused", "bad"].map(|what| ran.told(what))
}

/// Sender and content of each message of a group, as a service sees them.
async fn messages(client: &Client, group: i64) -> Vec<(i64, String, String)> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = client.get(&format!("/v1/groups/{group}/messages?limit=100&after={after}")).await.ok();
        let text = |item: &Value, field: &str| item[field].as_str().unwrap().to_owned();
        all.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| (text(item, "sender_id").parse().unwrap(), text(item, "content"), text(item, "sent_at"))),
        );
        after = page["next_after"].as_i64().unwrap();
        if page["has_more"] == false {
            return all;
        }
    }
}

async fn members(client: &Client, group: i64) -> Vec<i64> {
    client
        .walk(&format!("/v1/groups/{group}/members"), 100)
        .await
        .iter()
        .map(|of| of["user_id"].as_str().unwrap().parse().unwrap())
        .collect()
}

/// What is unread in each of a user's groups.
async fn unread(client: &Client, user: i64) -> BTreeMap<i64, i64> {
    let items = client.walk(&format!("/v1/users/{user}/groups"), 100).await;
    items.iter().map(|of| (of["group_id"].as_str().unwrap().parse().unwrap(), of["unread"].as_i64().unwrap())).collect()
}

both_tiers! {
    async fn a_log_becomes_groups(world: World) {
        let log = "timestamp,channel,sender,content\n\
            100,general,1,hello\n\
            100,general,1,hello again\n\
            101,random,2,nobody there\n\
            102,general,2,\"hi\"\n\
            103,7,3,in a group with a number\n\
            104,general,3,late\n";
        let ran = import(&world, log, &["--first-group-id", "8"]).await;
        assert_eq!((ran.status, counts(&ran)), (Some(0), [6, 5, 0, 0, 0, 0]), "{ran:?}");
        assert!(ran.out.starts_with("channel general is group 8\nchannel random is group 9\n"), "{}", ran.out);
        let again = import(&world, log, &["--first-group-id", "8"]).await;
        assert_eq!(counts(&again), [0, 0, 0, 6, 0, 0], "safe to run again");
        let node = world.node().await;
        let client = &node.client;
        let said: Vec<_> = messages(client, 8).await.into_iter().map(|(sender, content, _)| (sender, content)).collect();
        assert_eq!(said, [(1, "hello".to_owned()), (1, "hello again".to_owned()), (2, "hi".to_owned()), (3, "late".to_owned())]);
        assert_eq!(messages(client, 8).await[0].2, "1970-01-01T00:01:40.000Z");
        assert_eq!(members(client, 8).await, [1, 2, 3]);
        assert_eq!((members(client, 9).await, members(client, 7).await), (vec![2], vec![3]));
        assert_eq!((unread(client, 1).await, client.summary(1).await["total"].as_i64()), ([(8, 2)].into(), Some(2)));
        assert_eq!(unread(client, 3).await[&8], 0, "who joins by sending has read what is above");
        let receipts = client.get("/v1/groups/8/receipts?from=1&to=4").await.ok();
        let read: Vec<_> = receipts["items"].as_array().unwrap().iter().map(|of| (of["read_count"].as_i64().unwrap(), of["unread_count"].as_i64().unwrap())).collect();
        assert_eq!(read, [(0, 0), (0, 0), (0, 1), (0, 2)]);
        node.stop().await;
    }

    async fn members_come_and_go_as_their_file_tells(world: World) {
        let members_file = world.dir.join("members");
        std::fs::write(&members_file, "timestamp,channel,user,event\n100,general,1,join\n100,general,2,join\n200,general,2,leave\n250,general,x,join\n300,general,2,join\n400,general,1,leave\n").unwrap();
        let log = "timestamp,channel,sender\n100,general,1\n200,general,1\n250,general,3\n300.5,general,1\n350,general,2\n";
        let file = world.dir.join("log.gz");
        std::fs::write(&file, gzip(log)).unwrap();
        let command = ["import", "messages", file.to_str().unwrap(), "--members", members_file.to_str().unwrap()];
        let ran = headmark(&world, &command, true, &[], Vec::new()).await;
        assert_eq!((ran.status, counts(&ran)), (Some(3), [5, 4, 2, 0, 0, 1]), "{ran:?}");
        assert!(ran.err.contains("line 5 of ") && ran.err.contains("has 'x' as user"), "{}", ran.err);
        let again = headmark(&world, &command, true, &[], Vec::new()).await;
        assert_eq!(counts(&again), [0, 0, 0, 10, 0, 1], "{again:?}");
        let node = world.node().await;
        assert_eq!(members(&node.client, 1).await, [2, 3]);
        // Of the first message two was a recipient; of the second, in the second of whose sending
        // two had left, not.
        let receipts = node.client.get("/v1/groups/1/receipts?from=1&to=5").await.ok();
        let unread: Vec<_> = receipts["items"].as_array().unwrap().iter().map(|of| of["unread_count"].as_i64().unwrap()).collect();
        assert_eq!(unread, [1, 0, 0, 1, 2]);
        node.stop().await;
    }

    async fn a_log_becomes_direct_messages(world: World) {
        let log = "timestamp,channel,sender,content\n100,2,1,hello\n100,2,1,again\n101,1,2,hi\n102,2,3,me too\n";
        let ran = import(&world, log, &["--as", "directs"]).await;
        assert_eq!((ran.status, ran.told("sent"), ran.told("known already")), (Some(0), 4, 0), "{ran:?}");
        let ran = import(&world, log, &["--as", "directs"]).await;
        assert_eq!((ran.status, ran.told("sent"), ran.told("known already")), (Some(0), 0, 4), "{ran:?}");
        let node = world.node().await;
        let inbox = node.client.get("/v1/users/2/inbox").await.ok();
        let items: Vec<_> = inbox["items"].as_array().unwrap().iter().map(|of| (of["sender_id"].as_str().unwrap(), of["own"] == true, of["content"].as_str().unwrap(), of["sent_at"].as_str().unwrap())).collect();
        assert_eq!(
            items,
            [
                ("1", false, "hello", "1970-01-01T00:01:40.000Z"),
                ("1", false, "again", "1970-01-01T00:01:40.000Z"),
                ("2", true, "hi", "1970-01-01T00:01:41.000Z"),
                ("3", false, "me too", "1970-01-01T00:01:42.000Z")
            ]
        );
        let chats = node.client.summary(2).await["chats"].to_string();
        assert_eq!(chats, r#"{"directs":1,"groups":0,"mentions":0,"unread":1}"#, "who answers has read");
        let directs = node.client.get("/v1/users/2/directs").await.ok();
        assert_eq!(directs["items"][0]["last_at"], "1970-01-01T00:01:42.000Z");
        // What is recalled since is known, too.
        assert_eq!(node.client.delete("/v1/users/1/directs/2/messages/1").await.status, 204);
        node.stop().await;
        // A variable may be there for other imports.
        let variables = [("HEADMARK_IMPORT_MERGE", "true"), ("HEADMARK_FIRST_GROUP_ID", "9")];
        let ran = headmark(&world, &["import", "messages", "-", "--as", "directs"], true, &variables, log.into()).await;
        assert_eq!((ran.status, ran.told("known already"), ran.told("refused")), (Some(0), 4, 0), "{ran:?}");
    }

    async fn bad_lines_are_told_and_the_rest_goes_on(world: World) {
        let log = "timestamp,channel,sender\n100,a,1\n99,a,1\nx,a,1\n101,a,0\n101,,1\n101,a,1,2\n102,a,2\n";
        let ran = import(&world, log, &[]).await;
        assert_eq!((ran.status, counts(&ran)), (Some(3), [2, 2, 0, 0, 0, 5]), "{ran:?}");
        for told in ["line 3 is before a line above it", "line 4 has 'x' as timestamp", "line 5 has 0 as sender", "line 6 has no channel", "line 7 has 4 fields, not 3"] {
            assert!(ran.err.contains(told), "{told}: {}", ran.err);
        }
        let ran = import(&world, "timestamp,room,sender\n", &[]).await;
        assert_eq!(ran.status, Some(1));
        assert!(ran.err.contains("it has 'room'"), "{}", ran.err);
    }

    async fn a_random_log_is_counted_like_a_list(world: World) {
        let mut dice = Dice::new(77);
        let (mut log, mut at) = ("timestamp,channel,sender,topic\n".to_owned(), 1_500_000_000);
        let mut model: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for _ in 0..3000 {
            at += i64::try_from(dice.roll(3)).unwrap();
            let (group, sender) = (1 + i64::try_from(dice.roll(7)).unwrap(), 1 + i64::try_from(dice.roll(40)).unwrap());
            writeln!(log, "{at},{group},{sender},5").unwrap();
            model.entry(group).or_default().push(sender);
        }
        // Half of it first, and then all of it, beside a running server where there may be one.
        let half: String = log.lines().take(1500).fold(String::new(), |text, line| text + line + "\n");
        assert_eq!(counts(&import(&world, &half, &[]).await)[0], 1499);
        assert_eq!(counts(&import(&world, &log, &[]).await)[0], 1501);
        let node = world.node().await;
        let mut wanted: BTreeMap<i64, BTreeMap<i64, i64>> = BTreeMap::new();
        for (group, senders) in &model {
            let said: Vec<_> = messages(&node.client, *group).await.into_iter().map(|(sender, ..)| sender).collect();
            assert_eq!(said, *senders);
            let distinct: BTreeSet<_> = senders.iter().copied().collect();
            assert_eq!(members(&node.client, *group).await.into_iter().collect::<BTreeSet<_>>(), distinct);
            for user in distinct {
                let after = senders.iter().rev().take_while(|sender| **sender != user).count();
                wanted.entry(user).or_default().insert(*group, after.try_into().unwrap());
            }
        }
        for (user, groups) in &wanted {
            assert_eq!(unread(&node.client, *user).await, *groups, "user {user}");
        }
        node.stop().await;
    }
}
