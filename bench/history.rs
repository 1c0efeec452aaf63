//! Whole runs by commit, beside the document: so that a row that became slower shows.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use crate::Result;

/// What a run measured of one row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) work: String,
    /// The ratio, or the rate where there is nothing to compare with.
    pub(crate) value: f64,
    pub(crate) goal: Option<f64>,
    /// Processor time of the server for each request, in microseconds.
    pub(crate) cpu_us: Option<f64>,
}

/// A run in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    /// The program, as the document names it.
    pub(crate) program: String,
    pub(crate) points: Vec<Point>,
}

impl Run {
    /// What this run measured of a row.
    pub(crate) fn point(&self, work: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.work == work)
    }
}

/// The file: a line for each row of each run.
#[derive(Debug)]
pub(crate) struct History {
    file: PathBuf,
    runs: Vec<Run>,
}

const HEADER: [&str; 5] = ["program", "work", "value", "goal", "cpu_us"];

impl History {
    /// Reads the file beside the document. It does not exist before the first run.
    pub(crate) fn beside(document: &Path) -> Result<Self> {
        let file = document.with_extension("csv");
        let mut runs: Vec<Run> = Vec::new();
        if file.exists() {
            let mut lines = csv::Reader::from_path(&file)?;
            if lines.headers()? != HEADER.as_slice() {
                return Err(format!("{} is no history of benchmarks", file.display()).into());
            }
            for line in lines.deserialize() {
                let (program, work, value, goal, cpu_us): (String, String, f64, Option<f64>, Option<f64>) = line?;
                let point = Point { work, value, goal, cpu_us };
                match runs.last_mut().filter(|run| run.program == program) {
                    Some(run) => run.points.push(point),
                    None => runs.push(Run { program, points: vec![point] }),
                }
            }
        }
        Ok(Self { file, runs })
    }

    /// The last run before this one.
    pub(crate) fn last(&self) -> Option<&Run> {
        self.runs.last()
    }

    /// Adds a run to the file.
    pub(crate) fn append(&self, run: &Run) -> Result<()> {
        let is_new = !self.file.exists();
        let file = OpenOptions::new().create(true).append(true).open(&self.file)?;
        let mut lines = csv::Writer::from_writer(file);
        if is_new {
            lines.write_record(HEADER)?;
        }
        for Point { work, value, goal, cpu_us } in &run.points {
            let number = |value: &Option<f64>| value.map(|value| format!("{value:.3}")).unwrap_or_default();
            lines.write_record([&run.program, work, &format!("{value:.3}"), &number(goal), &number(cpu_us)])?;
        }
        Ok(lines.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_as_they_were_written() {
        let folder = std::env::temp_dir().join(format!("headmark-history-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let document = folder.join("benchmarks.md");
        let empty = History::beside(&document).unwrap();
        assert_eq!(empty.last(), None);
        let point = |work: &str, value| Point { work: work.to_owned(), value, goal: Some(2.0), cpu_us: None };
        let run =
            |program: &str, value| Run { program: program.to_owned(), points: vec![point("polls, of \"all\"", value), point("304", 0.5)] };
        empty.append(&run("headmark 0.1.0, commit a", 1.25)).unwrap();
        History::beside(&document).unwrap().append(&run("headmark 0.1.0, commit b", 1.5)).unwrap();
        let history = History::beside(&document).unwrap();
        assert_eq!(history.runs, [run("headmark 0.1.0, commit a", 1.25), run("headmark 0.1.0, commit b", 1.5)]);
        assert_eq!(history.last().and_then(|run| run.point("304")).map(|point| point.value), Some(0.5));
        std::fs::write(folder.join("benchmarks.csv"), "a,b\n1,2\n").unwrap();
        assert!(History::beside(&document).is_err(), "another file is not taken for it");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
