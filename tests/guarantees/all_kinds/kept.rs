//! What polls keep with a user's entry, against summaries that are put together without it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headmark::cache::ReadEntry;
use headmark::engine::entries::State;
use headmark::engine::turns::Turns;
use headmark::features::badges::summary::CounterPart;
use headmark::features::broadcasts::summary::BroadcastPart;
use headmark::features::dots::summary::DotPart;
use headmark::features::feed::summary::FeedPart;
use headmark::features::feed::{FeedConfig, Feeds};
use headmark::features::groups::chats::Chats;
use headmark::features::notifications::summary::NotificationPart;
use headmark::http::polling::Seen;
use headmark::summary::{ChatPart, Parts, Summaries, UnreadSummary, Wanted};
use serde_json::{Value, json};

use super::run::Run;
use crate::support::{Client, Node};

/// What is asked for: each again and again, so that what was kept meets later states.
const ASKED: [(&str, Option<i64>); 7] = [
    ("counters,broadcasts,dots,feed,chats,notifications", None),
    ("counters,broadcasts,dots,chats,notifications", None),
    ("counters,broadcasts,dots,feed,chats,notifications", Some(2)),
    ("counters", None),
    ("broadcasts,dots", Some(1)),
    ("feed", None),
    ("chats,notifications", Some(3)),
];

/// So many are asked for at each step: as many as are kept.
const ASKED_AT_ONCE: usize = 2;

/// For so many steps the same, so that what was kept before a step is met after it.
const ASKED_FOR: usize = 6;

/// How long it may take until two summaries in a row are the same, and none of them is degraded.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause before a further try.
const PAUSE: Duration = Duration::from_millis(20);

/// The read path of a node with lists of its own, of which nothing was counted.
fn without_lists(node: &Node) -> Summaries {
    let state = node.app.state();
    let (db, cache, guard, heads) = (state.db.clone(), Arc::clone(&state.cache), Arc::clone(&state.guard), Arc::clone(&state.heads));
    let turns = Arc::new(Turns::new(16, 16, Duration::from_secs(5)));
    let config = FeedConfig { feed_cache_bytes: 1 << 20, post_ttl_days: 0 };
    let feeds = Arc::new(Feeds::new(&config, db.clone(), cache, guard, Arc::clone(&heads), turns));
    let chats = Arc::new(Chats::new(db.clone(), Arc::clone(&heads)));
    let parts = Parts {
        counters: CounterPart,
        broadcasts: BroadcastPart,
        dots: DotPart,
        feed: FeedPart { feeds, clock: state.clock.clone() },
        chats: ChatPart { db, entries: Arc::clone(&state.entries), chats, clock: state.clock.clone() },
        notifications: NotificationPart,
    };
    Summaries { entries: Arc::clone(&state.entries), heads, parts, views: Arc::clone(&state.views), clock: state.clock.clone() }
}

/// A summary of which nothing was kept, as the body and the end of the tag show it.
async fn fresh(node: &Node, user: i64, wanted: Wanted) -> (String, String) {
    let summaries = without_lists(node);
    let user = user.try_into().unwrap();
    let State::Current(entry) = summaries.entries.read(user, Seen::revision_alone(0).revision()).await else { return Default::default() };
    let alone = State::Current(Arc::new(ReadEntry::from((**entry).clone())));
    let summary: UnreadSummary = summaries.put_together(user, alone, wanted, &[], summaries.clock.now()).await;
    let version = summary.version().map(|version| format!(".{}.{:016x}\"", version.revision, version.shared));
    (serde_json::to_string(&summary.out()).unwrap(), version.unwrap_or_default())
}

/// A poll's body and tag; an empty body for 304.
async fn poll(client: &Client, path: &str, tag: Option<&str>) -> (String, String) {
    let reply = match tag {
        Some(tag) => client.get_if_changed(path, tag).await,
        None => client.get(path).await,
    };
    assert!(reply.text.is_empty() == (reply.status == 304) && [200, 304].contains(&reply.status.as_u16()), "{reply:?}");
    (reply.text.clone(), reply.header("etag").to_owned())
}

impl Run<'_> {
    /// Every node that is in this process shows what a summary of which nothing was kept shows.
    pub async fn compare_kept(&mut self, after: &str) {
        for at in 0..ASKED_AT_ONCE {
            let (include, cap) = ASKED[(self.at() / ASKED_FOR + at) % ASKED.len()];
            let query = cap.map_or(format!("badges?include={include}"), |cap| format!("badges?include={include}&cap={cap}"));
            for user in self.model.seen.clone() {
                let path = self.user_path(user, &query);
                let id = self.user(user);
                let last = self.tags.get(&path).cloned();
                let mut tag = String::new();
                for node in self.fleet.here_nodes() {
                    tag = shows_fresh(node, id, &path, (include, cap), last.as_deref(), after).await;
                }
                self.tags.insert(path, tag);
            }
        }
    }
}

fn is_degraded(body: &str) -> bool {
    serde_json::from_str::<Value>(body).is_ok_and(|body| body["degraded"] == true)
}

/// Asks until two fresh summaries in a row are the same: what writes beside the requests may come
/// in between. On a slow machine some are degraded, and it asks again. Returns the tag.
async fn shows_fresh(node: &Node, user: i64, path: &str, (include, cap): (&str, Option<i64>), last: Option<&str>, after: &str) -> String {
    let wanted = Wanted::parse(Some(include), cap).unwrap();
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let (body, version) = fresh(node, user, wanted).await;
        let first = poll(&node.client, path, None).await;
        let again = poll(&node.client, path, None).await;
        let same = poll(&node.client, path, Some(&first.1)).await;
        let since = match last {
            Some(last) => Some((last, poll(&node.client, path, Some(last)).await)),
            None => None,
        };
        let query = json!({"user_ids": [user], "include": include.split(',').collect::<Vec<_>>(), "cap": cap.unwrap_or(1_000_000_000)});
        let query = if cap.is_some() { Some(node.client.post("/v1/badges/query", &query).await) } else { None };
        let polls = [&first, &again, &same].into_iter().chain(since.as_ref().map(|(_, since)| since));
        // In place of a degraded answer, a query gets none.
        let has_no_query = query.as_ref().is_some_and(|reply| reply.status == 503);
        let is_degraded = polls.map(|(body, _)| body).chain([&body]).any(|body| is_degraded(body)) || has_no_query;
        if is_degraded || version.is_empty() || fresh(node, user, wanted).await != (body.clone(), version.clone()) {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        assert_eq!(first.0, body, "{path} after {after}");
        assert!(first.1.ends_with(&version), "{path} after {after}: {} does not end with {version}", first.1);
        assert_eq!(again, first, "{path} after {after}");
        assert_eq!(same, (String::new(), first.1.clone()), "{path} after {after}");
        if let Some((last, since)) = since {
            let expected = if last == first.1 { &same } else { &first };
            assert_eq!(&since, expected, "{path} after {after}, with the tag {last}");
        }
        if let Some(query) = query {
            assert_eq!(query.text, format!("{{\"items\":[{body}]}}"), "the query of {user} after {after}");
        }
        return first.1;
    }
    panic!("{path} after {after}: no two summaries are the same");
}
