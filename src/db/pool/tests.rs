use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::postgres::PgSslMode;

use super::*;

fn pool_of(opener: Opener, connections: u32, acquire_timeout: Duration) -> Arc<Pool> {
    Arc::new(Pool::new(opener, connections, acquire_timeout))
}

fn pool(connections: u32) -> Arc<Pool> {
    pool_of(Opener::Sqlite(SqliteConnectOptions::new().in_memory(true)), connections, Duration::from_millis(200))
}

async fn open() -> Conn {
    Opener::Sqlite(SqliteConnectOptions::new().in_memory(true)).open().await.unwrap()
}

/// An idle connection with its home here, or in another runtime.
async fn idle(pool: &Pool, home: Home) -> Idle {
    let permit = Arc::clone(&pool.places).acquire_owned().await.unwrap();
    Idle::new(open().await, pool.residents.settle(home, permit), pool.generation())
}

fn elsewhere() -> Home {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let home = Some(runtime.handle().id());
    runtime.shutdown_background();
    home
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nobody_waits_for_a_new_connection_while_another_is_idle() {
    // It takes connections, and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(silent.local_addr().unwrap().port());
    let pool = pool_of(Opener::Postgres(options, None), 2, Duration::from_secs(20));
    let only = idle(&pool, None).await;
    let waiting = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { pool.acquire().await.map(Lent::give_back) }
    });
    until(|| pool.places.available_permits() == 0).await;
    pool.keep(only);
    waiting.await.unwrap().unwrap();
    assert!(pool.acquire().await.is_ok());
}

#[tokio::test]
async fn who_uses_one_from_elsewhere_has_one_opened_at_home() {
    let pool = pool(2);
    pool.keep(idle(&pool, elsewhere()).await);
    pool.acquire().await.unwrap().give_back();
    until(|| pool.shelves().kept().len() == 2).await;
    assert_eq!(pool.acquire().await.unwrap().place.home, None);
}

#[tokio::test]
async fn connections_move_to_where_they_are_used_until_both_have_as_many() {
    let (pool, there) = (pool(4), elsewhere());
    for _ in 0..4 {
        pool.keep(idle(&pool, there).await);
    }
    for here in [1, 2] {
        let used: Vec<_> = (0..here).map(|_| pool.shelves().take(None).unwrap()).collect();
        used.into_iter().for_each(|idle| pool.lend(idle, None).give_back());
        until(|| pool.shelves().kept().filter(|idle| idle.place.home.is_none()).count() == here).await;
    }
    let all: Vec<_> = (0..4).map(|_| pool.shelves().take(None).unwrap()).collect();
    all.into_iter().for_each(|idle| pool.lend(idle, None).give_back());
    assert_eq!(pool.shelves().kept().filter(|idle| idle.place.home == there).count(), 2, "they stay");
}

#[tokio::test]
async fn who_gives_up_waiting_loses_no_connection() {
    let pool = pool(1);
    let lent = pool.acquire().await.unwrap();
    let mut waits = Box::pin(pool.acquire());
    assert!(futures_util::poll!(&mut waits).is_pending());
    lent.give_back();
    drop(waits);
    assert_eq!(pool.shelves().kept().len(), 1);
}

#[test]
fn a_quarter_of_the_connections_may_be_lent_for_what_is_rare() {
    let spare = |connections| {
        let pool = pool(connections);
        let held: Vec<_> = std::iter::from_fn(|| pool.spare()).collect();
        held.len()
    };
    assert_eq!([1, 3, 4, 7, 16].map(spare), [0, 0, 1, 1, 4]);
    let pool = pool(4);
    drop(pool.spare().unwrap());
    assert!(pool.spare().is_some(), "it can be lent again");
}

#[tokio::test]
async fn no_more_are_lent_than_there_may_be() {
    let pool = pool(2);
    let (first, second) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    assert!(matches!(pool.acquire().await, Err(sqlx::Error::PoolTimedOut)));
    first.give_back();
    let third = pool.acquire().await.unwrap();
    assert!(pool.shelves().kept().len() == 0, "the one that was given back is lent again");
    drop(second);
    let fourth = pool.acquire().await.unwrap();
    third.give_back();
    fourth.give_back();
    assert_eq!(pool.shelves().kept().len(), 2);
}

