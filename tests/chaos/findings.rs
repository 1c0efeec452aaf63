//! What a run found. A finding is printed at once, and the run goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// At most so many findings are printed in full.
const SHOWN: usize = 200;

#[derive(Debug, Clone)]
pub struct Findings {
    count: Arc<AtomicUsize>,
    began: Instant,
}

impl Findings {
    pub fn new() -> Self {
        Self { count: Arc::default(), began: Instant::now() }
    }

    pub fn add(&self, what: &str) {
        if self.count.fetch_add(1, Ordering::Relaxed) < SHOWN {
            println!("{:8.3} FINDING {what}", self.began.elapsed().as_secs_f64());
        }
    }

    /// Adds a finding unless `holds`.
    pub fn check(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.add(&what());
        }
    }

    /// A line for the person who watches.
    pub fn say(&self, what: &str) {
        println!("{:8.3} {what}", self.began.elapsed().as_secs_f64());
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
