//! Entries that are polled live on where SQL shows that they are not outdated.

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
async fn an_entry_that_is_polled_in_its_last_half_ends_soon() {
    let server = Server::start().await;
    let (cache, mut raw, key) = filled(&server).await;
    cache.get(user(USER)).await.unwrap();
    assert_eq!(ending(&cache, 20).await, [], "it was filled in just now");
    for (life_ms, ends) in [("35000", false), ("28000", true), ("9000", true)] {
        let before = entries_asked_for(&mut raw).await;
        raw.ask::<i64>(&["PEXPIRE", &key, life_ms]).await;
        // Redis reports that like any change, so the node asks for the entry.
        while entries_asked_for(&mut raw).await == before {
            cache.get(user(USER)).await.unwrap();
        }
        let told = if ends { vec![(user(USER), 1)] } else { Vec::new() };
        assert_eq!(ending(&cache, 20).await, told, "{life_ms}");
        for _ in 0..10 {
            cache.get(user(USER)).await.unwrap();
        }
        assert_eq!(ending(&cache, 20).await, [], "once, however often it is polled now");
    }
}

#[tokio::test]
async fn a_copy_that_is_shown_again_and_again_ends_soon() {
    let server = Server::start().await;
    let config = CacheConfig { ttl: Duration::from_secs(6), lease: Duration::from_millis(300), ..config() };
    let cache = connect(&config, &server.url()).await;
    read(&cache, 1).await;
    let mut raw = Raw::connect(&server.url()).await;
    let key = format!("{}{{u:{USER}}}", config.prefix);
    for _ in 0..2 {
        let begun = std::time::Instant::now();
        eventually("it ends soon", async || {
            assert!(hit_of(&cache.get(user(USER)).await.unwrap()).is_some(), "it is there after {:?}", begun.elapsed());
            ending(&cache, 1).await == [(user(USER), 1)]
        })
        .await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!(cache.extend(0, &[user(USER)]).await.unwrap(), 1);
        assert!(life(&mut raw, &key).await > 4000);
    }
}

#[tokio::test]
async fn one_that_lives_on_is_still_a_copy_until_it_changes() {
    let server = Server::start().await;
    let (cache, mut raw, key) = filled(&server).await;
    let other = connect(&CacheConfig { prefix: super::outage::prefix_of(&cache), ..CacheConfig::default() }, &server.url()).await;
    raw.ask::<i64>(&["PEXPIRE", &key, "20000"]).await;
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
    let begun = other.begin_write(&[user(USER)], Writer(1)).await.unwrap();
    other.apply_write(Writer(1), &[change(USER, 1, 2)]).await.unwrap();
    if let Some(until) = begun.shown_until {
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
async fn a_copy_ends_with_its_entry_though_redis_does_not_tell() {
    let server = Server::start_with(["--enable-debug-command", "yes"].map(str::to_owned).into()).await;
    let (cache, mut raw, key) = filled(&server).await;
    // Nothing but a question ends what has expired.
    raw.ask::<String>(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).await;
    raw.ask::<i64>(&["PEXPIRE", &key, "2000"]).await;
    eventually("it has a copy of that", async || {
        is_leased(&cache).await && hit_of(&cache.get(user(USER)).await.unwrap()).is_some() && ending(&cache, 1).await.len() == 1
    })
    .await;
    tokio::time::sleep(Duration::from_millis(2010)).await;
    assert!(token_of(&cache.get(user(USER)).await.unwrap()).is_some(), "it is read anew");
}

#[tokio::test]
async fn a_node_hears_of_keys_that_redis_no_longer_remembers() {
    const USERS: i64 = 50;
    let server = Server::start().await;
    let (cache, mut raw, _) = filled(&server).await;
    let other = connect(&CacheConfig { prefix: super::outage::prefix_of(&cache), ..CacheConfig::default() }, &server.url()).await;
    // What is read makes Redis forget who has read something else; it tells of that as of a change.
    raw.ask::<String>(&["CONFIG", "SET", "tracking-table-max-keys", "1"]).await;
    let all: Vec<_> = (1..=USERS).map(user).collect();
    for id in 1..=USERS {
        if let Some(token) = token_of(&cache.get(user(id)).await.unwrap()) {
            cache.fill(user(id), token, &entry(1)).await.unwrap();
        }
        cache.get(user(id)).await.unwrap();
    }
    cache.extend(0, &all).await.unwrap();
    for id in 1..=USERS {
        let begun = other.begin_write(&[user(id)], Writer(1)).await.unwrap();
        other.apply_write(Writer(1), &[change(id, 1, 2)]).await.unwrap();
        if let Some(until) = begun.shown_until {
            tokio::time::sleep_until(until).await;
        }
        assert_eq!(hit_of(&cache.get(user(id)).await.unwrap()), Some(&entry(2)), "{id}");
    }
}
