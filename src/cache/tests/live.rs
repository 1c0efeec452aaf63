//! What only a real server shows: sizes, lifetimes, wakes, clusters.

use super::servers::{Server, cluster};
use super::*;

/// As a user with these badges looks.
fn badges(badges: &str) -> Parts {
    Parts::from([("u".into(), format!("81200;{badges}").into())])
}

const FOUR_BADGES: &str = "c:comment 1045 12;c:dm 77 1;c:like 20318 150;c:mention 120 3";

fn five_badges() -> Parts {
    badges("c:comment 1045 12;c:dm 77 1;c:follower 912;c:like 20318 150;c:mention 120 3")
}

async fn fill(cache: &Cache, id: i64, entry: &Entry) {
    let token = token_of(&cache.get(user(id)).await.unwrap()).expect("a token");
    assert!(cache.fill(user(id), token, entry).await.unwrap());
}

#[tokio::test]
async fn an_entry_is_small_and_stays_a_listpack() {
    let url = shared_redis();
    let (config, mut raw) = (CacheConfig { prefix: "ht:".to_owned(), ..config() }, Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    // An id of its own keeps this test apart, for the prefix is as short as the real one.
    let id = i64::try_from(Nonces::new().next() >> 1).unwrap();
    let key = format!("{}{{u:{id}}}", config.prefix);
    fill(&cache, id, &Entry { revision: 1_000_000, parts: five_badges() }).await;
    let size_bytes: i64 = raw.ask(&["MEMORY", "USAGE", &key]).await;
    println!("a user with 5 badges: {size_bytes} bytes");
    assert!(size_bytes <= 200, "{size_bytes}");
    let four = id - 1;
    fill(&cache, four, &Entry { revision: 1_000_000, parts: badges(FOUR_BADGES) }).await;
    let key_of_four = format!("{}{{u:{four}}}", config.prefix);
    let size_bytes: i64 = raw.ask(&["MEMORY", "USAGE", &key_of_four]).await;
    println!("a user with 4 badges: {size_bytes} bytes");
    assert!(size_bytes <= 190, "{size_bytes}");
    let _: i64 = raw.ask(&["DEL", &key_of_four]).await;
    assert_eq!(raw.ask::<String>(&["OBJECT", "ENCODING", &key]).await, "listpack");

    // So many writers that their field outgrows a listpack; the last one to go puts that right.
    for writer in 0..8 {
        cache.begin_write(&[user(id)], Writer(u64::MAX - writer)).await.unwrap();
    }
    assert_eq!(raw.ask::<String>(&["OBJECT", "ENCODING", &key]).await, "hashtable");
    for writer in 0..8 {
        cache.apply_write(Writer(u64::MAX - writer), &[change(id, 1_000_000, 1_000_000)]).await.unwrap();
    }
    assert_eq!(raw.ask::<String>(&["OBJECT", "ENCODING", &key]).await, "listpack");
    assert_eq!(hit_of(&cache.get(user(id)).await.unwrap()), Some(&Entry { revision: 1_000_000, parts: five_badges() }));
    let life_ms: i64 = raw.ask(&["PTTL", &key]).await;
    assert!(life_ms > 0, "a hash that was written again expires: {life_ms}");
    let _: i64 = raw.ask(&["DEL", &key]).await;
}

#[tokio::test]
async fn every_key_carries_its_tag_and_expires() {
    let url = shared_redis();
    let (config, raw) = (config(), tokio::sync::Mutex::new(Raw::connect(&url).await));
    let cache = connect(&config, &url).await;
    for id in 1..=6 {
        cache.begin_write(&[user(id)], Writer(1)).await.unwrap();
    }
    cache.apply_write(Writer(1), &[change(1, 0, 1), change(2, 1, 1), change(99, 1, 2)]).await.unwrap();
    cache.abandon_write(&[user(3), user(98)], Writer(1)).await.unwrap();
    cache.get_many(&[user(3), user(4), user(7)]).await.unwrap();
    fill(&cache, 8, &entry(1)).await;
    cache.begin_write(&[user(8)], Writer(1)).await.unwrap();
    cache.apply_write(Writer(1), &[change(8, 1, 2)]).await.unwrap();
    let mut keys: Vec<String> = raw.lock().await.ask(&["KEYS", &format!("{}{{*", config.prefix)]).await;
    keys.sort_unstable();
    let readers = format!("{}readers", config.prefix);
    eventually("the node has a lease", async || raw.lock().await.ask::<i64>(&["EXISTS", &readers]).await == 1).await;
    let expected = [3, 7, 8].map(|id| format!("{}{{u:{id}}}", config.prefix));
    assert_eq!(keys, expected, "and none for users whom nobody reads");
    let writers = format!("{}writers", config.prefix);
    let mut inside: Vec<String> = raw.lock().await.ask(&["HKEYS", &writers]).await;
    inside.sort_unstable();
    assert_eq!(inside, [4, 5, 6].map(|id| format!("{}{{u:{id}}}", config.prefix)), "one writer has not ended");
    for key in keys {
        let ttl_ms: i64 = raw.lock().await.ask(&["PTTL", &key]).await;
        assert!((1..=60_000).contains(&ttl_ms), "{key}: {ttl_ms}");
    }
    for key in [readers, writers] {
        let ttl_ms: i64 = raw.lock().await.ask(&["PTTL", &key]).await;
        assert!(ttl_ms > 60_000, "it outlives entries, so that it is not evicted before them: {key}, {ttl_ms}");
    }
}

/// Nobody ends the writes of a node that was killed. What they leave goes with the writes of others.
#[tokio::test]
async fn what_dead_writers_leave_does_not_pile_up() {
    let url = shared_redis();
    let (config, mut raw) = (CacheConfig { lease: Duration::from_millis(300), ..config() }, Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    let writers = format!("{}writers", config.prefix);
    let users: Vec<_> = (1..=200).map(user).collect();
    cache.begin_write(&users, Writer(1)).await.unwrap();
    assert_eq!(raw.ask::<i64>(&["HLEN", &writers]).await, 200);
    tokio::time::sleep(config.lease * 2).await;
    for writer in 2..400 {
        cache.begin_write(&[user(1000)], Writer(writer)).await.unwrap();
        cache.apply_write(Writer(writer), &[change(1000, 0, 1)]).await.unwrap();
    }
    assert_eq!(raw.ask::<i64>(&["HLEN", &writers]).await, 0);
}

/// Some of the users of a batch have an entry.
#[tokio::test]
async fn a_write_keeps_nothing_for_those_whom_nobody_reads() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    let users: Vec<_> = (1..=150).map(user).collect();
    for id in (10..=150).step_by(10) {
        fill(&cache, id, &entry(0)).await;
    }
    for after in 1..=3 {
        cache.begin_write(&users, Writer(7)).await.unwrap();
        let inside = cache.get_many(&users).await.unwrap();
        assert!(inside.iter().all(|lookup| matches!(lookup, Lookup::Miss { fill: None, .. })), "a writer is inside of all");
        let changes: Vec<_> = (1..=150).map(|id| change(id, after - 1, after)).collect();
        assert!(cache.apply_write(Writer(7), &changes).await.unwrap(), "it was inside of all");
        let keys: Vec<String> = raw.ask(&["KEYS", &format!("{}{{*", config.prefix)]).await;
        assert_eq!(keys.len(), 15);
        assert_eq!(raw.ask::<i64>(&["EXISTS", &format!("{}writers", config.prefix)]).await, 0);
        for id in (10..=150).step_by(10) {
            assert_eq!(hit_of(&cache.get(user(id)).await.unwrap()), Some(&entry(after)));
        }
    }
}

#[tokio::test]
async fn a_broken_list_of_writers_is_told_and_harms_no_entry() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    fill(&cache, 1, &entry(1)).await;
    cache.begin_write(&[user(1), user(2)], Writer(7)).await.unwrap();
    let _: String = raw.ask(&["SET", &format!("{}writers", config.prefix), "not a hash", "EX", "60"]).await;
    assert!(cache.apply_write(Writer(7), &[change(1, 1, 2), change(2, 1, 2)]).await.is_err());
    assert_eq!(hit_of(&cache.get(user(1)).await.unwrap_or(Lookup::Miss { fill: None, last_known: None })), Some(&entry(2)));
    assert!(cache.get(user(2)).await.is_err(), "nobody knows who writes there");
    assert!(cache.begin_write(&[user(1), user(2)], Writer(8)).await.is_err());
    assert!(cache.abandon_write(&[user(1), user(2)], Writer(8)).await.is_err());
    let _: i64 = raw.ask(&["DEL", &format!("{}writers", config.prefix)]).await;
    for id in [1, 2] {
        assert!(token_of(&cache.get(user(id)).await.unwrap()).is_some(), "user {id}");
    }
}

