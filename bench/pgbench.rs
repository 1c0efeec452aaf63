//! The other side of every write and list: Postgres's own load generator on the same Postgres, with
//! prepared statements.

use std::path::PathBuf;
use std::time::Duration;

use tokio::process::Command;

use crate::Result;
use crate::load::Counted;

/// A pgbench that knows where Postgres is.
#[derive(Debug)]
pub(crate) struct Pgbench {
    pub(crate) program: PathBuf,
    /// The database with the plain tables, without the password: every account can read the
    /// arguments of a process.
    pub(crate) url: String,
    pub(crate) password: String,
}

/// A script with its clients.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) file: PathBuf,
    pub(crate) clients: usize,
    /// Variables of the script.
    pub(crate) defines: Vec<(&'static str, u64)>,
}

/// How long, or how often.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    /// Transactions of each client.
    Done(usize),
}

impl Pgbench {
    /// Runs the script; connecting is not part of the time.
    pub(crate) async fn run(&self, script: &Script, until: Until) -> Result<Counted> {
        let mut command = Command::new(&self.program);
        command.args(["-n", "-M", "prepared", "-j", "2"]).arg(format!("-c{}", script.clients));
        match until {
            Until::Elapsed(duration) => command.arg(format!("-T{}", duration.as_secs().max(1))),
            Until::Done(times) => command.arg(format!("-t{times}")),
        };
        for (name, value) in &script.defines {
            command.arg("-D").arg(format!("{name}={value}"));
        }
        let output =
            command.arg("-f").arg(&script.file).arg(&self.url).env("PGPASSWORD", &self.password).kill_on_drop(true).output().await?;
        let text = String::from_utf8_lossy(&output.stdout);
        // Every client tells the same: the first lines will do.
        parse(&text).ok_or_else(|| {
            let lines: Vec<_> = String::from_utf8_lossy(&output.stderr).lines().take(3).map(|line| line.trim().to_owned()).collect();
            format!("pgbench failed: {}", lines.join(" ")).into()
        })
    }
}

/// Reads the summary.
fn parse(text: &str) -> Option<Counted> {
    let after = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let number = |name: &str| after(name)?.split(['/', ' ']).find_map(|word| word.parse::<u64>().ok());
    let answered = number("number of transactions actually processed:")?;
    let tps: f64 = after("tps = ")?.split(' ').next()?.parse().ok()?;
    let errors = number("number of failed transactions:").unwrap_or(0);
    Some(Counted { answered, errors, seconds: crate::stats::float(answered) / tps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let text = "number of transactions actually processed: 2000/2000\nnumber of failed transactions: 0 (0.000%)\n\
                    latency average = 1.000 ms\ntps = 1000.000000 (without initial connection time)\n";
        let counted = parse(text).unwrap();
        assert_eq!((counted.answered, counted.errors), (2000, 0));
        assert!((counted.seconds - 2.0).abs() < 1e-9);
        assert!(parse("pgbench: error").is_none());
    }
}