#[tokio::test]
async fn what_is_not_given_back_is_lent_to_nobody() {
    let pool = pool(1);
    drop(pool.acquire().await.unwrap());
    assert!(pool.shelves().kept().len() == 0);
    pool.acquire().await.unwrap().give_back();
    assert_eq!(pool.shelves().kept().len(), 1);
}

#[tokio::test]
async fn the_old_are_closed() {
    let pool = pool(2);
    let (first, second) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    first.give_back();
    second.give_back();
    let long_ago = |age: Duration| Instant::now().checked_sub(age + Duration::from_secs(1)).unwrap();
    for idle in pool.shelves().kept() {
        idle.since = long_ago(MAX_IDLE);
    }
    pool.acquire().await.unwrap().give_back();
    assert_eq!(pool.shelves().kept().len(), 1, "nobody needed the other");
    pool.shelves().kept().for_each(|idle| idle.opened = long_ago(MAX_AGE));
    pool.acquire().await.unwrap().give_back();
    assert!(pool.shelves().kept().len() == 0);
}

#[tokio::test]
async fn a_closed_pool_keeps_and_lends_nothing() {
    let pool = pool(2);
    let (lent, idle) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    idle.give_back();
    pool.close().await;
    lent.give_back();
    assert!(pool.shelves().kept().len() == 0);
    assert!(matches!(pool.acquire().await, Err(sqlx::Error::PoolClosed)));
}

/// A server that accepts every client, and answers the clients that connect once `forgotten` is set.
fn server_behind_a_firewall(forgotten: Arc<AtomicBool>) -> Opener {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in server.incoming().map_while(Result::ok) {
            let answers = forgotten.load(Ordering::SeqCst);
            std::thread::spawn(move || let_in(client, answers));
        }
    });
    let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(port).username("u").ssl_mode(PgSslMode::Disable);
    Opener::Postgres(options, None)
}

fn let_in(mut client: std::net::TcpStream, answers: bool) -> std::io::Result<()> {
    const READY: [u8; 6] = *b"Z\0\0\0\x05I";
    let mut buffer = [0; 4096];
    let _startup = client.read(&mut buffer)?;
    client.write_all(&[&b"R\0\0\0\x08\0\0\0\0"[..], &READY].concat())?;
    while client.read(&mut buffer)? > 0 {
        if answers {
            client.write_all(&READY)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn who_meets_a_connection_that_was_forgotten_on_the_way_gets_another_in_time() {
    let forgotten = Arc::new(AtomicBool::new(false));
    let pool = pool_of(server_behind_a_firewall(Arc::clone(&forgotten)), 3, Duration::from_secs(2));
    for _ in 0..3 {
        let permit = Arc::clone(&pool.places).acquire_owned().await.unwrap();
        let place = pool.residents.settle(pool.opener.home(), permit);
        let conn = pool.opener.open().await.unwrap();
        pool.keep(Idle { since: Instant::now() - 2 * TRUSTED_IDLE, ..Idle::new(conn, place, 0) });
    }
    forgotten.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    let lent = pool.acquire().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "it took {:?}", begun.elapsed());
    assert_eq!(pool.shelves().kept().len(), 0, "those that went the same way are closed");
    lent.give_back();
    assert_eq!(pool.shelves().kept().len(), 1);
}

#[tokio::test]
async fn what_was_opened_before_a_renewal_is_lent_no_more() {
    let pool = pool(3);
    let before = pool.acquire().await.unwrap();
    let opened = before.opened;
    pool.keep(idle(&pool, None).await);
    pool.renew();
    assert_eq!(pool.shelves().kept().len(), 0, "what idled is closed");
    before.give_back();
    let after = pool.acquire().await.unwrap();
    assert!(after.opened > opened && after.generation == 1);
    after.give_back();
    assert!(pool.acquire().await.is_ok_and(|lent| lent.generation == 1));
}