/// So many users that their fields would be looked for one after the other.
#[tokio::test]
async fn the_writers_of_a_batch_are_in_a_table() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let (cache, writers) = (connect(&config, &url).await, format!("{}writers", config.prefix));
    for (count, encoding) in [(4, "listpack"), (40, "hashtable")] {
        let users: Vec<_> = (1..=count).map(user).collect();
        cache.begin_write(&users, Writer(7)).await.unwrap();
        assert_eq!(raw.ask::<String>(&["OBJECT", "ENCODING", &writers]).await, encoding);
        assert_eq!(raw.ask::<i64>(&["HLEN", &writers]).await, count);
        cache.abandon_write(&users, Writer(7)).await.unwrap();
        assert_eq!(raw.ask::<i64>(&["EXISTS", &writers]).await, 0);
    }
}

/// A node of version 0.1.0 does not see that a writer is inside where there is no entry.
#[tokio::test]
async fn a_token_that_an_older_node_gives_dies_with_the_write() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    for filled in [false, true] {
        let key = format!("{}{{u:1}}", config.prefix);
        evict(&mut raw, &key).await;
        cache.begin_write(&[user(1), user(2)], Writer(7)).await.unwrap();
        let _: i64 = raw.ask(&["HSET", &key, "!d", "1", "!g", &format!("2a:0:{}", i64::MAX)]).await;
        if filled {
            assert!(cache.fill(user(1), FillToken(0x2a), &entry(0)).await.unwrap());
        }
        assert!(!cache.apply_write(Writer(7), &[change(1, 0, 1), change(2, 0, 1)]).await.unwrap(), "it was not inside alone");
        assert!(!cache.fill(user(1), FillToken(0x2a), &entry(0)).await.unwrap());
        assert_eq!(hit_of(&cache.get(user(1)).await.unwrap()), None, "filled: {filled}");
    }
}

