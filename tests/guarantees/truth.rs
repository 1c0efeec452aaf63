//! What is so: a user's unread summary recounted from the rows, and the same as a poll shows it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, SqliteConnection};

use crate::support::{Client, Tier, World, eventually_within};

/// An unread summary, bare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    pub revision: i64,
    /// Unread and head by badge.
    pub counters: BTreeMap<String, (i64, i64)>,
}

impl Summary {
    /// What a poll or query showed, which must not be degraded, and whose total must be the sum.
    #[track_caller]
    pub fn shown(body: &Value) -> Self {
        assert_eq!(body["degraded"], false, "{body}");
        let counters: BTreeMap<String, (i64, i64)> = body["counters"]
            .as_object()
            .unwrap_or_else(|| panic!("no counters in {body}"))
            .iter()
            .map(|(badge, counter)| (badge.clone(), (counter["unread"].as_i64().unwrap(), counter["head"].as_i64().unwrap())))
            .collect();
        assert!(counters.values().all(|(unread, head)| (0..=*head).contains(unread)), "{body}");
        assert_eq!(body["total"].as_i64(), Some(counters.values().map(|(unread, _)| unread).sum()), "{body}");
        Self { revision: body["revision"].as_i64().unwrap(), counters }
    }

    pub fn unread(&self, badge: &str) -> i64 {
        self.counters.get(badge).map_or(0, |(unread, _)| *unread)
    }

    pub fn head(&self, badge: &str) -> i64 {
        self.counters.get(badge).map_or(0, |(_, head)| *head)
    }
}

/// Polls one node until the answer is a full one, for at most three seconds: on a machine that is
/// busy with other things a node may hear too late of what users share, and says so.
pub async fn poll(client: &Client, user: i64) -> Summary {
    let path = format!("/v1/users/{user}/badges");
    let mut body = client.get(&path).await.ok();
    eventually_within(3, &format!("{path} is not degraded"), async || {
        if body["degraded"] == true {
            body = client.get(&path).await.ok();
        }
        body["degraded"] == false
    })
    .await;
    Summary::shown(&body)
}

/// The rows, asked without the program's own code.
#[derive(Debug)]
pub enum Truth {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

const USER: &str = "select revision, marks from users where user_id = $1";

impl Truth {
    pub async fn of(world: &World) -> Self {
        match world.tier {
            Tier::Embedded => {
                let file = SqliteConnectOptions::new().filename(world.dir.join("headmark.sqlite")).read_only(true);
                Self::Sqlite(file.connect().await.unwrap())
            }
            Tier::Server => Self::Postgres(PgConnection::connect(&world.database_url).await.unwrap()),
        }
    }

    /// A user's unread summary, recounted position by position.
    pub async fn summary(&mut self, user: i64) -> Summary {
        let row: Option<(i64, String)> = match self {
            Self::Sqlite(conn) => sqlx::query_as(USER).bind(user).fetch_optional(conn).await.unwrap(),
            Self::Postgres(conn) => sqlx::query_as(USER).bind(user).fetch_optional(conn).await.unwrap(),
        };
        let (revision, marks) = row.unwrap_or_default();
        let counters = marks.split(';').filter_map(|mark| mark.strip_prefix("c:")).map(counter);
        Summary { revision, counters: counters.collect() }
    }
}

/// A counter as a row holds it: its name, what is unread, its head.
fn counter(text: &str) -> (String, (i64, i64)) {
    let mut words = text.splitn(4, ' ');
    let name = words.next().unwrap().to_owned();
    let mut number = || words.next().unwrap_or("0").parse::<i64>().unwrap();
    let (head, behind) = (number(), number());
    (name, (recount(head, head - behind, words.next().unwrap_or_default()), head))
}

fn recount(head: i64, mark: i64, retracted: &str) -> i64 {
    assert!(0 <= mark && mark <= head, "mark {mark} of {head}");
    let mut gone = BTreeSet::new();
    for run in retracted.split_whitespace() {
        let (from, to) = run.split_once('-').unwrap_or((run, run));
        gone.extend(from.parse::<i64>().unwrap()..=to.parse().unwrap());
    }
    i64::try_from((mark + 1..=head).filter(|position| !gone.contains(position)).count()).unwrap()
}
