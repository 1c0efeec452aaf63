//! The faults, drawn by chance, one after the other with some quiet between them.

use std::time::{Duration, Instant};

use super::Run;
use super::fleet::Fleet;
use crate::support::{Dice, Tier};

/// A fault. To add one: a variant, its place in [`of`], and what it does in [`strike`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// SIGKILL of a node.
    Kill,
    /// SIGSTOP of a node for a while.
    Stall,
    /// SIGTERM of a node.
    Drain,
    /// Redis loses everything.
    FlushRedis,
    /// Redis answers nothing for a while.
    StallRedis,
    /// Redis ends and starts again, empty.
    KillRedis,
    /// Postgres stops hard, and recovers.
    CrashPostgres,
    /// Redis stalls, and a node dies meanwhile.
    StallRedisAndKill,
}

fn of(tier: Tier) -> &'static [Fault] {
    match tier {
        Tier::Embedded => &[Fault::Kill, Fault::Stall, Fault::Drain],
        Tier::Server => &[
            Fault::Kill,
            Fault::Kill,
            Fault::Stall,
            Fault::Stall,
            Fault::Drain,
            Fault::FlushRedis,
            Fault::StallRedis,
            Fault::StallRedis,
            Fault::KillRedis,
            Fault::CrashPostgres,
            Fault::StallRedisAndKill,
        ],
    }
}

/// Injects faults for so long: all, or only these.
pub async fn inject(fleet: &mut Fleet, run: &Run, how_long: Duration, seed: usize, only: &[Fault]) {
    let mut dice = Dice::new(seed + 5000);
    let of_tier = of(fleet.world.tier).iter().copied();
    let faults: Vec<_> = of_tier.filter(|fault| only.is_empty() || only.contains(fault)).collect();
    assert!(!faults.is_empty(), "none of these faults is possible on this tier");
    let end = Instant::now() + how_long;
    while Instant::now() < end {
        millis(&mut dice, 500, 3000).await;
        let fault = dice.pick(&faults);
        let node = dice.roll(fleet.processes.len());
        run.findings.say(&format!("{fault:?} (node {node})"));
        strike(fleet, run, fault, node, &mut dice).await;
    }
    // What the last fault left has time to heal before the end is looked at.
    tokio::time::sleep(Duration::from_secs(5)).await;
}

async fn strike(fleet: &mut Fleet, run: &Run, fault: Fault, node: usize, dice: &mut Dice) {
    match fault {
        Fault::Kill => fleet.kill(node).await,
        Fault::Drain => {
            let ended_well = fleet.drain(node).await;
            run.findings.check(ended_well, || format!("node {node} did not end with 0 on SIGTERM"));
        }
        Fault::Stall => {
            fleet.processes[node].stall().await;
            millis(dice, 1000, 8000).await;
            fleet.processes[node].go_on();
        }
        Fault::FlushRedis => {
            if let Some(redis) = &fleet.redis {
                redis.ask(&["FLUSHALL"]).await;
            }
        }
        Fault::StallRedis | Fault::StallRedisAndKill => {
            if let Some(redis) = &fleet.redis {
                redis.stall().await;
            }
            if matches!(fault, Fault::StallRedisAndKill) {
                millis(dice, 50, 1000).await;
                fleet.kill(node).await;
            }
            millis(dice, 200, 4000).await;
            if let Some(redis) = &fleet.redis {
                redis.go_on();
            }
        }
        Fault::KillRedis => {
            if let Some(redis) = &mut fleet.redis {
                redis.kill();
                millis(dice, 0, 3000).await;
                redis.restart().await;
            }
        }
        Fault::CrashPostgres => {
            if let Some(postgres) = &fleet.postgres {
                tokio::task::block_in_place(|| postgres.crash());
                millis(dice, 0, 3000).await;
                tokio::task::block_in_place(|| postgres.begin());
            }
        }
    }
}

async fn millis(dice: &mut Dice, from: usize, to: usize) {
    let pause_ms = from + dice.roll(to - from + 1);
    tokio::time::sleep(Duration::from_millis(u64::try_from(pause_ms).unwrap())).await;
}