/// A lease that ends before the write does: a reader fills in what was there before.
#[tokio::test]
async fn a_late_writer_voids_what_was_filled_in_where_nothing_was() {
    let config = CacheConfig { lease: Duration::from_millis(50), ttl: Duration::from_secs(5), ..config() };
    let cache = connect(&config, &shared_redis()).await;
    for (id, renews) in [(1, false), (2, true)] {
        let writer = Writer(7);
        cache.begin_write(&[user(id)], writer).await.unwrap();
        eventually("the lease ends", || async { token_of(&cache.get(user(id)).await.unwrap()).is_some() }).await;
        fill(&cache, id, &entry(0)).await;
        if renews {
            cache.begin_write(&[user(id)], writer).await.unwrap();
            assert_eq!(token_of(&cache.get(user(id)).await.unwrap()), None);
            cache.abandon_write(&[user(id)], writer).await.unwrap();
        }
        assert!(!cache.apply_write(writer, &[change(id, 0, 1)]).await.unwrap(), "it was not inside to the end");
        let lookup = cache.get(user(id)).await.unwrap();
        assert!(token_of(&lookup).is_some(), "{lookup:?}");
    }
}

#[tokio::test]
async fn big_batches_and_big_entries_go_through() {
    let cache = connect(&config(), &shared_redis()).await;
    let users: Vec<_> = (1..=1000).map(user).collect();
    cache.begin_write(&users, Writer(1)).await.unwrap();
    let lookups = cache.get_many(&users).await.unwrap();
    assert!(lookups.iter().all(|lookup| lookup == &Lookup::Miss { fill: None, last_known: None }));
    let changes: Vec<_> = (1..=1000).map(|id| change(id, 0, 1)).collect();
    cache.apply_write(Writer(1), &changes).await.unwrap();
    let lookups = cache.get_many(&users).await.unwrap();
    for (user, lookup) in users.iter().zip(&lookups) {
        assert!(cache.fill(*user, token_of(lookup).unwrap(), &entry(user.get())).await.unwrap());
    }
    let lookups = cache.get_many(&users).await.unwrap();
    assert!(users.iter().zip(&lookups).all(|(user, lookup)| hit_of(lookup) == Some(&entry(user.get()))), "in the order asked for");

    cache.begin_write(&users, Writer(3)).await.unwrap();
    let changes: Vec<_> = (1..=1000).map(|id| if id % 3 == 0 { change(id, id + 1, id + 2) } else { change(id, id, id + 1) }).collect();
    cache.apply_write(Writer(3), &changes).await.unwrap();
    for (lookup, change) in cache.get_many(&users).await.unwrap().iter().zip(&changes) {
        let shown = hit_of(lookup).map(|entry| (entry.revision, entry.parts.clone()));
        let mut parts = entry(change.before).parts;
        change.parts.iter().flat_map(Parts::iter).for_each(|(field, value)| parts.insert(field, value));
        assert_eq!(shown, (change.before == change.user.get()).then_some((change.after, parts)), "user {}", change.user);
    }

    let parts: Parts = (0..5000).map(|at| (format!("c:{at}").into(), format!("{at} {at}").into())).collect();
    let big = Entry { revision: 1, parts: parts.clone() };
    fill(&cache, 5000, &big).await;
    cache.begin_write(&[user(5000)], Writer(2)).await.unwrap();
    cache.apply_write(Writer(2), &[Change { user: user(5000), before: 1, after: 2, parts: Some(parts.clone()) }]).await.unwrap();
    assert_eq!(hit_of(&cache.get(user(5000)).await.unwrap()), Some(&Entry { revision: 2, parts }));
}

