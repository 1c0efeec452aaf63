//! Logs that are imported more than once: repaired, grown, or just again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{counts, import, members, messages, unread};
use crate::both_tiers;
use crate::maintenance::import::{Ran, headmark, seconds_ago};
use crate::support::{Client, Dice, World, eventually};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Join,
    Leave,
    Send,
}

/// When (in seconds), in which group, who, what.
type Line = (i64, i64, i64, What);

/// A log whose times are to the minute, with many lines in each.
fn coarse_log(seed: usize, groups: std::ops::Range<i64>, lines: usize) -> Vec<Line> {
    let (mut dice, mut at) = (Dice::new(seed), 1_500_000_000 / 60 * 60);
    let mut roll = |below: i64| i64::try_from(dice.roll(usize::try_from(below).unwrap())).unwrap();
    let line = |_| {
        at += if roll(4) == 0 { 60 * (1 + roll(3)) } else { 0 };
        let what = [What::Join, What::Leave, What::Send, What::Send, What::Send][usize::try_from(roll(5)).unwrap()];
        (at, groups.start + roll(groups.end - groups.start), 1 + roll(8), what)
    };
    (0..lines).map(line).collect()
}

/// The lines in the order in which an import of two files takes them.
fn merged(log: &[Line]) -> Vec<Line> {
    let mut log = log.to_vec();
    log.sort_by_key(|(at, .., what)| (*at, *what == What::Send));
    log
}

/// One time that somebody was a member: from which head, up to which, and read up to which.
struct Span {
    from: i64,
    to: i64,
    read: i64,
}

/// A group as the lines tell, counted one after the other.
#[derive(Default)]
struct Model {
    senders: Vec<i64>,
    spans: BTreeMap<i64, Vec<Span>>,
}

impl Model {
    fn of(log: &[Line], group: i64) -> Self {
        let mut model = Self::default();
        log.iter().filter(|line| line.1 == group).for_each(|line| model.take(line.2, line.3));
        model
    }

    fn take(&mut self, user: i64, what: What) {
        let head = i64::try_from(self.senders.len()).unwrap();
        let spans = self.spans.entry(user).or_default();
        let open = spans.last_mut().filter(|span| span.to == i64::MAX);
        match (what, open) {
            (What::Leave, Some(span)) => span.to = head,
            (What::Join | What::Send, None) => spans.push(Span { from: head, to: i64::MAX, read: head }),
            _ => {}
        }
        if what == What::Send {
            self.senders.push(user);
            spans.last_mut().unwrap().read = head + 1;
        }
    }

    fn members(&self) -> BTreeSet<i64> {
        let is_in = |spans: &Vec<Span>| spans.last().is_some_and(|span| span.to == i64::MAX);
        self.spans.iter().filter(|(_, spans)| is_in(spans)).map(|(user, _)| *user).collect()
    }

    /// How many have read each message, and how many have not.
    fn receipts(&self) -> Vec<(i64, i64)> {
        let of = |(seq, sender): (i64, &i64)| {
            let others = self.spans.iter().filter(|(user, _)| *user != sender).flat_map(|(_, spans)| spans);
            let (read, unread): (Vec<_>, Vec<_>) =
                others.filter(|span| span.from < seq && seq <= span.to).partition(|span| span.read >= seq);
            (i64::try_from(read.len()).unwrap(), i64::try_from(unread.len()).unwrap())
        };
        (1..).zip(&self.senders).map(of).collect()
    }
}

async fn receipts(client: &Client, group: i64, head: usize) -> Vec<(i64, i64)> {
    let mut all = Vec::new();
    for from in (1..=head).step_by(100) {
        let path = format!("/v1/groups/{group}/receipts?from={from}&to={}", head.min(from + 99));
        let page = client.get(&path).await.ok();
        let of = |of: &Value| (of["read_count"].as_i64().unwrap(), of["unread_count"].as_i64().unwrap());
        all.extend(page["items"].as_array().unwrap().iter().map(of));
    }
    all
}

/// Everything that members of these groups see.
async fn seen(client: &Client, groups: std::ops::Range<i64>) -> Value {
    let mut all = Vec::new();
    for group in groups {
        let about = client.get(&format!("/v1/groups/{group}")).await.ok();
        let members = client.walk(&format!("/v1/groups/{group}/members"), 100).await;
        let head = usize::try_from(about["head"].as_i64().unwrap()).unwrap();
        all.push(json!([about, members, receipts(client, group, head).await, messages(client, group).await]));
    }
    for user in 1..=8 {
        let groups = client.walk(&format!("/v1/users/{user}/groups"), 100).await;
        all.push(json!([client.summary(user).await, groups]));
    }
    json!(all)
}

