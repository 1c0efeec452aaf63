//! What the cache counts of itself.

use metrics::{Counter, Gauge, counter, gauge};

use super::{CacheError, Lookup};

/// Handles taken once, so that a read costs one atomic addition: the recorder must be installed
/// before the cache is made.
pub(super) struct Meters {
    hits: Counter,
    copies: Counter,
    misses: Counter,
    away: Counter,
    kept: Counter,
    refused: Counter,
    clean: Counter,
    dirty: Counter,
    commands: Counter,
    breaker_open: Gauge,
}

impl Meters {
    pub(super) fn new() -> Self {
        Self {
            hits: counter!("headmark_cache_reads_total", "result" => "hit"),
            copies: counter!("headmark_cache_copies_shown_total"),
            misses: counter!("headmark_cache_reads_total", "result" => "miss"),
            away: counter!("headmark_cache_reads_total", "result" => "away"),
            kept: counter!("headmark_cache_fills_total", "result" => "kept"),
            refused: counter!("headmark_cache_fills_total", "result" => "refused"),
            clean: counter!("headmark_cache_applies_total", "result" => "clean"),
            dirty: counter!("headmark_cache_applies_total", "result" => "dirty"),
            commands: counter!("headmark_cache_commands_total"),
            breaker_open: gauge!("headmark_cache_breaker_open"),
        }
    }

    /// One read.
    pub(super) fn read(&self, outcome: Result<&Lookup, &CacheError>) {
        match outcome {
            Ok(Lookup::Hit(_)) => self.hits.increment(1),
            Ok(Lookup::Miss { .. }) => self.misses.increment(1),
            Err(_) => self.away.increment(1),
        }
    }

    /// Hits that needed no answer from Redis about their users.
    pub(super) fn copies_shown(&self, count: usize) {
        self.copies.increment(u64::try_from(count).unwrap_or_default());
    }

    /// One fill.
    pub(super) fn fill(&self, kept: bool) {
        if kept { &self.kept } else { &self.refused }.increment(1);
    }

    /// One user's apply; whether the entry is clean then.
    pub(super) fn apply(&self, clean: bool) {
        if clean { &self.clean } else { &self.dirty }.increment(1);
    }

    /// Commands that Redis is sent.
    pub(super) fn commands(&self, count: usize) {
        self.commands.increment(u64::try_from(count).unwrap_or_default());
    }

    /// The breaker opened or closed.
    pub(super) fn breaker(&self, open: bool) {
        self.breaker_open.set(if open { 1.0 } else { 0.0 });
    }
}
