//! Judges the database and Redis by what they tell of themselves.

use super::finding::Finding;
use crate::app::config::Config;
use crate::base::clock::ahead_of;
use crate::cache::{RedisConfig, RedisFacts, SentinelFacts};
use crate::db::DbFacts;

/// How far the clocks of a node and of the database may be apart. Times of messages come from nodes,
/// and ages from comparing them.
const MAX_SKEW_MS: i64 = 1000;

/// Connections of a node beside those for reads and lanes: the guard, the lanes' second ones.
const SPARE_CONNECTIONS: i64 = 4;

/// A share of Redis' memory from which on it is nearly full, in percent.
const NEARLY_FULL: u64 = 90;

/// What SQLite says of a file that it cannot read, as the driver shows it.
pub(in crate::app) const DAMAGED: [&str; 2] = ["(code: 11)", "(code: 26)"];

/// What to say of a database that cannot be opened.
pub(super) fn unopened(about: &'static str, why: String) -> Vec<Finding> {
    let fix = if why.contains("startup parameter") || why.contains("startup_parameters") || why.contains("a pooler") {
        "connect to Postgres itself: a pooler (pgbouncer) refuses the settings of a connection, and lanes need connections of their own"
    } else if about == "sqlite" && DAMAGED.iter().any(|code| why.contains(code)) {
        "stop the server and restore a backup"
    } else if about == "sqlite" {
        "start the server once, or name its folder with --data-dir"
    } else {
        "check DATABASE_URL, the server's address, its password and its firewall"
    };
    vec![Finding::failure(about, why, fix)]
}

/// Judges a database, which was asked between these two times.
pub(super) fn of_database(facts: &DbFacts, config: &Config, before_ms: i64, after_ms: i64) -> Vec<Finding> {
    let about = if facts.now_ms.is_some() { "postgres" } else { "sqlite" };
    let mut findings = vec![Finding::ok(about, format!("answers; version {}", facts.version))];
    findings.push(migrations(about, facts));
    if let Some(damage) = &facts.damage {
        findings.push(Finding::failure(about, format!("the file is damaged: {damage}"), "stop the server and restore a backup"));
    }
    let Some(now_ms) = facts.now_ms else { return findings };
    findings.extend(durability(facts));
    findings.push(connections(facts, config));
    findings.push(clock(now_ms, before_ms, after_ms));
    if facts.is_standby {
        findings.push(Finding::failure(about, "it is a standby, which takes no writes", "name the primary in DATABASE_URL"));
    }
    findings
}

/// What to say of the address in this variable, at which no certificate is looked at.
pub(super) fn unverified(variable: &'static str) -> Finding {
    let about = if variable == "DATABASE_URL" { "postgres" } else { "replica" };
    let what = format!("{variable} may be connected to in clear text, or at another server than is meant");
    Finding::warning(about, what, "add sslmode=verify-full to the URL, and sslrootcert=<file> where the CA is your own")
}

/// Judges a replica.
pub(super) fn of_replica(facts: &DbFacts) -> Finding {
    if !facts.is_standby {
        let fix = "name a streaming replica of DATABASE_URL in HEADMARK_REPLICA_URL, or unset it";
        return Finding::failure("replica", "it is no standby, so it does not follow the database", fix);
    }
    Finding::ok("replica", format!("answers; version {}", facts.version))
}

/// What to say of a replica that cannot be asked.
pub(super) fn no_replica(why: &str) -> Finding {
    let fix = "check HEADMARK_REPLICA_URL, the server's address, its password and its firewall; until then its reads go to DATABASE_URL";
    Finding::failure("replica", format!("cannot look at it: {why}"), fix)
}

fn migrations(about: &'static str, facts: &DbFacts) -> Finding {
    let DbFacts { migrated, known, .. } = *facts;
    if migrated < known {
        let what = format!("its schema is at migration {migrated}, this program knows {known}");
        Finding::warning(about, what, "start a server of this version, or run `headmark migrate`")
    } else if migrated > known {
        let what = format!("its schema is at migration {migrated}, newer than this program, which knows {known}");
        Finding::warning(about, what, "use the version that the servers have")
    } else {
        Finding::ok(about, format!("its schema is up to date (migration {migrated})"))
    }
}