#[tokio::test]
async fn one_bad_key_is_told_and_harms_no_other() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    let _: String = raw.ask(&["SET", &format!("{}{{u:2}}", config.prefix), "not a hash", "EX", "60"]).await;
    assert!(cache.begin_write(&[user(1), user(2), user(3)], Writer(1)).await.is_err());
    for id in [1, 3] {
        assert_eq!(cache.get(user(id)).await.unwrap(), Lookup::Miss { fill: None, last_known: None }, "user {id}");
    }
    assert!(cache.abandon_write(&[user(1), user(2), user(3)], Writer(1)).await.is_err());
    for id in [1, 3] {
        fill(&cache, id, &entry(1)).await;
    }
    assert!(cache.begin_write(&[user(1), user(2), user(3)], Writer(2)).await.is_err());
    assert!(cache.apply_write(Writer(2), &[1, 2, 3].map(|id| change(id, 1, 2))).await.is_err());
    for id in [1, 3] {
        assert_eq!(hit_of(&cache.get(user(id)).await.unwrap()).map(|entry| entry.revision), Some(2), "user {id}");
    }
    for _ in 0..5 {
        assert!(cache.get(user(2)).await.is_err());
    }
    assert!(cache.get(user(1)).await.is_ok(), "a refusal is no outage");
}

async fn woken_within(listener: &mut Listener, limit: Duration) -> bool {
    tokio::time::timeout(limit, listener.woken()).await.is_ok()
}

const SOON: Duration = Duration::from_secs(5);
const A_WHILE: Duration = Duration::from_millis(100);

#[tokio::test]
async fn changes_wake_listeners_on_every_node() {
    let url = shared_redis();
    let config = config();
    let (here, there) = (connect(&config, &url).await, connect(&config, &url).await);
    for (from, to) in [(&here, &there), (&here, &here)] {
        let (mut one, mut other) = (to.listen(user(1)), to.listen(user(2)));
        one.ready().await;
        other.ready().await;
        from.apply_write(Writer(1), &[change(1, 0, 1), change(2, 5, 5)]).await.unwrap();
        assert!(woken_within(&mut one, SOON).await);
        assert!(!woken_within(&mut other, A_WHILE).await, "nothing changed there");
        to.wake_local([user(2)]);
        assert!(woken_within(&mut other, SOON).await);
    }
    let memory = Cache::memory(config);
    let mut listener = memory.listen(user(1));
    listener.ready().await;
    memory.apply_write(Writer(1), &[change(1, 0, 1), change(2, 0, 1)]).await.unwrap();
    assert!(woken_within(&mut listener, SOON).await);
    assert!(!woken_within(&mut listener, A_WHILE).await, "woken once for one change");
}

#[tokio::test]
async fn the_last_listener_ends_the_subscription() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    let channel = format!("{}wake:{{u:1}}", config.prefix);
    let (mut first, mut second) = (cache.listen(user(1)), cache.listen(user(1)));
    first.ready().await;
    second.ready().await;
    assert_eq!(raw.ask::<(String, i64)>(&["PUBSUB", "NUMSUB", &channel]).await, (channel.clone(), 1));
    drop(first);
    let mut again = cache.listen(user(1));
    drop(second);
    again.ready().await;
    assert_eq!(raw.ask::<(String, i64)>(&["PUBSUB", "NUMSUB", &channel]).await, (channel.clone(), 1));
    drop(again);
    let raw = tokio::sync::Mutex::new(raw);
    eventually("nobody subscribes", || async { raw.lock().await.ask::<(String, i64)>(&["PUBSUB", "NUMSUB", &channel]).await.1 == 0 }).await;
    let Cache::Redis(redis) = &cache else { unreachable!() };
    assert_eq!(redis.hub().listened(), 0);
}

