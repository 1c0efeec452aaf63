//! Entries that are polled live on where SQL shows that they are not outdated, and what was filled in
//! is a copy at once.

use super::leases::{entries_asked_for, is_leased, read};
use super::servers::Server;
use super::*;

const USER: i64 = 7;
const TTL_MS: i64 = 60_000;

async fn ending(cache: &Cache, wait_ms: u64) -> Vec<(UserId, Revision)> {
    tokio::time::timeout(Duration::from_millis(wait_ms), cache.ending()).await.unwrap_or_default()
}

/// A node that has filled in revision 1, with the key of the entry.
async fn filled(server: &Server) -> (Cache, Raw, String) {
    let config = config();
    let cache = connect(&config, &server.url()).await;
    read(&cache, 1).await;
    (cache, Raw::connect(&server.url()).await, format!("{}{{u:{USER}}}", config.prefix))
}

async fn life(raw: &mut Raw, key: &str) -> i64 {
    raw.ask(&["PTTL", key]).await
}

#[tokio::test]
async fn what_was_filled_in_is_a_copy_until_it_changes() {
    let server = Server::start().await;
    let (cache, mut raw, _key) = filled(&server).await;
    let other = connect(&CacheConfig { prefix: super::outage::prefix_of(&cache), ..CacheConfig::default() }, &server.url()).await;
    for revision in 1..100 {
        eventually("the node has a lease", async || is_leased(&cache).await).await;
        let before = entries_asked_for(&mut raw).await;
        assert_eq!(hit_of(&cache.get(user(USER)).await.unwrap()), Some(&entry(revision)));
        assert_eq!(entries_asked_for(&mut raw).await, before, "filled in, so not asked for");
        // Another node says that it is outdated.
        let until = other.begin_write(&[user(USER)], Writer(1)).await.unwrap();
        other.abandon_write(&[user(USER)], Writer(1)).await.unwrap();
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
        let token = token_of(&cache.get(user(USER)).await.unwrap()).unwrap();
        assert!(cache.fill(user(USER), token, &to_fill(entry(revision + 1))).await.unwrap());
    }
}

#[tokio::test]
async fn what_was_not_filled_in_is_no_copy() {
    let server = Server::start().await;
    let (cache, ..) = filled(&server).await;
    cache.begin_write(&[user(USER)], Writer(1)).await.unwrap();
    cache.abandon_write(&[user(USER)], Writer(1)).await.unwrap();
    let token = token_of(&cache.get(user(USER)).await.unwrap()).unwrap();
    cache.begin_write(&[user(USER)], Writer(2)).await.unwrap();
    assert!(!cache.fill(user(USER), token, &to_fill(entry(1))).await.unwrap());
    assert_eq!(hit_of(&cache.get(user(USER)).await.unwrap()), None);
}

#[tokio::test]
async fn an_entry_that_is_polled_in_its_last_half_ends_soon() {
    let server = Server::start().await;
    let (cache, mut raw, key) = filled(&server).await;
    cache.get(user(USER)).await.unwrap();
    assert_eq!(ending(&cache, 20).await, [], "it was filled in just now");
    for (life_ms, ends) in [("35000", false), ("28000", true), ("1000", true)] {
        raw.ask::<i64>(&["PEXPIRE", &key, life_ms]).await;
        eventually("it is asked for", async || {
            cache.get(user(USER)).await.unwrap();
            !ends || ending(&cache, 5).await == [(user(USER), 1)]
        })
        .await;
        // Told once, however often it is polled now.
        for _ in 0..10 {
            cache.get(user(USER)).await.unwrap();
        }
        assert_eq!(ending(&cache, 20).await, [], "{life_ms}");
    }
}

#[tokio::test]
async fn a_copy_that_is_shown_again_and_again_ends_soon() {
    let server = Server::start().await;
    let config = CacheConfig { ttl: Duration::from_millis(1500), lease: Duration::from_millis(300), ..config() };
    let cache = connect(&config, &server.url()).await;
    read(&cache, 1).await;
    let mut raw = Raw::connect(&server.url()).await;
    let key = format!("{}{{u:{USER}}}", config.prefix);
    for _ in 0..5 {
        let begun = std::time::Instant::now();
        eventually("it ends soon", async || {
            assert!(hit_of(&cache.get(user(USER)).await.unwrap()).is_some(), "it is there after {:?}", begun.elapsed());
            ending(&cache, 1).await == [(user(USER), 1)]
        })
        .await;
        assert!(begun.elapsed() < Duration::from_millis(1200), "{:?}", begun.elapsed());
        assert_eq!(cache.extend(0, &[user(USER)]).await.unwrap(), 1);
        assert!(life(&mut raw, &key).await > 1200);
    }
}

