//! The document: what was measured, against what, and how to do it again.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::Result;
use crate::contest::{Ratio, Series};
use crate::history::{Point, Run};
use crate::open::Latencies;
use crate::stats::{float, grouped};

/// What a row is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    pub(crate) work: &'static str,
    /// At least this ratio; None: for information.
    pub(crate) at_least: Option<f64>,
    /// What is counted: `polls`, `increments`.
    pub(crate) unit: &'static str,
}

/// One comparison.
#[derive(Debug)]
struct Row {
    goal: Goal,
    ours: Series,
    /// None where there is nothing to compare with.
    theirs: Option<(Series, Ratio)>,
}

/// One open load.
#[derive(Debug)]
struct Latency {
    what: String,
    per_second: f64,
    /// p99.99 as a ratio to what it is compared with, and how much that may be.
    against: Option<(Ratio, f64)>,
    latencies: Latencies,
    cpu_us: Option<f64>,
}

/// A size, or how much was written.
#[derive(Debug)]
struct Size {
    what: String,
    bytes: f64,
    limit: Limit,
}

/// What a size is to be like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// For information.
    None,
    /// At most so many bytes.
    AtMost(f64),
    /// So many times fewer than those of the other side, at least.
    Fewer { times: f64, than: &'static str, bytes: f64 },
}

/// All that came out.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    latencies: Vec<Latency>,
    sizes: Vec<Size>,
    facts: Vec<String>,
    /// What the rows mean, in their order.
    explanations: Vec<String>,
    commands: Vec<(&'static str, String)>,
    skipped: Vec<String>,
}