/// The settings without which acknowledged writes can be lost, or tables only grow.
fn durability(facts: &DbFacts) -> Vec<Finding> {
    let lost = [
        ("fsync", "a crash of the machine can destroy the database"),
        ("full_page_writes", "a crash of the machine can destroy pages"),
        ("synchronous_commit", "a crash loses writes that were acknowledged"),
        ("autovacuum", "rows that were updated are never cleared up, so tables only grow"),
    ];
    let is_off = |name: &str| facts.settings.get(name).is_some_and(|value| value == "off");
    let off = lost.into_iter().filter(|(name, _)| is_off(name));
    let mut findings: Vec<_> = off
        .map(|(name, why)| {
            let fix = format!("alter system set {name} = on; select pg_reload_conf();");
            Finding::failure("postgres", format!("{name} is off: {why}"), fix)
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::ok("postgres", "commits are durable, and autovacuum is on"));
    }
    findings
}

fn connections(facts: &DbFacts, config: &Config) -> Finding {
    let number = |name: &str| facts.settings.get(name).and_then(|value| value.parse::<i64>().ok());
    let needed = i64::from(config.stores.db_connections) + 2 * i64::from(config.lanes.lanes) + SPARE_CONNECTIONS;
    let Some(most) = number("max_connections") else {
        return Finding::warning("postgres", "max_connections is not known", "see to it that all nodes together stay below it");
    };
    let what = format!("{} of {most} connections are in use; a node needs up to {needed}", facts.connections);
    if needed > most {
        Finding::failure("postgres", what, format!("alter system set max_connections = {}; then restart Postgres", 2 * needed))
    } else if facts.connections + needed > most {
        Finding::warning("postgres", what, "raise max_connections, or lower HEADMARK_DB_CONNECTIONS on the nodes")
    } else {
        Finding::ok("postgres", what)
    }
}

fn clock(now_ms: i64, before_ms: i64, after_ms: i64) -> Finding {
    let skew = ahead_of(now_ms, before_ms, after_ms).abs();
    if skew > MAX_SKEW_MS {
        let what = format!("the clocks of this machine and of the database are {skew} ms apart");
        Finding::warning("postgres", what, "run NTP (chrony, systemd-timesyncd) on both")
    } else {
        Finding::ok("postgres", "its clock agrees with this machine's")
    }
}

/// Judges Redis.
pub(super) fn of_redis(looked: Result<RedisFacts, String>, redis: &RedisConfig) -> Vec<Finding> {
    let facts = match looked {
        Ok(facts) => facts,
        Err(why) if redis.sentinel.is_some() => {
            let fix = "check REDIS_SENTINEL, and that REDIS_URL lists the Sentinels (port 26379) with the master's password; without Redis polls read the database";
            return vec![Finding::failure("redis", format!("cannot use it: {why}"), fix)];
        }
        Err(why) => {
            let fix = "check REDIS_URL, the server's address, its password and its firewall; without Redis polls read the database";
            return vec![Finding::failure("redis", format!("cannot use it: {why}"), fix)];
        }
    };
    let mut findings = vec![version(&facts)];
    if !facts.takes_writes {
        findings.push(Finding::failure(
            "redis",
            "it takes no writes",
            "name the master in REDIS_URL; a replica takes none, nor does a full Redis",
        ));
    }
    match (facts.is("cluster_enabled", "1"), redis.cluster) {
        (true, false) => {
            findings.push(Finding::failure("redis", "it is a node of a cluster", "set REDIS_CLUSTER=true on all nodes"));
        }
        (false, true) => {
            findings.push(Finding::failure("redis", "REDIS_CLUSTER is set, but it is no cluster", "unset REDIS_CLUSTER"));
        }
        _ => {}
    }
    findings.extend(sentinels(&facts.sentinels));
    findings.push(eviction(&facts));
    if facts.is("aof_enabled", "1") {
        let fix = "config set appendonly no (unless others use this Redis)";
        findings.push(Finding::warning("redis", "it writes an append-only file, which a cache does not need", fix));
    }
    findings
}

/// Judges the Sentinels, if there are any.
fn sentinels(all: &[SentinelFacts]) -> Vec<Finding> {
    let silent = all.iter().filter_map(|sentinel| sentinel.named.as_ref().err().map(|why| (&sentinel.address, why)));
    let mut findings: Vec<_> = silent
        .map(|(address, why)| {
            let fix = "see to it that it runs and watches the master; a failover needs most of the Sentinels";
            Finding::warning("redis", format!("the Sentinel at {address} names no master: {why}"), fix)
        })
        .collect();
    let mut named: Vec<_> = all.iter().filter_map(|sentinel| sentinel.named.as_ref().ok()).collect();
    named.sort_unstable();
    named.dedup();
    if let [master] = named.as_slice() {
        findings.push(Finding::ok("redis", format!("the Sentinels name {master} as the master")));
    } else if !named.is_empty() {
        let named = named.into_iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
        findings.push(Finding::warning(
            "redis",
            format!("the Sentinels disagree: {named}"),
            "wait for the end of a failover, and look at their logs",
        ));
    }
    if let [_] = all {
        let what = "REDIS_URL lists one Sentinel, without which no node finds the master";
        findings.push(Finding::warning("redis", what, "list all of them, separated by commas"));
    }
    findings
}

