//! What works through whole tables: imports, recounts, the scrubber, changed numbers of users with a
//! push device, removals, exports of users.

pub mod import;
mod oldest;
pub mod push;
pub mod recount;
pub mod removal;
pub mod scrub;
pub mod user_export;
