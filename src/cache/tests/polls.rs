//! The connections that carry polls: many at once, with a password, over a socket in a folder, and
//! when they break.

use futures_util::future::join_all;

use super::servers::Server;
use super::*;

async fn fill(cache: &Cache, id: i64, entry: &Entry) {
    let token = token_of(&cache.get(user(id)).await.unwrap()).expect("a token");
    assert!(cache.fill(user(id), token, entry).await.unwrap());
}

/// More polls than may be under way on one connection.
const MANY: i64 = 1500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_polls_is_answered_its_own_user() {
    let cache = Arc::new(connect(&config(), &shared_redis()).await);
    let ids = || 1..=MANY;
    join_all(ids().map(|id| {
        let cache = Arc::clone(&cache);
        async move { fill(&cache, id, &entry(id)).await }
    }))
    .await;
    for _ in 0..5 {
        let polls = ids().map(|id| {
            let cache = Arc::clone(&cache);
            tokio::spawn(async move { (id, cache.get(user(id)).await) })
        });
        for answer in join_all(polls).await {
            let (id, lookup) = answer.unwrap();
            assert_eq!(hit_of(&lookup.unwrap()), Some(&entry(id)));
        }
    }
}

#[tokio::test]
async fn polls_that_nobody_waits_for_leave_the_others_their_answers() {
    let cache = connect(&config(), &shared_redis()).await;
    for id in 1..=10 {
        fill(&cache, id, &entry(id)).await;
    }
    for id in 1..=10 {
        let gone = tokio::time::timeout(Duration::from_micros(50), cache.get(user(id))).await;
        drop(gone);
        let next = id % 10 + 1;
        assert_eq!(hit_of(&cache.get(user(next)).await.unwrap()), Some(&entry(next)));
    }
}

#[tokio::test]
async fn the_user_the_password_and_the_database_of_the_address_are_used() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server.url()).await;
    let _: String = raw.ask(&["ACL", "SETUSER", "polls", "on", ">secret", "~*", "&*", "+@all"]).await;
    let _: String = raw.ask(&["CONFIG", "SET", "requirepass", "other"]).await;
    let url = |password: &str| format!("{}/3", server.url().replace("redis://", &format!("redis://polls:{password}@")));
    let config = config();
    let cache = connect(&config, &url("secret")).await;
    fill(&cache, 1, &entry(7)).await;
    assert_eq!(hit_of(&cache.get(user(1)).await.unwrap()), Some(&entry(7)));
    let _: String = raw.ask(&["SELECT", "3"]).await;
    assert_eq!(raw.ask::<i64>(&["EXISTS", &format!("{}{{u:1}}", config.prefix)]).await, 1);
    assert!(Cache::redis(config, redis_at(&url("wrong"))).await.is_err());
}

#[tokio::test]
async fn a_socket_in_a_folder_does_as_well() {
    let path = std::env::temp_dir().join(format!("headmark-test-{:x}.sock", Nonces::new().next()));
    let _server = Server::start_with(vec!["--unixsocket".to_owned(), path.display().to_string()]).await;
    let cache = connect(&config(), &format!("redis+unix://{}", path.display())).await;
    fill(&cache, 1, &entry(7)).await;
    assert_eq!(hit_of(&cache.get(user(1)).await.unwrap()), Some(&entry(7)));
    std::fs::remove_file(path).ok();
}

/// Ends all connections but its own.
async fn end_others(raw: &mut Raw) {
    let _: i64 = raw.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
}

#[tokio::test]
async fn a_connection_that_was_closed_while_nobody_polled_is_made_again_without_a_failure() {
    let server = Server::start().await;
    let cache = connect(&config(), &server.url()).await;
    fill(&cache, 1, &entry(7)).await;
    let mut raw = Raw::connect(&server.url()).await;
    for _ in 0..5 {
        end_others(&mut raw).await;
        let raw = tokio::sync::Mutex::new(&mut raw);
        eventually("they are gone", || async {
            let clients: String = raw.lock().await.ask(&["CLIENT", "LIST", "TYPE", "normal"]).await;
            clients.lines().count() == 1
        })
        .await;
        assert_eq!(hit_of(&cache.get(user(1)).await.unwrap()), Some(&entry(7)));
    }
}

#[tokio::test]
async fn polls_over_a_connection_that_is_closed_meanwhile_are_sent_again() {
    let server = Server::start().await;
    let cache = Arc::new(connect(&config(), &server.url()).await);
    let Cache::Redis(redis) = &*cache else { unreachable!() };
    for id in 1..=20 {
        fill(&cache, id, &entry(id)).await;
    }
    let mut raw = Raw::connect(&server.url()).await;
    for _ in 0..50 {
        // Copies would need no connection. What the round before has closed is made again.
        (1..=20).for_each(|id| redis.forget_copy(user(id)));
        assert!(hit_of(&cache.get(user(1)).await.unwrap()).is_some());
        redis.forget_copy(user(1));
        let polls = (1..=20).map(|id| {
            let cache = Arc::clone(&cache);
            tokio::spawn(async move { (id, cache.get(user(id)).await) })
        });
        let polls: Vec<_> = polls.collect();
        end_others(&mut raw).await;
        for answer in join_all(polls).await {
            let (id, lookup) = answer.unwrap();
            assert_eq!(hit_of(&lookup.unwrap()), Some(&entry(id)));
        }
    }
}
