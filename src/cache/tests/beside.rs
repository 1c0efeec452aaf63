//! What lies beside the entries in Redis: lists and facts by version, and the stream.

use super::servers::cluster;
use super::*;

fn facts(version: i64, of: &[(i64, i64)]) -> Facts {
    let others = of.iter().map(|(other, _)| user(*other)).collect();
    Facts { version, others, codes: of.iter().map(|(_, code)| Some(*code)).collect() }
}

/// What the cache tells of a user's facts about others: the version, and the codes.
async fn told(cache: &Cache, id: i64, others: &[i64]) -> Option<(i64, Vec<Option<i64>>)> {
    let others: Vec<_> = others.iter().map(|other| user(*other)).collect();
    let found = cache.get_facts(&[(user(id), others.as_slice())]).await.unwrap().pop().unwrap();
    found.map(|facts| (facts.version, facts.codes))
}

#[tokio::test]
async fn facts_belong_to_a_version() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    assert_eq!(told(&cache, 1, &[2, 3]).await, None);
    cache.set_facts(&[(user(1), facts(5, &[(2, 1), (3, 0)])), (user(2), facts(9, &[(1, 8)]))]).await.unwrap();
    assert_eq!(told(&cache, 1, &[2, 3, 4]).await, Some((5, vec![Some(1), Some(0), None])));
    cache.set_facts(&[(user(1), facts(5, &[(4, 3)]))]).await.unwrap();
    assert_eq!(told(&cache, 1, &[2, 4]).await, Some((5, vec![Some(1), Some(3)])), "of the same version they add up");
    cache.set_facts(&[(user(1), facts(4, &[(2, 0)]))]).await.unwrap();
    assert_eq!(told(&cache, 1, &[2]).await, Some((5, vec![Some(1)])), "one that comes late is passed over");
    cache.set_facts(&[(user(1), facts(6, &[(3, 7)]))]).await.unwrap();
    assert_eq!(told(&cache, 1, &[2, 3]).await, Some((6, vec![None, Some(7)])), "those of before are gone");
    let many: Vec<_> = (10..5000).map(|other| (other, 1)).collect();
    cache.set_facts(&[(user(3), facts(1, &many))]).await.unwrap();
    cache.set_facts(&[(user(3), facts(1, &[(5, 1)]))]).await.unwrap();
    assert_eq!(told(&cache, 3, &[5, 10]).await, Some((1, vec![Some(1), None])), "one that has grown too large begins anew");
    for id in [1, 2, 3] {
        let ttl_ms: i64 = raw.ask(&["PTTL", &format!("{}{{u:{id}}}:r", config.prefix)]).await;
        assert!((1..=60_000).contains(&ttl_ms), "{id}: {ttl_ms}");
    }
}

#[tokio::test]
async fn lists_are_kept_apart_and_expire() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    for (at, list) in [(1, ListKey::Feed), (2, ListKey::Following), (3, ListKey::Blocks)] {
        assert_eq!(cache.get_list(user(1), list).await.unwrap(), None);
        cache.set_list(user(1), list, at, &[7; 3]).await.unwrap();
    }
    for (at, list, suffix) in [(1, ListKey::Feed, 'f'), (2, ListKey::Following, 'l'), (3, ListKey::Blocks, 'b')] {
        assert_eq!(cache.get_list(user(1), list).await.unwrap(), Some((at, vec![7; 3])));
        let ttl_ms: i64 = raw.ask(&["PTTL", &format!("{}{{u:1}}:{suffix}", config.prefix)]).await;
        assert!((1..=60_000).contains(&ttl_ms), "{ttl_ms}");
    }
}

#[tokio::test]
async fn a_stream_has_each_entry_once_and_is_trimmed() {
    let url = shared_redis();
    let (config, mut raw) = (config(), Raw::connect(&url).await);
    let cache = connect(&config, &url).await;
    let stream = Stream { key: format!("{}events", config.prefix), max_entries: 100, ttl: Duration::from_secs(60) };
    let entries = |from: i64, to: i64| (from..=to).map(|id| (id, format!("{{\"id\":{id}}}"))).collect::<Vec<_>>();
    cache.append(&stream, &entries(1, 5)).await.unwrap();
    cache.append(&stream, &entries(3, 8)).await.unwrap();
    assert_eq!(raw.ask::<i64>(&["XLEN", &stream.key]).await, 8, "what is there already is passed over");
    cache.append(&stream, &entries(9, 2000)).await.unwrap();
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
        cache.set_facts(&[(user(id), facts(id, &[(id + 1, 1)]))]).await.unwrap();
        cache.set_list(user(id), ListKey::Following, id, &[1]).await.unwrap();
    }
    let others: Vec<_> = (2..=41).map(|other| [user(other)]).collect();
    let asked: Vec<_> = (1..=40).map(user).zip(others.iter().map(<[UserId; 1]>::as_slice)).collect();
    let found = cache.get_facts(&asked).await.unwrap();
    for (id, facts) in (1..=40).zip(found) {
        assert_eq!(facts.map(|facts| (facts.version, facts.codes)), Some((id, vec![Some(1)])));
    }
    let stream = Stream { key: "events".to_owned(), max_entries: 10, ttl: Duration::from_secs(60) };
    cache.append(&stream, &[(1, "{}".to_owned())]).await.unwrap();
    cache.append(&stream, &[(1, "{}".to_owned()), (2, "{}".to_owned())]).await.unwrap();
}
