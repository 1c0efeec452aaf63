//! What holds for the in-process table alone: its bound, its lifetimes, and many threads at once.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

fn table(cache: &Cache) -> &Memory {
    let Cache::Memory(memory) = cache else { unreachable!() };
    memory
}

async fn fill(cache: &Cache, id: i64, entry: &Entry) {
    let token = token_of(&cache.get(user(id)).await.unwrap()).expect("a token");
    assert!(cache.fill(user(id), token, entry).await.unwrap());
}

#[tokio::test]
async fn it_holds_no_more_than_its_capacity() {
    let cache = Cache::memory(CacheConfig { capacity: 6400, ..config() });
    for id in 1..=50_000 {
        fill(&cache, id, &entry(1)).await;
    }
    let held = table(&cache).len();
    assert!((6000..=6400).contains(&held), "{held}");
}

#[tokio::test]
async fn it_takes_no_more_bytes_than_it_may() {
    const BYTES: usize = 16 * 1024 * 1024;
    let parts = |count: usize| (0..count).map(|at| (format!("c:badge-{at}").into(), "9".repeat(20).into())).collect();
    let cache = Cache::memory(CacheConfig { capacity_bytes: BYTES.try_into().unwrap(), ..config() });
    for id in 1..=20_000 {
        fill(&cache, id, &entry(1)).await;
    }
    assert!(table(&cache).weigh() <= BYTES && table(&cache).len() == 20_000, "small ones fit");
    // Few large ones among many small ones, then large ones alone.
    for id in 100_000..=105_000 {
        fill(&cache, id, &Entry { revision: 1, parts: parts(300) }).await;
        assert!(id % 500 != 0 || table(&cache).weigh() <= BYTES, "after {id}: {}", table(&cache).weigh());
    }
    // What is there grows.
    for id in 200_000..=205_000 {
        fill(&cache, id, &entry(1)).await;
        cache.begin_write(&[user(id)], Writer(1)).await.unwrap();
        cache.apply_write(Writer(1), &[Change { user: user(id), before: 1, after: 2, parts: Some(parts(300)) }]).await.unwrap();
        assert!(id % 500 != 0 || table(&cache).weigh() <= BYTES, "after {id}: {}", table(&cache).weigh());
    }
    assert!(hit_of(&cache.get(user(205_000)).await.unwrap()).is_some(), "what came last is there");
    cache.clear();
    assert_eq!(table(&cache).weigh(), 0);
}

#[tokio::test]
async fn what_is_read_stays_longer() {
    let cache = Cache::memory(CacheConfig { capacity: 6400, ..config() });
    fill(&cache, 1, &entry(7)).await;
    for id in 2..=50_000 {
        fill(&cache, id, &entry(1)).await;
        assert!(hit_of(&cache.get(user(1)).await.unwrap()).is_some(), "after {id}");
    }
}

#[tokio::test]
async fn no_eviction_loses_a_writer() {
    let (cache, now_ms) = manual_memory(CacheConfig { capacity: 64, ..config() });
    let inside: Vec<_> = (1..=200).map(user).collect();
    cache.begin_write(&inside, Writer(1)).await.unwrap();
    for id in 1000..10_000 {
        cache.get(user(id)).await.unwrap();
    }
    for &user in &inside {
        assert_eq!(cache.get(user).await.unwrap(), Lookup::Miss { fill: None, last_known: None }, "{user}");
    }
    cache.clear();
    for &user in &inside {
        assert_eq!(cache.get(user).await.unwrap(), Lookup::Miss { fill: None, last_known: None }, "{user}");
    }
    assert!(table(&cache).len() <= 200, "all others are gone");
    now_ms.fetch_add(5000, Ordering::Relaxed);
    for id in 1000..10_000 {
        cache.get(user(id)).await.unwrap();
    }
    assert!(table(&cache).len() <= 64, "back within the bound once the leases are over: {}", table(&cache).len());
}

#[tokio::test]
async fn entries_expire_unless_they_are_read_or_written() {
    let (cache, now_ms) = manual_memory(config());
    fill(&cache, 1, &entry(1)).await;
    for _ in 0..3 {
        now_ms.fetch_add(59_999, Ordering::Relaxed);
        assert!(hit_of(&cache.get(user(1)).await.unwrap()).is_some());
    }
    now_ms.fetch_add(59_999, Ordering::Relaxed);
    cache.begin_write(&[user(1)], Writer(1)).await.unwrap();
    cache.apply_write(Writer(1), &[change(1, 1, 2)]).await.unwrap();
    now_ms.fetch_add(59_999, Ordering::Relaxed);
    assert!(hit_of(&cache.get(user(1)).await.unwrap()).is_some());
    now_ms.fetch_add(60_000, Ordering::Relaxed);
    let expired = cache.get(user(1)).await.unwrap();
    assert!(matches!(expired, Lookup::Miss { fill: Some(_), last_known: None }), "{expired:?}");
    for id in 2..=10_000 {
        cache.get(user(id)).await.unwrap();
    }
    now_ms.fetch_add(60_000, Ordering::Relaxed);
    for id in 10_001..=20_000 {
        cache.get(user(id)).await.unwrap();
    }
    assert!(table(&cache).len() <= 12_000, "insertions clear away what expired: {}", table(&cache).len());
}