/// Writes to standard output. A reader who has gone away is an error like any other, not a panic.
pub(crate) fn show(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

impl Report {
    /// A rate against another.
    pub(crate) fn compare(&mut self, goal: Goal, ours: &Series, theirs: &Series) {
        self.rows.push(Row { goal, ours: ours.clone(), theirs: Some((theirs.clone(), ours.against(theirs))) });
    }

    /// A rate of which the goal is a number.
    pub(crate) fn rate(&mut self, goal: Goal, ours: &Series) {
        self.rows.push(Row { goal, ours: ours.clone(), theirs: None });
    }

    pub(crate) fn latency(
        &mut self,
        what: &str,
        per_second: f64,
        against: Option<(Ratio, f64)>,
        (latencies, cpu_us): (Latencies, Option<f64>),
    ) {
        self.latencies.push(Latency { what: what.to_owned(), per_second, against, latencies, cpu_us });
    }

    /// A number of bytes.
    pub(crate) fn size(&mut self, what: &str, bytes: f64, limit: Limit) {
        eprintln!("  {what}: {bytes:.1} bytes");
        self.sizes.push(Size { what: what.to_owned(), bytes, limit });
    }

    /// Goes on without the rows that failed, which the document then names.
    pub(crate) fn attempt(&mut self, what: &str, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.skip(&format!("{what}: {error}"));
        }
    }

    /// A line about the machine or the data.
    pub(crate) fn fact(&mut self, fact: String) {
        self.facts.push(fact);
    }

    /// A line about what a row compares.
    pub(crate) fn explain(&mut self, text: &str) {
        self.explanations.push(text.to_owned());
    }

    /// What was run for one side, to be run again by hand.
    pub(crate) fn command(&mut self, what: &'static str, command: String) {
        self.commands.push((what, command));
    }

    /// A row that could not be measured, and why.
    pub(crate) fn skip(&mut self, why: &str) {
        eprintln!("skipped: {why}");
        self.skipped.push(why.to_owned());
    }

    /// What the rows measured, for the history.
    pub(crate) fn points(&self) -> Vec<Point> {
        self.rows.iter().map(Row::point).collect()
    }

    /// The document; `before` is the run before, where the document is kept.
    pub(crate) fn markdown(&self, before: Option<&Run>) -> Result<String> {
        let mut out = String::from(
            "# Benchmarks\n\n\
             Written by `make bench`; every number below is from one run of it, on one machine, both sides of each ratio in the same run.\n\
             Absolute numbers say more about the machine than about the program: the load generator, the server, Postgres and Redis share its\n\
             cores, and nothing is pinned to any of them. Look at the ratios.\n\n",
        );
        for fact in &self.facts {
            writeln!(out, "- {fact}")?;
        }
        self.write_rows(&mut out, before)?;
        self.write_latencies(&mut out)?;
        self.write_sizes(&mut out)?;
        if !self.skipped.is_empty() {
            writeln!(out, "\n## Not measured\n")?;
            for why in &self.skipped {
                writeln!(out, "- {why}")?;
            }
        }
        writeln!(out, "\n## What is compared\n")?;
        for text in &self.explanations {
            writeln!(out, "- {text}")?;
        }
        self.write_repeat(&mut out)?;
        Ok(out)
    }

    fn write_rows(&self, out: &mut String, before: Option<&Run>) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n## Rates\n\n\
             The ratio is taken in each round, ours to theirs; shown is the median, with the lowest and the highest in brackets. Rates are medians.\n\
             CPU is user and system time of the server's process for each request, ours / theirs. The last column is the ratio (or rate) of the\n\
             run before, in bold where this run is more than a tenth below it. `benchmarks.csv` has all runs.\n\n\
             | work | rate | against | rate | ratio | goal | met | CPU µs | before |\n\
             | --- | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: |"
        )?;
        for row in &self.rows {
            let rate = |series: &Series| format!("{} {}/s{}", grouped(series.rate()), row.goal.unit, errors(series));
            let (against, their_rate, ratio, cpu_us) = match &row.theirs {
                Some((theirs, ratio)) => (theirs.name.as_str(), rate(theirs), show_ratio(ratio), theirs.cpu_us()),
                None => ("–", "–".to_owned(), "–".to_owned(), None),
            };
            let cpu = format!("{} / {}", optional(row.ours.cpu_us()), optional(cpu_us));
            let (goal, met) = row.verdict();
            let before = show_before(&row.point(), before);
            writeln!(
                out,
                "| {} | {} | {against} | {their_rate} | {ratio} | {goal} | {met} | {cpu} | {before} |",
                row.goal.work,
                rate(&row.ours)
            )?;
        }
        if let Some(before) = before {
            writeln!(out, "\nThe run before: {}.", before.program)?;
        }
        writeln!(out, "\n![What each row reached of its goal.](benchmarks.svg)")?;
        Ok(())
    }

    fn write_latencies(&self, out: &mut String) -> Result<()> {
        if self.latencies.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n## Latencies under a steady open load\n\n\
             Half of the measured maximum. Requests are due at set times whether or not earlier ones were answered, and each latency counts from\n\
             the time at which the request was due, so that a stall is charged for everybody it would have kept waiting. In milliseconds, of all\n\
             rounds. The last column is how late the load generator itself was (it needs the same cores): that is part of the latencies. The three\n\
             take turns, and the ratio of p99.99 is to the bare route's in the same round: the median, with the lowest and the highest in brackets.\n\n\
             | what | load | requests | p50 | p99 | p99.9 | p99.99 | max | ratio of p99.99 | goal | met | CPU µs | generator late, p99 / p99.99 |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |"
        )?;
        for latency in &self.latencies {
            let Latencies { us, lateness_us: late, errors, .. } = &latency.latencies;
            let at = |quantile: f64| ms(us.value_at_quantile(quantile));
            let (ratio, goal, met) = match latency.against {
                Some((ratio, at_most)) => {
                    let is_met = ratio.median <= at_most && *errors == 0;
                    (show_ratio(&ratio), format!("≤ {at_most}"), if is_met { "yes" } else { "**no**" })
                }
                None => ("–".to_owned(), "–".to_owned(), "–"),
            };
            let errors = if *errors == 0 { String::new() } else { format!(", {errors} refused") };
            writeln!(
                out,
                "| {} | {}/s | {}{errors} | {} | {} | {} | {} | {} | {ratio} | {goal} | {met} | {} | {} / {} |",
                latency.what,
                grouped(latency.per_second),
                grouped(float(us.len())),
                at(0.5),
                at(0.99),
                at(0.999),
                at(0.9999),
                ms(us.max()),
                optional(latency.cpu_us),
                ms(late.value_at_quantile(0.99)),
                ms(late.value_at_quantile(0.9999)),
            )?;
        }
        Ok(())
    }

    fn write_sizes(&self, out: &mut String) -> Result<()> {
        if self.sizes.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n## Bytes\n\n| what | bytes | against | bytes | goal | met |\n| --- | ---: | --- | ---: | ---: | --- |")?;
        for Size { what, bytes, limit } in &self.sizes {
            let (against, theirs, goal, is_met) = match *limit {
                Limit::None => ("–", "–".to_owned(), "–".to_owned(), None),
                Limit::AtMost(most) => ("–", "–".to_owned(), format!("≤ {most}"), Some(*bytes <= most)),
                Limit::Fewer { times, than, bytes: theirs } => {
                    let ratio = if *bytes > 0.0 { format!(" ({:.1} ×)", theirs / bytes) } else { String::new() };
                    (than, format!("{}{ratio}", shown(theirs)), format!("≥ {times} × fewer"), Some(theirs >= times * bytes))
                }
            };
            let met = is_met.map_or("–", |is_met| if is_met { "yes" } else { "**no**" });
            writeln!(out, "| {what} | {} | {against} | {theirs} | {goal} | {met} |", shown(*bytes))?;
        }
        Ok(())
    }

    fn write_repeat(&self, out: &mut String) -> Result<()> {
        writeln!(
            out,
            "\n## Doing it again\n\n\
             `make bench` measures all of it. `make bench ARGS=\"--only polls\"` (or another part, see `--help`) measures that and prints it,\n\
             `make bench ARGS=--quick` all of it, small, in a few minutes. `--help` names the other settings: how many users, rounds, seconds.\n\
             In the run above these were, with the files in a folder of the run:\n"
        )?;
        for (what, command) in &self.commands {
            writeln!(out, "{what}:\n\n```text\n{}\n```\n", command.trim_end())?;
        }
        while out.ends_with("\n\n") {
            out.pop();
        }
        Ok(())
    }
}

