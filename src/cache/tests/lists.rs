//! What lies beside the entries in Redis: lists by version, and the stream.

use super::servers::cluster;
use super::*;

#[tokio::test]
async fn lists_are_kept_apart_and_expire() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    for (at, list) in [(1, ListKey::Feed), (2, ListKey::Following), (3, ListKey::Blocks), (4, ListKey::Mutes)] {
        assert_eq!(cache.get_list(user(1), list).await.unwrap(), None);
        cache.set_list(user(1), list, cache.list_version(at), &[7; 3]).await.unwrap();
    }
    for (at, list, suffix) in [(1, ListKey::Feed, 'f'), (2, ListKey::Following, 'l'), (3, ListKey::Blocks, 'b'), (4, ListKey::Mutes, 'm')] {
        assert_eq!(cache.get_list(user(1), list).await.unwrap(), Some((cache.list_version(at), vec![7; 3])));
        let ttl_ms: i64 = raw.ask(&["PTTL", &format!("{}{{u:1}}:{suffix}", config.prefix)]).await;
        assert!((1..=60_000).contains(&ttl_ms), "{ttl_ms}");
    }
}

#[test]
fn a_restore_tells_lists_of_one_revision_apart() {
    let cache = Cache::memory(config());
    let at = |epoch: i64, revision: i64| {
        cache.set_epoch(epoch);
        cache.list_version(revision)
    };
    let (before, bypassed, restored) = (at(5, 100), at(6, 100), at(5 + 3 * HISTORY_STEP, 98));
    assert!(bypassed.is_at_least(before) && before.is_at_least(bypassed), "a bypass changes no history");
    assert!(at(5, 101).is_at_least(before) && !before.is_at_least(at(5, 101)));
    assert!(!before.is_at_least(restored), "a lost list is not shown for one of a lower revision");
    assert!(!at(5, 98).is_at_least(restored));
}

#[tokio::test]
async fn a_stream_has_each_entry_once_and_is_trimmed() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    let stream = RedisStream { key: format!("{}events", config.prefix), max_entries: 100, ttl: Duration::from_secs(60) };
    let entries = |from: i64, to: i64| (from..=to).map(|id| (id, format!("{{\"id\":{id}}}"))).collect::<Vec<_>>();
    cache.append(&stream, &entries(1, 5)).await.unwrap();
    assert!(cache.append(&stream, &entries(3, 8)).await.unwrap());
    assert_eq!(raw.ask::<i64>(&["XLEN", &stream.key]).await, 8, "what is there already is passed over");
    assert!(cache.append(&stream, &entries(7, 8)).await.unwrap(), "all of them");
    let others = |id: i64| vec![(id, "{\"of\":\"another\"}".to_owned())];
    assert!(!cache.append(&stream, &others(8)).await.unwrap(), "another entry has its number");
    assert!(cache.append(&stream, &others(9)).await.unwrap());
    raw.ask::<i64>(&["XDEL", &stream.key, "8-0", "9-0"]).await;
    assert!(!cache.append(&stream, &others(8)).await.unwrap(), "the stream was beyond it");
    cache.append(&stream, &entries(10, 2000)).await.unwrap();
    let length: i64 = raw.ask(&["XLEN", &stream.key]).await;
    assert!((100..500).contains(&length), "about so many: {length}");
    let ttl_ms: i64 = raw.ask(&["PTTL", &stream.key]).await;
    assert!((1..=60_000).contains(&ttl_ms), "{ttl_ms}");
}

#[tokio::test]
async fn engine_a_cluster_has_them_too() {
    let servers = cluster().await;
    let redis = RedisConfig { cluster: true, timeout: Duration::from_secs(2), ..redis_at(&servers[0].url()) };
    let cache = Cache::redis(config(), redis).await.unwrap();
    for id in 1..=40 {
        cache.set_list(user(id), ListKey::Following, cache.list_version(id), &[1]).await.unwrap();
    }
    let stream = RedisStream { key: "events".to_owned(), max_entries: 10, ttl: Duration::from_secs(60) };
    cache.append(&stream, &[(1, "{}".to_owned())]).await.unwrap();
    cache.append(&stream, &[(1, "{}".to_owned()), (2, "{}".to_owned())]).await.unwrap();
}