#[tokio::test]
async fn dirt_lives_as_long_as_the_lease() {
    let (cache, now_ms) = manual_memory(CacheConfig { ttl: Duration::from_secs(1), ..config() });
    cache.begin_write(&[user(1)], Writer(1)).await.unwrap();
    now_ms.fetch_add(4999, Ordering::Relaxed);
    assert_eq!(token_of(&cache.get(user(1)).await.unwrap()), None);
}

#[tokio::test]
async fn listeners_are_bounded() {
    let cache = Cache::memory(config());
    let bound = i64::try_from(hub::LISTENED_USERS_MAX).unwrap();
    let mut listeners: Vec<_> = (1..=bound).map(|id| cache.listen(user(id))).collect();
    let mut beyond = cache.listen(user(bound + 1));
    beyond.ready().await;
    cache.wake_local([user(bound), user(bound + 1)]);
    listeners.last_mut().unwrap().woken().await;
    assert!(tokio::time::timeout(Duration::from_millis(20), beyond.woken()).await.is_err());
    drop(listeners);
    assert_eq!(cache.hub().listened(), 0);
}

/// Writers and readers on real threads, few users, a table too small for them: after each
/// acknowledged write, every hit shows it.
#[test]
fn threads_see_what_was_acknowledged() {
    const HITS: u64 = 20_000;
    const TURNS: usize = 20_000;
    // A busy machine may do no more than this in the time that there is.
    const FEWEST_HITS: u64 = 1000;
    const LONGEST: Duration = Duration::from_secs(30);
    let cache = Cache::memory(CacheConfig { capacity: 128, ..config() });
    let users = 200;
    let db: Vec<_> = (0..users).map(|_| (std::sync::Mutex::new(0_i64), AtomicI64::new(0))).collect();
    let (done, hits) = (AtomicBool::new(false), AtomicU64::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let handle = runtime.handle();
    let give_up = std::time::Instant::now() + LONGEST;
    std::thread::scope(|scope| {
        for reader in 0..4_usize {
            let (cache, db, done, hits) = (&cache, &db, &done, &hits);
            scope.spawn(move || {
                for turn in (reader..).step_by(7) {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    let at = turn % users;
                    let id = i64::try_from(at).unwrap() + 1;
                    let acknowledged = db[at].1.load(Ordering::SeqCst);
                    match handle.block_on(cache.get(user(id))).unwrap() {
                        Lookup::Hit(hit) => {
                            hits.fetch_add(1, Ordering::Relaxed);
                            assert!(hit.revision >= acknowledged, "{} < {acknowledged}", hit.revision);
                        }
                        Lookup::Miss { fill: Some(token), .. } => {
                            let revision = *db[at].0.lock().unwrap();
                            std::thread::yield_now();
                            handle.block_on(cache.fill(user(id), token, &entry(revision))).unwrap();
                        }
                        Lookup::Miss { .. } => {}
                    }
                }
            });
        }
        let writers: Vec<_> = (0..3_usize)
            .map(|writer| {
                let (cache, db, hits) = (&cache, &db, &hits);
                scope.spawn(move || {
                    // Until enough was written and seen to prove something, or the time is over: readers that
                    // fail see no more.
                    let is_enough = |turn: usize| turn >= TURNS && hits.load(Ordering::Relaxed) >= HITS;
                    for turn in (0..).take_while(|turn| !is_enough(*turn) && std::time::Instant::now() < give_up) {
                        // Where there are fewer processors than threads, the readers need them, too.
                        if turn % 64 == 0 {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        let at = (turn * 13 + writer * 5) % users;
                        let id = i64::try_from(at).unwrap() + 1;
                        let token = Writer(u64::try_from(turn * 3 + writer).unwrap());
                        handle.block_on(cache.begin_write(&[user(id)], token)).unwrap();
                        let before = {
                            let mut row = db[at].0.lock().unwrap();
                            *row += 1;
                            *row - 1
                        };
                        handle.block_on(cache.apply_write(token, &[change(id, before, before + 1)])).unwrap();
                        db[at].1.fetch_max(before + 1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
    });
    assert!(hits.into_inner() >= FEWEST_HITS, "too few to prove anything");
}