fn version(facts: &RedisFacts) -> Finding {
    let version = facts.info.get("redis_version").map_or("unknown", String::as_str);
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(0..7) => Finding::failure("redis", format!("version {version} is too old"), "use Redis 7 or later"),
        _ => Finding::ok("redis", format!("answers in {} µs; version {version}", facts.answer.as_micros())),
    }
}

fn eviction(facts: &RedisFacts) -> Finding {
    let number = |name: &str| facts.info.get(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    let (used, most) = (number("used_memory"), number("maxmemory"));
    let policy = facts.info.get("maxmemory_policy").map_or("unknown", String::as_str);
    if most == 0 {
        let fix = "config set maxmemory 2gb; config set maxmemory-policy volatile-ttl";
        return Finding::warning("redis", "maxmemory is not set, so it can take all memory of its machine", fix);
    }
    if !["volatile-ttl", "noeviction"].contains(&policy) {
        let what = format!("maxmemory-policy is {policy}, which may evict the stream of events");
        return Finding::warning("redis", what, "config set maxmemory-policy volatile-ttl");
    }
    let what = format!("uses {used} of {most} bytes, and evicts by {policy}");
    let is_full = used.saturating_mul(100) >= most.saturating_mul(NEARLY_FULL);
    if is_full { Finding::warning("redis", what, "raise maxmemory, or lower HEADMARK_CACHE_TTL_S") } else { Finding::ok("redis", what) }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::app::cli::Cli;
    use crate::app::doctor::finding::State;

    fn config() -> Config {
        Cli::try_parse_from(["headmark"]).unwrap().into_config().unwrap()
    }

    fn map(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn postgres(settings: &[(&str, &str)]) -> DbFacts {
        let usual =
            [("fsync", "on"), ("full_page_writes", "on"), ("synchronous_commit", "on"), ("autovacuum", "on"), ("max_connections", "100")];
        let settings = map(&[&usual[..], settings].concat());
        DbFacts { version: "16.1".to_owned(), settings, migrated: 9, known: 9, now_ms: Some(5000), connections: 10, ..DbFacts::default() }
    }

    fn worst(findings: &[Finding]) -> State {
        findings.iter().map(|finding| finding.state).max().unwrap()
    }

    fn judged(facts: &DbFacts) -> State {
        worst(&of_database(facts, &config(), 4990, 5010))
    }

    #[test]
    fn what_loses_writes_is_a_failure_and_what_may_do_harm_a_warning() {
        assert_eq!(judged(&postgres(&[])), State::Ok);
        for off in ["fsync", "full_page_writes", "synchronous_commit", "autovacuum"] {
            let findings = of_database(&postgres(&[(off, "off")]), &config(), 4990, 5010);
            let finding = findings.iter().find(|finding| finding.state == State::Failure).unwrap();
            assert!(finding.what.starts_with(off) && finding.fix.as_ref().unwrap().contains(&format!("set {off} = on")), "{finding}");
        }
        assert_eq!(judged(&postgres(&[("max_connections", "20")])), State::Failure);
        assert_eq!(judged(&postgres(&[("max_connections", "30")])), State::Warning, "with those that others have");
        assert_eq!(judged(&DbFacts { is_standby: true, ..postgres(&[]) }), State::Failure);
        assert_eq!(judged(&DbFacts { migrated: 8, ..postgres(&[]) }), State::Warning);
        assert_eq!(judged(&DbFacts { migrated: 10, ..postgres(&[]) }), State::Warning);
        assert_eq!(judged(&DbFacts { now_ms: Some(7000), ..postgres(&[]) }), State::Warning);
        assert_eq!(judged(&DbFacts { now_ms: Some(3000), ..postgres(&[]) }), State::Warning);
        assert_eq!(judged(&DbFacts { now_ms: None, damage: Some("page 3".to_owned()), ..postgres(&[]) }), State::Failure);
    }

    #[test]
    fn a_replica_is_to_be_a_standby() {
        assert_eq!(of_replica(&postgres(&[])).state, State::Failure);
        assert_eq!(of_replica(&DbFacts { is_standby: true, ..postgres(&[]) }).state, State::Ok);
        assert_eq!(no_replica("refused").state, State::Failure);
    }

    #[test]
    fn an_address_without_a_look_at_the_certificate_is_named() {
        let [database, replica] = ["DATABASE_URL", "HEADMARK_REPLICA_URL"].map(unverified);
        assert_eq!((database.state, database.about, replica.about), (State::Warning, "postgres", "replica"));
        assert!(replica.what.starts_with("HEADMARK_REPLICA_URL may") && replica.fix.unwrap().contains("sslmode=verify-full"));
    }

    #[test]
    fn a_file_that_is_no_database_is_not_mended_by_a_start() {
        let fix = |why: &str| unopened("sqlite", why.to_owned())[0].fix.clone().unwrap();
        assert!(fix("cannot look at the database: error returned from database: (code: 26) file is not a database").contains("restore"));
        assert!(fix("there is no ./headmark-data/headmark.sqlite").contains("start the server once"));
    }

    #[test]
    fn a_pooler_is_named_as_what_it_is() {
        let why = "cannot connect to Postgres: unsupported startup parameter: statement_timeout";
        assert!(unopened("postgres", why.to_owned())[0].fix.as_ref().unwrap().contains("pgbouncer"));
        assert!(!unopened("postgres", "connection refused".to_owned())[0].fix.as_ref().unwrap().contains("pgbouncer"));
    }

    fn redis(info: &[(&str, &str)]) -> RedisFacts {
        let usual = [("redis_version", "7.2.4"), ("maxmemory", "1000"), ("maxmemory_policy", "volatile-ttl"), ("used_memory", "100")];
        RedisFacts { info: map(&[&usual[..], info].concat()), takes_writes: true, ..RedisFacts::default() }
    }

    #[test]
    fn redis_is_to_be_a_bounded_cache_that_takes_writes() {
        let single = RedisConfig::new("redis://127.0.0.1".to_owned().into());
        let cluster = RedisConfig { cluster: true, ..single.clone() };
        let judged = |facts: RedisFacts| worst(&of_redis(Ok(facts), &single));
        assert_eq!(judged(redis(&[])), State::Ok);
        assert_eq!(judged(redis(&[("maxmemory_policy", "noeviction")])), State::Ok);
        assert_eq!(judged(redis(&[("redis_version", "6.2.0")])), State::Failure);
        assert_eq!(judged(RedisFacts { takes_writes: false, ..redis(&[]) }), State::Failure);
        assert_eq!(judged(redis(&[("cluster_enabled", "1")])), State::Failure);
        assert_eq!(worst(&of_redis(Ok(redis(&[])), &cluster)), State::Failure);
        assert_eq!(worst(&of_redis(Ok(redis(&[("cluster_enabled", "1")])), &cluster)), State::Ok);
        for (name, value) in [("maxmemory", "0"), ("maxmemory_policy", "allkeys-lru"), ("used_memory", "950"), ("aof_enabled", "1")] {
            assert_eq!(judged(redis(&[(name, value)])), State::Warning, "{name}");
        }
        assert_eq!(worst(&of_redis(Err("refused".to_owned()), &single)), State::Failure);
    }

    #[test]
    fn sentinels_are_to_agree_and_to_be_several() {
        let facts = |at: u16, named: Result<&str, &str>| SentinelFacts {
            address: format!("10.0.0.{at}:26379"),
            named: named.map(str::to_owned).map_err(str::to_owned),
        };
        let (one, other) = (Ok("10.0.0.1:6379"), Ok("10.0.0.2:6379"));
        assert!(sentinels(&[]).is_empty());
        assert_eq!(worst(&sentinels(&[facts(1, one), facts(2, one)])), State::Ok);
        for doubtful in [vec![facts(1, one)], vec![facts(1, one), facts(2, other)], vec![facts(1, one), facts(2, Err("no answer"))]] {
            assert_eq!(worst(&sentinels(&doubtful)), State::Warning, "{doubtful:?}");
        }
        let sentinel = Some(crate::cache::SentinelConfig { master: "main".to_owned(), username: None, password: None });
        let redis = RedisConfig { sentinel, ..RedisConfig::new("redis://127.0.0.1".to_owned().into()) };
        assert!(of_redis(Err("refused".to_owned()), &redis)[0].fix.as_ref().unwrap().contains("REDIS_SENTINEL"));
    }
}
