//! Groups: polls of users who are in many, and messages sent into them.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::Result;
use crate::load::{Order, Requests};
use crate::peers::{self, Peer};
use crate::report::{Goal, Report};
use crate::stats::{float, grouped};
use crate::wire;

use super::Stage;

/// Groups and the users who are in all of them.
const GROUPS: u64 = 200;
const MEMBERS: u64 = 20;
/// Ids of the groups and of the members; who sends what is polled is the one after the last member.
const FIRST: u64 = 7_200_000_001;
const SENDER: u64 = FIRST + MEMBERS;
/// The first of the groups that messages are sent into: as many others, each with members of its own, as the
/// members of different groups are nearly always different people.
const FIRST_SENT: u64 = 7_250_000_001;
/// Messages in each group before they are polled.
const MESSAGES: u64 = 3;
/// Most messages a second that there are requests for.
const MAX_SENDS_PER_SECOND: usize = 12_000;

/// What is polled, and where.
const POLLS: [(Goal, &str); 2] = [
    (Goal { work: "poll of the chats of a user in 200 groups", at_least: Some(0.6), unit: "polls" }, "badges?include=chats"),
    (Goal { work: "page of 100 of a user's 200 groups", at_least: None, unit: "pages" }, "groups?limit=100"),
];
const SEND: Goal = Goal { work: "messages into groups, durable", at_least: Some(3.0), unit: "messages" };

/// A plain design of groups: the head in the group's row, a row for each message and for each
/// member.
const PLAIN_TABLES: &str = "
    create table plain_groups (group_id bigint not null primary key, head bigint not null) with (fillfactor = 80);
    create table plain_members (
        group_id bigint not null,
        user_id bigint not null,
        read_seq bigint not null,
        primary key (group_id, user_id)
    ) with (fillfactor = 80);
    create table plain_messages (
        group_id bigint not null,
        seq bigint not null,
        sender_id bigint not null,
        client_id text not null,
        content text not null,
        sent_at bigint not null,
        primary key (group_id, seq),
        unique (group_id, sender_id, client_id)
    );
    insert into plain_groups (group_id, head) select g, 0 from generate_series(1, 200) g;
    insert into plain_members (group_id, user_id, read_seq) select g, u, 0 from generate_series(1, 200) g, generate_series(1, 21) u;
    vacuum analyze plain_groups;
    vacuum analyze plain_members;";

/// The plain send: the group's row is locked from the first statement to the commit.
const SEND_SQL: &str = "\
\\set group random(1, 200)
\\set sender random(1, 21)
\\set client random(1, 1000000000000)
begin;
update plain_groups set head = head + 1 where group_id = :group returning head \\gset
insert into plain_messages (group_id, seq, sender_id, client_id, content, sent_at) values (:group, :head, :sender, 'c' || :client, 'Lunch at one?', 1);
update plain_members set read_seq = :head where group_id = :group and user_id = :sender;
commit;
";

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    eprintln!("groups");
    let groups = FIRST..FIRST + GROUPS;
    stage.fill(&stage.server, groups.clone().map(|group| wire::request("PUT", &format!("/v1/groups/{group}"), &[])).collect()).await?;
    let members: Vec<String> = (FIRST..=SENDER).map(|member| member.to_string()).collect();
    let members = json!({ "user_ids": members });
    stage.fill(&stage.server, groups.map(|group| wire::json("POST", &format!("/v1/groups/{group}/members"), &members)).collect()).await?;
    let outcome = polls(stage, report).await;
    report.attempt("polls of 200 groups", outcome);
    sends(stage, report).await
}

async fn polls(stage: &Stage, report: &mut Report) -> Result<()> {
    let sends = (0..MESSAGES).flat_map(|round| (FIRST..FIRST + GROUPS).map(move |group| send(group, SENDER, &format!("first-{round}"))));
    stage.fill(&stage.server, sends.collect()).await?;
    for (goal, path) in POLLS {
        let paths: Vec<String> = (FIRST..SENDER).map(|user| format!("/v1/users/{user}/{path}")).collect();
        let answer = stage.ask(&stage.server, paths.first().ok_or("nobody polls")?).await?;
        let bare = peers::start(Peer::Bare, &answer, &stage.redis, stage.folder()).await?;
        let requests = stage.gets("groups", paths)?;
        let sides = [stage.side("a bare axum route", &bare, &requests), stage.side(goal.work, &stage.server, &requests)];
        let series = stage.contest(&sides).await?;
        if let [theirs, ours] = series.as_slice() {
            report.compare(goal, ours, theirs);
        }
        report.explain(&format!(
            "**A {}** is `GET /v1/users/{{user}}/{path}` on the server tier, for {MEMBERS} users who are in {GROUPS} groups with {MESSAGES} messages each; the bare route \
             gives the same {} bytes.",
            goal.work,
            grouped(float(u64::try_from(answer.body.len())?)),
        ));
    }
    Ok(())
}

/// A message into a group.
pub(super) fn send(group: u64, sender: u64, client_id: &str) -> Vec<u8> {
    let body = json!({ "sender_id": sender.to_string(), "client_id": client_id, "content": "Lunch at one?" });
    wire::json("POST", &format!("/v1/groups/{group}/messages"), &body)
}

/// The id of a member of one of the groups that messages are sent into.
fn member(group: u64, number: u64) -> u64 {
    FIRST_SENT + group * (MEMBERS + 1) + number
}

async fn sends(stage: &Stage, report: &mut Report) -> Result<()> {
    let puts = (0..GROUPS).map(|group| wire::request("PUT", &format!("/v1/groups/{}", FIRST_SENT + group), &[]));
    stage.fill(&stage.server, puts.collect()).await?;
    let join = |group: u64| {
        let members: Vec<_> = (0..=MEMBERS).map(|number| member(group, number).to_string()).collect();
        wire::json("POST", &format!("/v1/groups/{}/members", FIRST_SENT + group), &json!({ "user_ids": members }))
    };
    stage.fill(&stage.server, (0..GROUPS).map(join).collect()).await?;
    let brief = stage.scale.brief;
    let count = usize::try_from(brief.each.as_secs())? * MAX_SENDS_PER_SECOND * (brief.count + 1);
    let mut rng = StdRng::seed_from_u64(21);
    let requests = (0..u64::try_from(count)?).map(|number| {
        // Drawn, as in the plain design: in turn, most of those under way at a time would be one user's.
        let group = number % GROUPS;
        send(FIRST_SENT + group, member(group, rng.random_range(0..=MEMBERS)), &format!("m{number}"))
    });
    let requests = Requests::new(stage.folder(), "sends", Order::Each, requests.collect())?;
    let mut conn = stage.postgres.connect("plain").await?;
    for statement in PLAIN_TABLES.split_inclusive(';') {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut conn).await?;
    }
    let script = stage.script_for(report, brief, "The plain message", "send.sql", SEND_SQL, &[])?;
    report.explain(&format!(
        "**Messages into groups** go to {GROUPS} groups with {} members each, of their own, in turn, each from a member drawn at random; an answer means that the message is on disk, and read by its sender. The plain design is one \
         transaction: it raises the head in the group's row, adds the message under a unique id of the sender's, and moves the sender's mark.",
        MEMBERS + 1,
    ));
    stage.postgres.checkpoint().await?;
    let sides = [stage.plain("pgbench, plain messages", script), stage.side("messages into groups", &stage.server, &requests)];
    let series = stage.contest(&sides).await?;
    if let [theirs, ours] = series.as_slice() {
        report.compare(SEND, ours, theirs);
    }
    Ok(())
}
