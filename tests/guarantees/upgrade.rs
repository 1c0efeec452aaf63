//! Nodes of this version serve while a newer one migrates the database, and one by one they are
//! replaced. No request fails, nothing acknowledged is lost, and a node of this version starts on the
//! newer schema.

use clap::Parser as _;
use headmark::app::cli::Cli;
use headmark::db::Db;
use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::storm::Storm;
use super::truth::Truth;
use crate::both_tiers;
use crate::support::{Node, Nodes, Tier, World};

/// What a later version may do: tables change, one is added, and rows that are there are written.
const LATER: [&str; 5] = [
    "alter table users add column later_count bigint not null default 0",
    "alter table following add column later_note text",
    "create table later_things (user_id bigint not null, thing_id bigint not null, primary key (user_id, thing_id))",
    "insert into later_things select user_id, 1 from users",
    "update users set later_count = 1 where revision > 0",
];

/// An index of it, which is made beside writes on Postgres.
const LATER_INDEX: [&str; 2] = [
    "create index if not exists later_users_day on users (seen_day)",
    "-- no-transaction\ncreate index concurrently if not exists later_users_day on users (seen_day)",
];

fn later(tier: Tier) -> Migrator {
    let index = LATER_INDEX[usize::from(tier == Tier::Server)];
    let all = LATER.into_iter().chain([index]).zip(9101..);
    let migration = |(sql, version): (&'static str, i64)| {
        Migration::new(version, "later".into(), MigrationType::Simple, sql.into_sql_str(), sql.starts_with("-- no-transaction"))
    };
    Migrator::with_migrations(all.map(migration).collect())
}

/// The database of a world, as the newer version opens it.
async fn migrate(world: &World) {
    let config = Cli::try_parse_from(world.args()).unwrap().into_config().unwrap();
    let (db, _lock) = Db::open(&config.stores).await.unwrap();
    db.migrate_with(later(world.tier)).await.unwrap();
    db.close().await;
}

/// A node that serves those who have idle connections to it, before it ends.
async fn node(world: &World) -> Node {
    let args: Vec<String> = world.args().into_iter().map(|arg| if arg == "0" { "3000".to_owned() } else { arg }).collect();
    let config = Cli::try_parse_from(args).unwrap().into_config().unwrap();
    Node::start(config, headmark::base::clock::Clock::System).await.unwrap()
}

both_tiers! {
    async fn nodes_serve_while_a_newer_version_migrates_and_takes_over(world: World) {
        let mut storm = Storm::new(Nodes::default());
        storm.tags = true;
        match world.tier {
            Tier::Server => rolling(&world, &storm).await,
            Tier::Embedded => in_turn(&world, &storm).await,
        }
    }
}

/// All the while under load, of which no request may fail.
async fn rolling(world: &World, storm: &Storm) {
    let old = [node(world).await, node(world).await];
    for (at, node) in old.iter().enumerate() {
        storm.nodes.set(at, Some(node.client.clone()));
    }
    let mut new = Vec::new();
    let upgrade = async {
        storm.more(100, 20).await;
        migrate(world).await;
        storm.more(100, 20).await;
        for (at, old) in old.into_iter().enumerate() {
            let node = node(world).await;
            storm.nodes.set(at, Some(node.client.clone()));
            storm.more(20, 20).await;
            old.stop().await;
            new.push(node);
        }
        storm.more(50, 20).await;
    };
    storm.rage_during(upgrade).await;
    storm.settle(&mut Truth::of(world).await).await;
    Node::stop_all(new).await;
}

/// The folder has one node at a time.
async fn in_turn(world: &World, storm: &Storm) {
    for round in 0..2 {
        let node = node(world).await;
        storm.nodes.set(0, Some(node.client.clone()));
        storm.rage(std::future::pending()).await;
        storm.settle(&mut Truth::of(world).await).await;
        node.stop().await;
        if round == 0 {
            migrate(world).await;
        }
    }
}