#[tokio::test]
async fn one_that_lives_on_is_still_a_copy_until_it_changes() {
    let server = Server::start().await;
    let (cache, mut raw, key) = filled(&server).await;
    let other = connect(&CacheConfig { prefix: super::outage::prefix_of(&cache), ..CacheConfig::default() }, &server.url()).await;
    raw.ask::<i64>(&["PEXPIRE", &key, "1000"]).await;
    for node in [&cache, &other] {
        eventually("it is asked for", async || {
            assert!(hit_of(&node.get(user(USER)).await.unwrap()).is_some());
            ending(node, 5).await == [(user(USER), 1)]
        })
        .await;
    }
    assert_eq!(cache.extend(0, &[user(USER), user(8)]).await.unwrap(), 1);
    assert!((TTL_MS * 7 / 8 - 5000..=TTL_MS).contains(&life(&mut raw, &key).await));
    eventually("the node has a lease", async || is_leased(&cache).await).await;
    let before = entries_asked_for(&mut raw).await;
    assert_eq!(hit_of(&cache.get(user(USER)).await.unwrap()), Some(&entry(1)));
    assert_eq!(entries_asked_for(&mut raw).await, before, "its own extension ends no copy");
    let until = other.begin_write(&[user(USER)], Writer(1)).await.unwrap();
    other.apply_write(Writer(1), &[change(USER, 1, 2)]).await.unwrap();
    if let Some(until) = until {
        tokio::time::sleep_until(until).await;
    }
    for node in [&cache, &other] {
        assert_eq!(hit_of(&node.get(user(USER)).await.unwrap()), Some(&entry(2)), "it hears of later changes");
    }
}

#[tokio::test]
async fn what_changed_meanwhile_stays_as_it_is() {
    let server = Server::start().await;
    let (cache, mut raw, key) = filled(&server).await;
    let extend = async |cache: &Cache| cache.extend(0, &[user(USER)]).await.unwrap();
    cache.begin_write(&[user(USER)], Writer(1)).await.unwrap();
    assert_eq!(extend(&cache).await, 0, "the begin gave it a whole life");
    raw.ask::<i64>(&["PEXPIRE", &key, "20000"]).await;
    assert_eq!(extend(&cache).await, 1);
    assert_eq!(hit_of(&cache.get(user(USER)).await.unwrap()), None, "it is as dirty as before");
    cache.apply_write(Writer(1), &[change(USER, 1, 2)]).await.unwrap();
    extend(&cache).await;
    assert_eq!(hit_of(&cache.get(user(USER)).await.unwrap()), Some(&entry(2)));
    raw.ask::<i64>(&["DEL", &key]).await;
    assert_eq!(extend(&cache).await, 0);
    assert_eq!(raw.ask::<i64>(&["EXISTS", &key]).await, 0);
    assert!(cache.extend(1, &[user(USER)]).await.is_err(), "the node is in another epoch");
}

#[tokio::test]
async fn one_that_ended_by_the_question_is_no_copy() {
    let server = Server::start_with(["--enable-debug-command", "yes"].map(str::to_owned).into()).await;
    // Nothing else ends what has expired.
    let mut raw = Raw::connect(&server.url()).await;
    raw.ask::<String>(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).await;
    let (cache, _, key) = filled(&server).await;
    assert!(hit_of(&cache.get(user(USER)).await.unwrap()).is_some());
    raw.ask::<i64>(&["PEXPIRE", &key, "30"]).await;
    eventually("it is a copy", async || is_leased(&cache).await && hit_of(&cache.get(user(USER)).await.unwrap()).is_some()).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(cache.extend(0, &[user(USER)]).await.unwrap(), 0);
    assert!(token_of(&cache.get(user(USER)).await.unwrap()).is_some(), "it is read anew");
}
