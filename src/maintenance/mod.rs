//! What works through whole tables: imports, recounts, the scrubber.

pub mod import;
pub mod recount;
pub mod scrub;
