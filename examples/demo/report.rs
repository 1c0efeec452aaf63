//! What the person who runs the demo reads.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::check::Checked;
use crate::client::Client;
use crate::data::Log;
use crate::replay::{Stage, Tally};

const LICENCE: &str = "\
Private messages of an online community at UC Irvine, 2004, ids and times only. KONECT, network opsahl-ucsocial (CollegeMsg);
T. Opsahl, P. Panzarasa, \"Clustering in Weighted Networks\", Social Networks 31(2), 2009. CC BY-SA 2.0 Germany: share alike.
Columns reordered, rows sorted by time. See examples/data/README.md.";

/// How many of the busiest inboxes are listed.
const BUSIEST: usize = 10;

/// Writes to standard output. A reader who has gone away (`demo | head`) is an error like any
/// other, not a panic.
pub(crate) fn show(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Before the replay starts.
pub(crate) fn opening(log: &Log, client: &Client, data_dir: Option<&Path>, offset: u64) -> Result<String> {
    let mut out = String::new();
    writeln!(out, "log      {} ({} messages, {} inboxes)", log.path.display(), log.messages.len(), log.channels().len())?;
    writeln!(out, "server   {}", client.base())?;
    if let Some(data_dir) = data_dir {
        writeln!(out, "         started for this run; its data is in {} until the end", data_dir.display())?;
        writeln!(out, "         (TMPDIR chooses the disk; on a disk in memory the writes are faster than they are durable)")?;
    }
    writeln!(out, "badge    {}, user = inbox + {offset}", client.badge())?;
    Ok(out)
}

/// At the end; the verdict is the last line.
pub(crate) fn closing(log: &Log, stage: &Stage, tally: &Tally, checked: &Checked, senders: (u16, u16)) -> Result<String> {
    let mut out = String::new();
    rates(&mut out, stage, tally)?;
    latencies(&mut out, tally, senders)?;
    busiest(&mut out, checked)?;
    if log.is_default {
        writeln!(out, "\n{LICENCE}")?;
    }
    writeln!(out)?;
    let differences = stage.difference_count();
    let lines = [stage.differences.lines(), stage.final_differences.lines()].concat();
    for line in &lines {
        writeln!(out, "difference: {line}")?;
    }
    let more = differences.saturating_sub(u64::try_from(lines.len())?);
    if more > 0 {
        writeln!(out, "and {more} more")?;
    }
    writeln!(out, "checked: {} inboxes, {} messages, {differences} differences", checked.inboxes, checked.messages)?;
    Ok(out)
}

fn rates(out: &mut String, stage: &Stage, tally: &Tally) -> Result<()> {
    let (retries, replayed) = stage.client.repeats();
    writeln!(out, "\n{:<18}{:>10}{:>12}", "", "number", "per second")?;
    for (name, histogram) in [("messages replayed", &tally.writes), ("polls", &tally.polls), ("resets", &tally.marks)] {
        writeln!(out, "{name:<18}{:>10}{:>12}", histogram.len(), rate(histogram.len(), tally.elapsed))?;
    }
    let not_modified = share(tally.not_modified, tally.polls.len());
    writeln!(out, "in {:.2} s; {not_modified} of the polls were answered 304", tally.elapsed.as_secs_f64())?;
    writeln!(out, "{} resets went out at the same moment as a message to the same inbox", tally.racing)?;
    if retries > 0 {
        writeln!(out, "{retries} requests were sent again; {replayed} of them had been applied the first time and were not counted twice")?;
    }
    if tally.degraded > 0 {
        writeln!(out, "{} polls were degraded (a store of the server was away) and could not be checked", tally.degraded)?;
    }
    Ok(())
}

fn latencies(out: &mut String, tally: &Tally, (writers, pollers): (u16, u16)) -> Result<()> {
    writeln!(out, "\n{:<18}{:>10}{:>10}{:>10}{:>10}{:>10}", "latency, ms", "p50", "p90", "p99", "p99.9", "max")?;
    for (name, histogram) in [("poll", &tally.polls), ("write", &tally.writes), ("reset", &tally.marks)] {
        let at = |quantile: f64| ms(histogram.value_at_quantile(quantile));
        writeln!(out, "{name:<18}{:>10}{:>10}{:>10}{:>10}{:>10}", at(0.5), at(0.9), at(0.99), at(0.999), ms(histogram.max()))?;
    }
    writeln!(
        out,
        "{writers} writers and {pollers} pollers, each sending again as soon as it is answered: waiting in line is part of the latency"
    )?;
    Ok(())
}

fn busiest(out: &mut String, checked: &Checked) -> Result<()> {
    writeln!(out, "\n{:<18}{:>10}{:>10}{:>18}", "busiest inboxes", "messages", "unread", "distinct senders")?;
    for row in checked.rows.iter().take(BUSIEST) {
        writeln!(out, "{:<18}{:>10}{:>10}{:>18}", row.channel, row.messages, row.unread, row.senders)?;
    }
    writeln!(out, "{:<18}{:>10}{:>10}", format!("all {}", checked.inboxes), checked.messages, checked.unread)?;
    Ok(())
}

/// Microseconds as milliseconds with three decimals, exactly.
fn ms(us: u64) -> String {
    format!("{}.{:03}", us / 1000, us % 1000)
}

fn rate(number: u64, elapsed: Duration) -> u64 {
    let per_second = u128::from(number).saturating_mul(1_000_000).checked_div(elapsed.as_micros()).unwrap_or(0);
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

fn share(part: u64, whole: u64) -> String {
    let permille = part.saturating_mul(1000).checked_div(whole).unwrap_or(0);
    format!("{}.{} %", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!((ms(0), ms(1_234), ms(60_000_009)), ("0.000".into(), "1.234".into(), "60000.009".into()));
        assert_eq!((share(1, 8), share(0, 0)), ("12.5 %".to_owned(), "0.0 %".to_owned()));
        assert_eq!((rate(59_835, Duration::from_millis(500)), rate(1, Duration::ZERO)), (119_670, 0));
    }
}
