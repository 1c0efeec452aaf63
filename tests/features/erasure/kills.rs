//! A removal goes on wherever its node dies, and no table can be forgotten by it.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use headmark::db::Statement;
use headmark::features::removals::RemovalKind;

use serde_json::json;

use super::traces::assert_forgotten;
use super::world::{ERASED, Seed};
use super::{ARGS, erase, erased, node};
use crate::both_tiers;
use crate::support::Client;

/// Tables of which no row names a user, or only while it is being erased.
const NAME_NOBODY: [&str; 18] = [
    "cache_bypasses",
    "cache_guard",
    "chat_groups",
    "delivery_jobs",
    "erased_users",
    "event_head",
    "group_changes",
    "group_channels",
    "group_deliveries",
    "inbox_epoch",
    "lanes",
    "notices",
    "removals",
    "replica_beats",
    "unread_jobs",
    "unread_progress",
    "_sqlx_migrations",
    "sqlite_sequence",
];

both_tiers! {
    async fn an_erasure_goes_on_wherever_its_node_dies(world: World) {
        let seeded = node(&world).await;
        Seed { client: &seeded.client, all: true }.plant().await;
        let steps = seeded.app.state().contexts.removal.steps.of(RemovalKind::User);
        let steps: Vec<_> = steps.iter().map(|step| step.name).filter(|name| *name != "caches").collect();
        seeded.stop().await;
        for step in &steps {
            let failpoint = format!("removal::after_{step}=return");
            let mut doomed = world.process(&ARGS, &[("FAILPOINTS", &failpoint)]).await;
            // It may die before it answers.
            let _ = Client::try_send(doomed.client.request(reqwest::Method::DELETE, &format!("/v1/users/{ERASED}"))).await;
            assert!(!doomed.ended().await.success(), "it dies after a batch of {step}");
        }
        let survivor = node(&world).await;
        let location = erase(&survivor.client, ERASED).await;
        erased(&survivor.client, &location).await;
        assert_forgotten(&world, &survivor.client).await;
        survivor.stop().await;
    }

    /// Neither waits for what only the other one removes.
    async fn two_who_wrote_each_other_much_are_both_erased(world: World) {
        const MESSAGES: usize = 600;
        let node = node(&world).await;
        let client = &node.client;
        let send = async |n: usize| {
            let body = json!({"sender_id": 2, "client_id": format!("m{n}"), "content": "x"});
            client.post("/v1/users/1/inbox", &body).await.ok();
        };
        futures_util::stream::iter((0..MESSAGES).map(send)).buffer_unordered(50).collect::<Vec<()>>().await;
        let (first, second) = (erase(client, 1).await, erase(client, 2).await);
        erased(client, &first).await;
        erased(client, &second).await;
        node.stop().await;
    }

    async fn every_table_that_names_users_has_a_step(world: World) {
        static SCHEMA: Statement = Statement::each(
            "select name from sqlite_master where type = 'table' and name not like 'sqlite%'",
            "select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition",
            &[],
        );
        let node = node(&world).await;
        let tables: Vec<(String,)> = node.app.state().db.fetch(&SCHEMA, &[]).await.unwrap();
        let tables: BTreeSet<_> = tables.into_iter().map(|(table,)| table).filter(|table| !NAME_NOBODY.contains(&table.as_str())).collect();
        let steps = node.app.state().contexts.removal.steps.of(RemovalKind::User);
        let covered: BTreeSet<_> = steps.iter().flat_map(|step| step.tables).map(|table| (*table).to_owned()).collect();
        assert_eq!(tables, covered, "a table that names users needs a step of the erasure");
        let names: BTreeSet<_> = steps.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), steps.len(), "a step is found by its name");
        node.stop().await;
    }
}