/// Imports a log as one file with joins and leaves in it, or as two.
async fn run(world: &World, log: &[Line], in_one_file: bool, bad: impl Fn(usize) -> bool) -> Ran {
    let (mut text, mut events) = ("timestamp,channel,sender,event\n".to_owned(), "timestamp,channel,user,event\n".to_owned());
    for (number, (at, group, user, what)) in log.iter().enumerate() {
        let user = if bad(number) { "x".to_owned() } else { user.to_string() };
        match what {
            What::Send => writeln!(text, "{at},{group},{user},"),
            _ => {
                let event = if *what == What::Join { "join" } else { "leave" };
                writeln!(if in_one_file { &mut text } else { &mut events }, "{at},{group},{user},{event}")
            }
        }
        .unwrap();
    }
    let file = world.dir.join("members.csv");
    std::fs::write(&file, events).unwrap();
    let more = ["--members", file.to_str().unwrap()];
    import(world, &text, if in_one_file { &[] } else { &more }).await
}

/// What a group has said, as far as it is kept.
async fn messages_from(client: &Client, group: i64) -> Vec<String> {
    let page = client.get(&format!("/v1/groups/{group}/messages")).await.ok();
    page["items"].as_array().unwrap().iter().map(|item| item["content"].as_str().unwrap().to_owned()).collect()
}

