//! Copies of entries under a read lease: that no node shows one after the writer has answered, that
//! they save reads, and what happens where Redis does not tell of changes.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use rand::RngExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::outage::prefix_of;
use super::servers::Server;
use super::*;

const USER: i64 = 7;

/// Stands between a node and Redis, and holds back what Redis says over connections that are made
/// from some time on.
struct Proxy {
    url: String,
    /// Whether connections that are made now can be held back.
    slows: Arc<AtomicBool>,
    held: watch::Sender<bool>,
}

impl Proxy {
    async fn start(server: &Server) -> Self {
        let redis = server.url().strip_prefix("redis://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let (held, holds) = watch::channel(false);
        let slows = Arc::new(AtomicBool::new(false));
        let slow = Arc::clone(&slows);
        tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                let redis = TcpStream::connect(&redis).await.unwrap();
                let holds = slow.load(Ordering::Relaxed).then(|| holds.clone());
                tokio::spawn(pass_on(node, redis, holds));
            }
        });
        Self { url, slows, held }
    }

    /// Holds back what Redis says from now on.
    fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }
}

async fn pass_on(mut node: TcpStream, mut redis: TcpStream, holds: Option<watch::Receiver<bool>>) {
    let ((mut from_node, mut to_node), (mut from_redis, mut to_redis)) = (node.split(), redis.split());
    let down = async {
        let mut bytes = vec![0; 4096];
        while let Ok(count @ 1..) = from_redis.read(&mut bytes).await {
            if let Some(mut holds) = holds.clone() {
                holds.wait_for(|held| !held).await.unwrap();
            }
            if to_node.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    let up = tokio::io::copy(&mut from_node, &mut to_redis);
    tokio::select! { () = down => {}, _ = up => {} }
}

/// Two nodes of one service; what Redis says to the polls of the second can be held back.
async fn two_nodes(server: &Server) -> (Cache, Arc<Cache>, Proxy) {
    let (config, proxy) = (config(), Proxy::start(server).await);
    let (writer, reader) = (connect(&config, &server.url()).await, connect(&config, &proxy.url).await);
    hears_wakes(&reader, &writer).await;
    // The connection for polls is made with the first of them.
    proxy.slows.store(true, Ordering::Relaxed);
    (writer, Arc::new(reader), proxy)
}

/// Waits until wake-ups come from one node to the other, so that all connections but one are made.
async fn hears_wakes(reader: &Cache, writer: &Cache) {
    let listener = tokio::sync::Mutex::new(reader.listen(user(1_000_000)));
    eventually("wakes arrive", async || {
        writer.apply_write(Writer(9), &[change(1_000_000, 1, 2)]).await.unwrap();
        tokio::time::timeout(Duration::from_millis(50), listener.lock().await.woken()).await.is_ok()
    })
    .await;
}

/// Reads, and fills where there is nothing.
pub(super) async fn read(cache: &Cache, revision: Revision) -> Revision {
    match cache.get(user(USER)).await.unwrap() {
        Lookup::Hit(entry) => entry.revision,
        Lookup::Miss { fill, .. } => {
            if let Some(token) = fill {
                cache.fill(user(USER), token, &entry(revision)).await.unwrap();
            }
            revision
        }
    }
}

/// Changes the user to this revision while what Redis says of it is held back.
async fn write_unheard(cache: &Cache, proxy: &Proxy, revision: Revision) {
    proxy.hold(true);
    let token = Writer(u64::try_from(revision).unwrap());
    cache.begin_write(&[user(USER)], token).await.unwrap();
    cache.apply_write(token, &[change(USER, revision - 1, revision)]).await.unwrap();
}

/// Begins to read, and lets through what was held back.
async fn read_and_hear(cache: &Arc<Cache>, proxy: &Proxy, revision: Revision) -> Revision {
    let cache = Arc::clone(cache);
    let found = tokio::spawn(async move { read(&cache, revision).await });
    tokio::task::yield_now().await;
    proxy.hold(false);
    found.await.unwrap()
}

fn up_to(micros: u64) -> Duration {
    Duration::from_micros(rand::rng().random_range(0..micros))
}

pub(super) async fn is_leased(cache: &Cache) -> bool {
    let Cache::Redis(redis) = cache else { unreachable!() };
    redis.is_leased().await
}

/// How many entries Redis was asked for.
pub(super) async fn entries_asked_for(raw: &mut Raw) -> i64 {
    let stats: String = raw.ask(&["INFO", "commandstats"]).await;
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_hgetall:calls=")?.split(',').next()?.parse().ok());
    calls.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_poll_shows_a_copy_after_the_writer_has_answered() {
    const CHANGES: i64 = 400;
    let server = Server::start().await;
    let (writer, reader, proxy) = two_nodes(&server).await;
    let mut raw = Raw::connect(&server.url()).await;
    let (committed, answered) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let shown = Arc::new(AtomicUsize::new(0));
    let polls = [(); 4].map(|()| {
        let (reader, committed, answered, shown) = (Arc::clone(&reader), Arc::clone(&committed), Arc::clone(&answered), Arc::clone(&shown));
        tokio::spawn(async move {
            while answered.load(Ordering::SeqCst) < CHANGES {
                let before = answered.load(Ordering::SeqCst);
                let found = match reader.get(user(USER)).await.unwrap() {
                    Lookup::Hit(entry) => {
                        shown.fetch_add(1, Ordering::Relaxed);
                        entry.revision
                    }
                    Lookup::Miss { fill, .. } => {
                        let revision = committed.load(Ordering::SeqCst);
                        if let Some(token) = fill {
                            reader.fill(user(USER), token, &entry(revision)).await.unwrap();
                        }
                        revision
                    }
                };
                assert!(found >= before, "{found} was shown after {before} had been answered");
                tokio::time::sleep(up_to(400)).await;
            }
        })
    });
    // What Redis says is late, by more than a lease sometimes.
    let late = tokio::spawn(async move {
        loop {
            for held in [true, false] {
                proxy.hold(held);
                tokio::time::sleep(up_to(12_000)).await;
            }
        }
    });
    // Its life is short, and made longer again and again.
    let key = format!("{}{{u:{USER}}}", prefix_of(&reader));
    let lived_on = Arc::new(AtomicUsize::new(0));
    let lives_on = tokio::spawn({
        let (reader, mut raw, extended) = (Arc::clone(&reader), Raw::connect(&server.url()).await, Arc::clone(&lived_on));
        async move {
            loop {
                raw.ask::<i64>(&["PEXPIRE", &key, "20000"]).await;
                tokio::time::sleep(up_to(20_000)).await;
                extended.fetch_add(reader.extend(0, &[user(USER)]).await.unwrap_or(0), Ordering::Relaxed);
                tokio::time::sleep(up_to(20_000)).await;
            }
        }
    });
    let mut waits = 0;
    for revision in 1..=CHANGES {
        let token = Writer(u64::try_from(revision).unwrap());
        let shown_until = writer.begin_write(&[user(USER)], token).await.unwrap().shown_until;
        committed.store(revision, Ordering::SeqCst);
        writer.apply_write(token, &[change(USER, revision - 1, revision)]).await.unwrap();
        if let Some(shown_until) = shown_until {
            waits += 1;
            tokio::time::sleep_until(shown_until).await;
        }
        answered.store(revision, Ordering::SeqCst);
        tokio::time::sleep(up_to(8_000)).await;
    }
    for poll in polls {
        poll.await.unwrap();
    }
    late.abort();
    lives_on.abort();
    assert!(lived_on.load(Ordering::Relaxed) > 0, "no entry lived on");
    let (shown, asked) = (shown.load(Ordering::Relaxed), entries_asked_for(&mut raw).await);
    assert!(waits > CHANGES / 2, "the other node held its lease {waits} times");
    assert!(shown > 1000 && usize::try_from(asked).unwrap() < shown, "it showed {shown} entries, and asked for {asked}");
}

#[tokio::test]
async fn polls_of_one_user_need_redis_once() {
    const POLLS: i64 = 5000;
    let server = Server::start().await;
    let cache = connect(&config(), &server.url()).await;
    let mut raw = Raw::connect(&server.url()).await;
    read(&cache, 1).await;
    eventually("the node has a lease", async || is_leased(&cache).await).await;
    let before = entries_asked_for(&mut raw).await;
    for _ in 0..POLLS {
        assert_eq!(hit_of(&cache.get(user(USER)).await.unwrap()), Some(&entry(1)));
    }
    let many: Vec<_> = cache.get_many(&[user(USER); 3]).await.unwrap();
    assert!(many.iter().all(|lookup| hit_of(lookup) == Some(&entry(1))));
    let asked = entries_asked_for(&mut raw).await - before;
    assert!(asked < POLLS / 10, "{asked}");
}

#[tokio::test]
async fn a_writer_waits_for_other_nodes_that_are_polled() {
    let server = Server::start().await;
    let config = CacheConfig { lease: Duration::from_millis(300), ..config() };
    let (one, other) = (connect(&config, &server.url()).await, connect(&config, &server.url()).await);
    let begin = async |cache: &Cache| cache.begin_write(&[user(1)], Writer(1)).await.unwrap().shown_until;
    assert!(begin(&one).await.is_some(), "nobody knows who is polled: there is no list of nodes");
    eventually("any lease of then is over", async || begin(&one).await.is_none()).await;
    read(&one, 1).await;
    eventually("it has a lease", async || begin(&other).await.is_some()).await;
    let begun = tokio::time::Instant::now();
    assert!(begin(&other).await.is_some_and(|until| until >= begun + READ_LEASE), "from when the begin is done");
    assert_eq!(begin(&one).await, None, "it does not wait for itself");
    eventually("a node that is not polled any more is forgotten", async || begin(&other).await.is_none()).await;

    read(&one, 1).await;
    eventually("it has a lease", async || begin(&other).await.is_some()).await;
    let mut raw = Raw::connect(&server.url()).await;
    for _ in 0..20 {
        let _: i64 = raw.ask(&["DEL", &format!("{}readers", config.prefix)]).await;
        assert!(begin(&other).await.is_some(), "the list of nodes was lost");
    }
}

#[tokio::test]
async fn a_writer_whose_mark_was_lost_hears_of_it() {
    let server = Server::start().await;
    let config = config();
    let cache = connect(&config, &server.url()).await;
    let mut raw = Raw::connect(&server.url()).await;
    for has_entries in [false, true] {
        if has_entries {
            for id in [1, 2] {
                assert!(cache.get(user(id)).await.is_ok(), "a reader is given a token");
            }
        }
        let begun = cache.begin_write(&[user(1), user(2)], Writer(1)).await.unwrap();
        assert_eq!(begun.absent_users.len(), if has_entries { 0 } else { 2 });
        assert!(evict(&mut raw, &format!("{}{{u:2}}", config.prefix)).await);
        assert!(cache.apply_write(Writer(1), &[change(1, 0, 1)]).await.unwrap());
        assert!(!cache.apply_write(Writer(1), &[change(2, 0, 1)]).await.unwrap(), "others may have filled in what was there before");
    }
}

#[tokio::test]
async fn a_poll_that_is_woken_does_not_find_its_old_copy() {
    let server = Server::start().await;
    let (writer, reader, proxy) = two_nodes(&server).await;
    let mut listener = reader.listen(user(USER));
    listener.ready().await;
    read(&reader, 1).await;
    for revision in 2..40 {
        assert_eq!(read(&reader, revision - 1).await, revision - 1);
        write_unheard(&writer, &proxy, revision).await;
        listener.woken().await;
        assert_eq!(read_and_hear(&reader, &proxy, revision).await, revision);
    }
}

#[tokio::test]
async fn what_goes_from_redis_goes_from_the_nodes() {
    let server = Server::start().await;
    let config = config();
    let cache = connect(&config, &server.url()).await;
    let mut raw = Raw::connect(&server.url()).await;
    let key = format!("{}{{u:{USER}}}", config.prefix);
    let ways: [&[&str]; 3] = [&["DEL", &key], &["FLUSHALL"], &["PEXPIRE", &key, "1"]];
    for way in ways {
        read(&cache, 1).await;
        assert_eq!(hit_of(&cache.get(user(USER)).await.unwrap()), Some(&entry(1)));
        let _: deadpool_redis::redis::Value = raw.ask(way).await;
        eventually("it is read anew", async || token_of(&cache.get(user(USER)).await.unwrap()).is_some()).await;
    }
}

#[tokio::test]
async fn a_poll_that_begins_to_wait_does_not_find_its_old_copy() {
    let server = Server::start().await;
    let (writer, reader, proxy) = two_nodes(&server).await;
    for revision in 1..40 {
        let before = revision - 1;
        assert_eq!(read(&reader, before).await, before);
        write_unheard(&writer, &proxy, revision).await;
        let found = tokio::spawn({
            let reader = Arc::clone(&reader);
            async move {
                let mut listener = reader.listen(user(USER));
                listener.ready().await;
                read(&reader, revision).await
            }
        });
        tokio::time::sleep(Duration::from_millis(2)).await;
        proxy.hold(false);
        assert_eq!(found.await.unwrap(), revision, "nobody will wake it");
    }
}

#[tokio::test]
async fn a_copy_ends_with_its_connection() {
    let server = Server::start().await;
    let (writer, reader, proxy) = two_nodes(&server).await;
    read(&reader, 1).await;
    assert_eq!(read(&reader, 1).await, 1);
    let mut raw = Raw::connect(&server.url()).await;
    // Nobody is told of the change: it comes while there is no connection.
    proxy.hold(true);
    let _: i64 = raw.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
    eventually("the writer has a connection again", async || writer.begin_write(&[user(USER)], Writer(1)).await.is_ok()).await;
    writer.apply_write(Writer(1), &[change(USER, 1, 2)]).await.unwrap();
    tokio::time::sleep(READ_LEASE).await;
    proxy.hold(false);
    let found = std::cell::RefCell::new(None);
    eventually("the reader has a connection again", async || {
        let answer = reader.get(user(USER)).await.ok();
        let is_there = answer.is_some();
        found.replace(answer);
        is_there
    })
    .await;
    assert_eq!(hit_of(&found.take().unwrap()), Some(&entry(2)), "the first answer");
}

#[tokio::test]
async fn a_writer_does_not_find_its_own_old_copy() {
    let server = Server::start().await;
    let (_other, node, proxy) = two_nodes(&server).await;
    read(&node, 1).await;
    for revision in 2..40 {
        assert_eq!(read(&node, revision - 1).await, revision - 1);
        write_unheard(&node, &proxy, revision).await;
        assert_eq!(read_and_hear(&node, &proxy, revision).await, revision);
    }
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_given_up() {
    let server = Server::start().await;
    let proxy = Proxy::start(&server).await;
    let redis = RedisConfig { timeout: Duration::from_millis(500), ..redis_at(&proxy.url) };
    let cache = Cache::redis(config(), redis).await.unwrap();
    hears_wakes(&cache, &connect(&CacheConfig { prefix: prefix_of(&cache), ..CacheConfig::default() }, &server.url()).await).await;
    proxy.slows.store(true, Ordering::Relaxed);
    eventually("it has a connection for polls", async || cache.get(user(USER)).await.is_ok()).await;
    proxy.hold(true);
    proxy.slows.store(false, Ordering::Relaxed);
    assert!(cache.get(user(USER)).await.is_err());
    // Scripts go on, so that the breaker stays closed.
    eventually("polls have another connection", async || {
        let _written = cache.begin_write(&[user(2)], Writer(1)).await;
        cache.get(user(USER)).await.is_ok()
    })
    .await;
}

/// A node that may not do something with Redis, beside one that may.
async fn every_poll_asks_where(denied: &[&str]) {
    let server = Server::start().await;
    let (config, mut raw) = (config(), Raw::connect(&server.url()).await);
    let keys = ["{*", "writers"].map(|keys| format!("~{}{keys}", config.prefix));
    let allowed = ["ACL", "SETUSER", "polls", "on", ">secret", "&*", "+@all", &keys[0], &keys[1]];
    let _: String = raw.ask(&[&allowed, denied].concat()).await;
    let url = server.url().replace("redis://", "redis://polls:secret@");
    let (reader, writer) = (connect(&config, &url).await, connect(&config, &server.url()).await);
    read(&reader, 1).await;
    eventually("any lease of then is over", async || writer.begin_write(&[user(2)], Writer(1)).await.unwrap().shown_until.is_none()).await;
    for revision in 2..50 {
        assert_eq!(writer.begin_write(&[user(USER)], Writer(1)).await.unwrap().shown_until, None, "it holds no lease");
        writer.apply_write(Writer(1), &[change(USER, revision - 1, revision)]).await.unwrap();
        assert_eq!(hit_of(&reader.get(user(USER)).await.unwrap()), Some(&entry(revision)));
    }
}

#[tokio::test]
async fn where_redis_does_not_tell_of_changes_every_poll_asks() {
    every_poll_asks_where(&["~*", "-client|tracking"]).await;
}

#[tokio::test]
async fn where_redis_refuses_a_lease_every_poll_asks() {
    every_poll_asks_where(&[]).await;
}