/// From which part of the run before on a row counts as slower.
const SLOWER: f64 = 0.9;

/// What the run before measured of a row.
fn show_before(point: &Point, before: Option<&Run>) -> String {
    let Some(before) = before.and_then(|run| run.point(&point.work)) else { return "–".to_owned() };
    let value = if before.value < 1000.0 { format!("{:.2}", before.value) } else { grouped(before.value) };
    if point.value < before.value * SLOWER { format!("**{value}**") } else { value }
}

impl Row {
    fn point(&self) -> Point {
        let value = self.theirs.as_ref().map_or_else(|| self.ours.rate(), |(_, ratio)| ratio.median);
        Point { work: self.goal.work.to_owned(), value, goal: self.goal.at_least, cpu_us: self.ours.cpu_us() }
    }

    /// The goal, and whether it is met.
    fn verdict(&self) -> (String, &'static str) {
        let Some(least) = self.goal.at_least else { return ("–".to_owned(), "–") };
        let (value, goal) = match &self.theirs {
            Some((_, ratio)) => (ratio.median, format!("≥ {least}")),
            None => (self.ours.rate(), format!("≥ {}/s", grouped(least))),
        };
        (goal, if value >= least { "yes" } else { "**no**" })
    }
}

fn show_ratio(ratio: &Ratio) -> String {
    format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.low, ratio.high)
}

fn errors(series: &Series) -> String {
    if series.errors == 0 { String::new() } else { format!(" ({} refused)", series.errors) }
}

fn optional(us: Option<f64>) -> String {
    us.map_or_else(|| "n/a".to_owned(), |us| format!("{us:.1}"))
}

/// Bytes: small numbers with a digit after the point.
fn shown(bytes: f64) -> String {
    if bytes.abs() < 1000.0 { format!("{bytes:.1}") } else { grouped(bytes) }
}

/// Microseconds as milliseconds.
fn ms(us: u64) -> String {
    format!("{:.2}", float(us) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_whether_its_goal_is_met() {
        let mut report = Report::default();
        let goal = Goal { work: "poll", at_least: Some(0.9), unit: "polls" };
        report.compare(goal, &Series::single("ours", 80.0), &Series::single("a bare route", 100.0));
        report.rate(Goal { at_least: Some(50.0), ..goal }, &Series::single("import", 60.0));
        let text = report.markdown(None).unwrap();
        assert!(
            text.contains("| poll | 80 polls/s | a bare route | 100 polls/s | 0.80 (0.80–0.80) | ≥ 0.9 | **no** | n/a / n/a | – |"),
            "{text}"
        );
        assert!(text.contains("| poll | 60 polls/s | – | – | – | ≥ 50/s | yes | n/a / n/a | – |"), "{text}");
    }

    #[test]
    fn a_row_that_became_slower_shows() {
        let goal = Goal { work: "poll", at_least: Some(0.9), unit: "polls" };
        let mut report = Report::default();
        report.compare(goal, &Series::single("ours", 80.0), &Series::single("a bare route", 100.0));
        for (value, shown) in [(0.88, "| 0.88 |"), (0.9, "| **0.90** |"), (12_345.0, "| **12,345** |")] {
            let before = Run { program: "earlier".to_owned(), points: vec![Point { value, ..report.points().remove(0) }] };
            let text = report.markdown(Some(&before)).unwrap();
            assert!(text.contains(shown) && text.contains("The run before: earlier."), "{text}");
        }
    }

    #[test]
    fn sizes_have_limits_of_either_kind() {
        let mut report = Report::default();
        report.size("an entry", 240.04, Limit::AtMost(250.0));
        report.size("written", 100.0, Limit::Fewer { times: 50.0, than: "plain", bytes: 4000.0 });
        report.size("stored", 0.0, Limit::Fewer { times: 50.0, than: "plain", bytes: 54.0 });
        report.attempt("more", Err("no".into()));
        let text = report.markdown(None).unwrap();
        assert!(text.contains("| an entry | 240.0 | – | – | ≤ 250 | yes |"), "{text}");
        assert!(text.contains("| written | 100.0 | plain | 4,000 (40.0 ×) | ≥ 50 × fewer | **no** |"), "{text}");
        assert!(text.contains("| stored | 0.0 | plain | 54.0 | ≥ 50 × fewer | yes |"), "{text}");
        assert!(text.contains("- more: no"), "{text}");
    }
}
