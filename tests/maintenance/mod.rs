//! What works through whole tables: imports, exports, recounts, the scrubber.

mod export;
pub mod import;
pub mod recount;
mod scrub;
mod user_export;
