//! Redis stalls, forgets, goes away and comes back.

use std::time::Instant;

use super::servers::Server;
use super::*;

/// What an operation may take beyond its timeout on a busy machine.
const SLACK: Duration = Duration::from_millis(400);

/// All operations that speak to Redis, each with how long it took and whether it worked.
async fn try_all(cache: &Cache) -> Vec<(&'static str, Duration, bool)> {
    let (who, writer, token) = (user(1), Writer(1), FillToken(1));
    let mut seen = Vec::new();
    let mut start = Instant::now();
    let mut note = |name, worked| {
        seen.push((name, start.elapsed(), worked));
        start = Instant::now();
    };
    note("begin_write", cache.begin_write(&[who], writer).await.is_ok());
    note("get", cache.get(who).await.is_ok());
    note("get_many", cache.get_many(&[who, user(2)]).await.is_ok());
    note("fill", cache.fill(who, token, &entry(1)).await.is_ok());
    note("apply_write", cache.apply_write(writer, &[change(1, 0, 1)]).await.is_ok());
    note("abandon_write", cache.abandon_write(&[who], writer).await.is_ok());
    note("run_id", cache.run_id().await.is_ok());
    seen
}

#[tokio::test]
async fn forgotten_scripts_are_sent_again() {
    let server = Server::start().await;
    let cache = connect(&config(), &server.url()).await;
    let mut raw = Raw::connect(&server.url()).await;
    for forget in 0..7 {
        let _: String = raw.ask(&["SCRIPT", "FLUSH"]).await;
        let users: Vec<_> = (1..=300).map(user).collect();
        match forget {
            0 => drop(cache.begin_write(&users, Writer(1)).await.unwrap()),
            1 => assert!(cache.apply_write(Writer(1), &[change(1, 0, 1), change(2, 0, 1)]).await.unwrap(), "it is inside"),
            2 => cache.abandon_write(&users, Writer(1)).await.unwrap(),
            3 => assert!(token_of(&cache.get(user(1)).await.unwrap()).is_some()),
            4 => assert!(cache.get_many(&users).await.unwrap().iter().all(|lookup| token_of(lookup).is_some())),
            5 => assert!(!cache.fill(user(1), FillToken(1), &entry(1)).await.unwrap()),
            _ => assert!(try_all(&cache).await.iter().all(|&(_, _, worked)| worked)),
        }
    }
}

#[tokio::test]
async fn a_stalled_server_holds_nobody_longer_than_the_timeout() {
    let server = Server::start().await;
    let redis = RedisConfig { timeout: Duration::from_millis(200), ..redis_at(&server.url()) };
    let cache = Cache::redis(config(), redis.clone()).await.unwrap();
    let mut raw = Raw::connect(&server.url()).await;
    let _: String = raw.ask(&["CLIENT", "PAUSE", "2500", "ALL"]).await;
    let seen = try_all(&cache).await;
    assert!(seen.iter().all(|&(_, took, worked)| !worked && took < redis.timeout + SLACK), "{seen:?}");
    assert!(seen.iter().skip(3).all(|&(_, took, _)| took < redis.timeout / 2), "the breaker is open: {seen:?}");
    eventually("the breaker closes", || async { cache.get(user(1)).await.is_ok() }).await;
    assert!(try_all(&cache).await.iter().all(|&(_, _, worked)| worked));
}

#[tokio::test]
async fn a_server_that_went_away_is_found_again() {
    let mut server = Server::start().await;
    let redis = RedisConfig { timeout: Duration::from_millis(300), ..redis_at(&server.url()) };
    let cache = Cache::redis(config(), redis.clone()).await.unwrap();
    assert!(try_all(&cache).await.iter().all(|&(_, _, worked)| worked));
    let mut listener = cache.listen(user(5));
    listener.ready().await;
    let run_id = cache.run_id().await.unwrap();

    server.kill();
    let seen = try_all(&cache).await;
    assert!(seen.iter().all(|&(_, took, worked)| !worked && took < redis.timeout + SLACK), "{seen:?}");
    let start = Instant::now();
    for _ in 0..1000 {
        assert!(cache.get(user(1)).await.is_err());
    }
    assert!(start.elapsed() < redis.timeout, "an open breaker answers at once: {:?}", start.elapsed());
    tokio::time::timeout(Duration::from_secs(5), listener.woken()).await.expect("listeners are told that wakes may be missing");
    let mut late = cache.listen(user(6));
    let start = Instant::now();
    late.ready().await;
    assert!(start.elapsed() < Duration::from_millis(500) + SLACK, "a poll does not wait for a subscription that does not come");

    server.restart().await;
    eventually("the breaker closes", || async { cache.get(user(1)).await.is_ok() }).await;
    assert!(try_all(&cache).await.iter().all(|&(_, _, worked)| worked));
    assert_ne!(cache.run_id().await.unwrap(), run_id, "a restart can be told");
    let other = connect(&CacheConfig { prefix: prefix_of(&cache), ..CacheConfig::default() }, &server.url()).await;
    let late = tokio::sync::Mutex::new(late);
    eventually("wakes arrive again", || async {
        other.apply_write(Writer(9), &[change(6, 1, 2)]).await.unwrap();
        tokio::time::timeout(Duration::from_millis(50), late.lock().await.woken()).await.is_ok()
    })
    .await;
}

pub(super) fn prefix_of(cache: &Cache) -> String {
    let Cache::Redis(redis) = cache else { unreachable!() };
    redis.prefix().to_owned()
}

#[tokio::test]
async fn a_server_that_is_not_there_at_the_start_is_used_once_it_is() {
    let mut server = Server::start().await;
    server.kill();
    let start = Instant::now();
    let cache = Cache::redis(config(), redis_at(&server.url())).await.unwrap();
    assert!(cache.get(user(1)).await.is_err());
    assert!(start.elapsed() < Duration::from_secs(3));
    server.restart().await;
    eventually("the cache is used", || async { cache.get(user(1)).await.is_ok() }).await;
}

#[tokio::test]
async fn what_waiting_does_not_mend_is_told_at_start_without_the_secret() {
    for url in ["redis://name:secret@127.0.0.1:1,redis://127.0.0.1:2", "http://name:secret@127.0.0.1"] {
        let wrong = redis_at(url);
        let told = Cache::redis(config(), wrong.clone()).await.unwrap_err();
        assert!(!format!("{wrong:?} {told:?} {told}").contains("secret"));
    }
    let away = redis_at("redis://name:secret@127.0.0.1:1");
    assert!(!format!("{:?}", Cache::redis(config(), away).await).contains("secret"));
}