both_tiers! {
    async fn a_coarse_log_equals_a_count_over_its_lines_also_after_a_second_run(world: World) {
        for (in_one_file, groups) in [(false, 1..4), (true, 11..14)] {
            let log = coarse_log(if in_one_file { 5 } else { 6 }, groups.clone(), 500);
            let ran = run(&world, &log, in_one_file, |_| false).await;
            let sent = log.iter().filter(|line| line.3 == What::Send).count();
            assert_eq!((ran.status, ran.told("sent")), (Some(0), i64::try_from(sent).unwrap()), "{ran:?}");
            let node = world.node().await;
            let counted = if in_one_file { log.clone() } else { merged(&log) };
            for group in groups.clone() {
                let model = Model::of(&counted, group);
                assert_eq!(members(&node.client, group).await.into_iter().collect::<BTreeSet<_>>(), model.members());
                assert_eq!(receipts(&node.client, group, model.senders.len()).await, model.receipts(), "group {group}");
            }
            let before = seen(&node.client, groups.clone()).await;
            node.stop().await;
            let again = run(&world, &log, in_one_file, |_| false).await;
            assert_eq!((again.status, counts(&again)), (Some(0), [0, 0, 0, 500, 0, 0]), "{again:?}");
            let node = world.node().await;
            assert_eq!(seen(&node.client, groups).await, before);
            node.stop().await;
        }
    }

    async fn a_log_that_was_repaired_and_has_grown_ends_as_one_that_was_whole(world: World) {
        for (in_one_file, groups) in [(false, 1..4), (true, 11..14)] {
            let log = coarse_log(if in_one_file { 7 } else { 8 }, groups.clone(), 500);
            let bad = |every: usize| move |number: usize| (number * 7 + every) % every == 3;
            for (lines, every) in [(250, 6), (400, 11), (500, 13)] {
                assert_eq!(run(&world, &log[..lines], in_one_file, bad(every)).await.status, Some(3));
            }
            let whole = run(&world, &log, in_one_file, |_| false).await;
            assert_eq!((whole.status, whole.told("bad"), whole.told("refused")), (Some(0), 0, 0), "{whole:?}");
            let node = world.node().await;
            let counted = if in_one_file { log.clone() } else { merged(&log) };
            for group in groups.clone() {
                let model = Model::of(&counted, group);
                assert_eq!(members(&node.client, group).await.into_iter().collect::<BTreeSet<_>>(), model.members(), "group {group}");
                let (mut said, mut senders): (Vec<_>, _) = (messages(&node.client, group).await.iter().map(|of| of.0).collect(), model.senders);
                said.sort_unstable();
                senders.sort_unstable();
                assert_eq!(said, senders, "each message once");
            }
            let before = seen(&node.client, groups.clone()).await;
            node.stop().await;
            let again = run(&world, &log, in_one_file, |_| false).await;
            assert_eq!((again.status, counts(&again)), (Some(0), [0, 0, 0, 500, 0, 0]), "{again:?}");
            let node = world.node().await;
            assert_eq!(seen(&node.client, groups).await, before);
            node.stop().await;
        }
    }

    async fn a_repaired_line_is_new_and_the_others_are_known(world: World) {
        let log = |line: &str| format!("timestamp,channel,sender,content\n100,a,1,x\n{line}\n100,a,1,y\n100,a,1,y\n100,a,2,y\n");
        let first = import(&world, &log("100,a,z,w"), &[]).await;
        assert_eq!((first.status, counts(&first)), (Some(3), [4, 2, 0, 0, 0, 1]), "{first:?}");
        let second = import(&world, &log("100,a,1,w"), &[]).await;
        assert_eq!((second.status, counts(&second)), (Some(0), [1, 0, 0, 4, 0, 0]), "{second:?}");
        let directs = |line: &str| format!("timestamp,channel,sender,content\n100,2,1,x\n{line}\n100,2,1,y\n100,2,1,y\n");
        let first = import(&world, &directs("100,2,z,y"), &["--as", "directs"]).await;
        let second = import(&world, &directs("100,2,1,w"), &["--as", "directs"]).await;
        let counts = |ran: &Ran| ["sent", "known already", "bad"].map(|what| ran.told(what));
        assert_eq!((counts(&first), counts(&second)), ([3, 0, 1], [1, 3, 0]), "{second:?}");
        let node = world.node().await;
        let said: Vec<_> = messages(&node.client, 1).await.into_iter().map(|(sender, content, _)| format!("{sender}{content}")).collect();
        assert_eq!(said, ["1x", "1y", "1y", "2y", "1w"]);
        node.stop().await;
    }

    async fn what_has_expired_since_stays_away(world: World) {
        let (old, recent) = ("100,5,1,a\n200,5,2,b\n300,5,1,c\n", seconds_ago(3600));
        let young = format!("{recent},5,1,d\n{},5,2,e\n", recent + 1);
        let log = |lines: &str| format!("timestamp,channel,sender,content\n{lines}");
        for (lines, kept, again) in [(old.to_owned(), vec![], 3), (old.to_owned() + &young, vec!["d", "e"], 5)] {
            let first = import(&world, &log(&lines), &[]).await;
            assert_eq!(first.status, Some(0), "{first:?}");
            let node = world.node_with(&["--group-message-days", "1"]).await;
            let said = async || messages_from(&node.client, 5).await;
            eventually("the old ones go", async || said().await == kept).await;
            node.stop().await;
            let second = import(&world, &log(&lines), &[]).await;
            assert_eq!((second.status, counts(&second)), (Some(0), [0, 0, 0, again, 0, 0]), "{second:?}");
        }
    }

    async fn what_the_group_has_of_a_user_since_stands(world: World) {
        let file = world.dir.join("members.csv");
        let command = ["import", "messages", "-", "--members", file.to_str().unwrap()];
        let log = "timestamp,channel,sender\n100,5,1\n100,5,2\n100,5,3\n";
        std::fs::write(&file, "timestamp,channel,user,event\n").unwrap();
        assert_eq!(headmark(&world, &command, true, &[], log.into()).await.status, Some(0));
        let node = world.node().await;
        node.client.delete("/v1/groups/5/members/1").await;
        node.client.post("/v1/users/2/groups/5/read", &json!({})).await.ok();
        let before = seen(&node.client, 5..6).await;
        node.stop().await;
        // Older than what came in through the server, and new to the import.
        std::fs::write(&file, "timestamp,channel,user,event\n50,5,3,leave\n200,5,1,join\n").unwrap();
        let ran = headmark(&world, &command, true, &[], log.into()).await;
        assert_eq!((ran.status, counts(&ran)), (Some(0), [0, 0, 0, 5, 0, 0]), "{ran:?}");
        let node = world.node().await;
        assert_eq!(seen(&node.client, 5..6).await, before);
        node.stop().await;
        // A message of somebody who has left since is added, and does not make a member; no time
        // goes back.
        let late = import(&world, "timestamp,channel,sender\n300,5,1\n300,5,2\n", &[]).await;
        assert_eq!(counts(&late), [2, 0, 0, 0, 0, 0], "{late:?}");
        let node = world.node().await;
        assert_eq!(members(&node.client, 5).await, [2, 3]);
        let at = node.client.get("/v1/users/2/groups").await.ok()["items"][0]["last_access_at"].clone();
        assert!(at.as_str().unwrap() > "2020", "{at}");
        node.stop().await;
    }

    async fn a_late_message_marks_nothing_above_it_as_read(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.put("/v1/groups/5", &json!({})).await;
        client.post("/v1/groups/5/members", &json!({"user_ids": [1, 2]})).await.ok();
        for (n, path) in (1..=3).flat_map(|n| [(n, "/v1/groups/5/messages"), (n, "/v1/users/2/inbox")]) {
            let reply = client.post(path, &json!({"sender_id": 1, "client_id": format!("{n}"), "content": "new"})).await;
            assert_eq!(reply.status, 201, "{}", reply.text);
        }
        node.stop().await;
        let (group, directs) = ("timestamp,channel,sender\n1000,5,2\n1001,5,2\n", "timestamp,channel,sender\n1000,1,2\n1001,1,2\n");
        assert_eq!(import(&world, group, &[]).await.told("sent"), 2);
        assert_eq!(import(&world, directs, &["--as", "directs"]).await.told("sent"), 2);
        let node = world.node().await;
        let client = &node.client;
        assert_eq!((unread(client, 1).await, unread(client, 2).await), ([(5, 2)].into(), [(5, 3)].into()));
        assert_eq!(receipts(client, 5, 5).await, [(0, 1), (0, 1), (0, 1), (0, 1), (0, 1)]);
        let direct = |user: i64, peer: i64| async move { client.get(&format!("/v1/users/{user}/directs/{peer}")).await.ok() };
        assert_eq!((&direct(1, 2).await["unread"], &direct(2, 1).await["unread"]), (&json!(2), &json!(3)));
        assert_eq!(client.get("/v1/users/1/directs/2/receipts").await.ok()["read_seq"], 0);
        // Who sends has read what is above.
        client.post("/v1/groups/5/messages", &json!({"sender_id": 2, "client_id": "4", "content": "newer"})).await;
        client.post("/v1/users/1/inbox", &json!({"sender_id": 2, "client_id": "4", "content": "newer"})).await;
        assert_eq!((unread(client, 2).await, &direct(2, 1).await["unread"]), ([(5, 0)].into(), &json!(0)));
        node.stop().await;
    }

    async fn an_export_has_the_messages_of_a_sender_who_was_gone_before_them(world: World) {
        let file = world.dir.join("members.csv");
        std::fs::write(&file, "timestamp,channel,user,event\n50,5,1,leave\n").unwrap();
        let left = import(&world, "timestamp,channel,sender,content\n100,5,2,x\n", &["--members", file.to_str().unwrap()]).await;
        let late = import(&world, "timestamp,channel,sender,content\n40,5,1,hello\n", &[]).await;
        assert_eq!((counts(&left), counts(&late)), ([1, 1, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0]));
        let node = world.node().await;
        let export = node.client.get("/v1/users/1/export").await.text;
        let sent: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).filter(|line: &Value| line["kind"] == "group_message").collect();
        assert_eq!(sent.iter().map(|line| &line["content"]).collect::<Vec<_>>(), ["hello"], "{export}");
        node.stop().await;
    }

    async fn older_direct_messages_take_no_time_back(world: World) {
        let node = world.node().await;
        node.client.post("/v1/users/2/inbox", &json!({"sender_id": 1, "client_id": "a", "content": "x"})).await.ok();
        let times = async |client: &Client| {
            let mut times = Vec::new();
            for (user, peer) in [(2, "1"), (1, "2")] {
                let directs = client.get(&format!("/v1/users/{user}/directs")).await.ok();
                assert_eq!(directs["items"][0]["peer_id"], peer);
                times.push(directs["items"][0]["last_at"].clone());
            }
            times
        };
        let before = times(&node.client).await;
        node.stop().await;
        assert_eq!(import(&world, "timestamp,channel,sender\n100,2,1\n", &["--as", "directs"]).await.told("sent"), 1);
        let node = world.node().await;
        assert_eq!(times(&node.client).await, before);
        node.stop().await;
    }
}