#[tokio::test]
async fn a_lost_subscription_comes_back() {
    let server = Server::start().await;
    let config = config();
    let (here, there) = (connect(&config, &server.url()).await, connect(&config, &server.url()).await);
    let mut listener = there.listen(user(1));
    listener.ready().await;
    let mut raw = Raw::connect(&server.url()).await;
    let killed: i64 = raw.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    assert!(killed >= 1);
    assert!(woken_within(&mut listener, SOON).await, "it may have missed something");
    listener.ready().await;
    // The second wake says that it is subscribed again.
    assert!(woken_within(&mut listener, SOON).await);
    here.apply_write(Writer(1), &[change(1, 0, 1)]).await.unwrap();
    assert!(woken_within(&mut listener, SOON).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_on_a_cluster_takes_longer_than_one_operation_may() {
    let servers = cluster().await;
    let redis = RedisConfig { cluster: true, timeout: Duration::from_millis(400), ..redis_at(&servers[0].url()) };
    let config = CacheConfig { lease: Duration::from_secs(600), ttl: Duration::from_secs(600), ..config() };
    let cache = Cache::redis(config, redis.clone()).await.unwrap();
    // As many users as it takes on this machine.
    let mut count = 5_000;
    loop {
        let users: Vec<_> = (1..=count).map(user).collect();
        let begun = std::time::Instant::now();
        cache.begin_write(&users, Writer(1)).await.unwrap();
        let took = begun.elapsed();
        let changes: Vec<_> = (1..=count).map(|id| change(id, 0, 1)).collect();
        cache.apply_write(Writer(1), &changes).await.unwrap();
        cache.begin_write(&users, Writer(2)).await.unwrap();
        cache.abandon_write(&users, Writer(2)).await.unwrap();
        if took > redis.timeout * 2 {
            break;
        }
        count *= 2;
        assert!(count < 1_000_000, "{took:?}");
    }
}

#[tokio::test]
async fn a_cluster_of_three_masters_does_it_all() {
    let servers = cluster().await;
    let config = config();
    let redis = RedisConfig { cluster: true, timeout: Duration::from_secs(2), ..redis_at(&servers[0].url()) };
    let cache = Cache::redis(config.clone(), redis.clone()).await.unwrap();
    let users: Vec<_> = (1..=100).map(user).collect();
    cache.begin_write(&users, Writer(1)).await.unwrap();
    assert!(cache.get_many(&users).await.unwrap().iter().all(|lookup| token_of(lookup).is_none()));
    cache.abandon_write(&users, Writer(1)).await.unwrap();
    for (user, lookup) in users.iter().zip(cache.get_many(&users).await.unwrap()) {
        assert!(cache.fill(*user, token_of(&lookup).unwrap(), &entry(user.get())).await.unwrap());
    }
    cache.begin_write(&users, Writer(2)).await.unwrap();
    let changes: Vec<_> = (1..=100).map(|id| change(id, id, id + 1)).collect();
    let mut listener = cache.listen(user(50));
    let other = Cache::redis(config.clone(), RedisConfig { url: SecretString::from(servers[1].url()), ..redis.clone() }).await.unwrap();
    let mut elsewhere = other.listen(user(50));
    listener.ready().await;
    elsewhere.ready().await;
    cache.apply_write(Writer(2), &changes).await.unwrap();
    assert!(woken_within(&mut listener, SOON).await);
    assert!(woken_within(&mut elsewhere, SOON).await, "told on another node of the cluster");
    for (user, lookup) in users.iter().zip(other.get_many(&users).await.unwrap()) {
        assert_eq!(hit_of(&lookup), Some(&entry(user.get() + 1)));
        assert_eq!(cache.get(*user).await.unwrap(), lookup);
    }
    let mut held = Vec::new();
    for server in &servers {
        let mut raw = Raw::connect(&server.url()).await;
        held.push(raw.ask::<i64>(&["DBSIZE"]).await);
        let _: String = raw.ask(&["SCRIPT", "FLUSH"]).await;
    }
    assert!(held.iter().all(|&keys| keys > 10), "spread over all masters: {held:?}");
    cache.begin_write(&users, Writer(3)).await.unwrap();
    cache.abandon_write(&users, Writer(3)).await.unwrap();
    assert_eq!(cache.run_id().await.unwrap().split(',').count(), 3);
    assert_eq!(cache.run_id().await, other.run_id().await);
}
