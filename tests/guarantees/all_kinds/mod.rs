//! All kinds of unread at once: random sequences of every step that changes one, interleaved with
//! restarts, evictions, deaths and a second node, against a model that keeps everything
//! ([`model`]).
//!
//! After each step every node must show the whole unread summary of every user as the model has it:
//! the node that took the step at once, the others to a client that brings the first one's tag.
//! Bodies and tags are those of a summary of which nothing was kept ([`kept`]). Every few steps, lists
//! of chats and receipts are compared, too ([`lists`]).
//! What a user who was not seen yet would be shown is asked by query, which has nobody seen. At the
//! end of a case the inboxes hold what was delivered, a recount finds no difference, and the
//! scrubbers, which look all the time, have found no drift.
//!
//! A service that reads events has the numbers of users with a push device in the end ([`push`]).
//!
//! To add a kind: what happens in it to [`model::Model`], its steps to [`steps::What`], and what
//! each does to the file of its sort.

mod alone;
mod chats;
mod compare;
mod fleet;
mod kept;
mod lists;
mod model;
mod notifications;
mod push;
mod run;
mod shared;
mod steps;

use proptest::prelude::*;
use tokio::sync::Mutex;

use self::fleet::Fleet;
use self::run::Run;
use self::steps::{Case, cases, opening};
use crate::support::Tier;

async fn run(fleet: &mut Fleet, case: &Case) {
    let mut run = Run::new(fleet, case.late);
    run.compare(0, "the beginning").await;
    run.begin_push().await;
    for step in opening().iter().chain(&case.steps) {
        run.step(step).await;
        run.compare(step.user, &format!("{step:?}")).await;
        run.compare_kept(&format!("{step:?}")).await;
        run.compare_chat_lists(step.user, &format!("{step:?}")).await;
        run.read_push().await;
    }
    run.settle_push().await;
    run.settle().await;
}

fn explore(fleet: impl Future<Output = Fleet>, (cases, max_shrink_iters): (u32, u32), strategy: impl Strategy<Value = Case>) {
    let config = ProptestConfig { cases, max_shrink_iters, failure_persistence: None, ..ProptestConfig::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fleet = Mutex::new(runtime.block_on(fleet));
    proptest!(config, |(case in strategy)| {
        runtime.block_on(async { run(&mut *fleet.lock().await, &case).await });
    });
}

/// Nodes in this process.
fn explore_here(tier: Tier) {
    let cases_of_tier = if tier == Tier::Server { 6 } else { 8 };
    explore(Fleet::here(tier), (cases_of_tier, 60), cases(50..100, None));
}

/// Processes. What fails when one dies at some moment may not fail again, so nothing is shrunk.
fn explore_apart(tier: Tier) {
    explore(Fleet::apart(tier), (2, 0), cases(40..60, Some(6)));
}

#[test]
fn every_sequence_of_all_kinds_matches_the_model_embedded() {
    explore_here(Tier::Embedded);
}

#[test]
fn every_sequence_of_all_kinds_matches_the_model_server() {
    explore_here(Tier::Server);
}

#[test]
fn every_sequence_of_all_kinds_matches_the_model_on_plain_tables() {
    explore(Fleet::on_plain_tables(), (3, 60), cases(50..100, None));
}

#[test]
fn kill_every_sequence_of_all_kinds_matches_the_model_embedded() {
    explore_apart(Tier::Embedded);
}

#[test]
fn kill_every_sequence_of_all_kinds_matches_the_model_server() {
    explore_apart(Tier::Server);
}
