//! Read receipts in groups: who of a message's recipients has read it.
//!
//! Nothing is stored for it with a message. Recipients are those whose membership spans the message
//! (joined before it, not left before it), less the sender; who of them has read it follows from
//! how far each has read in that membership (`crate::features::groups::Reading`). So a message
//! costs no byte, who catches up on many messages writes one row, and no row is written by two
//! members. The answers are those of the known design that keeps `{max id, read bits, quit bits}`
//! with each message, bitmaps on the wire included; see docs/adr/0011.
//!
//! Answering goes through all memberships of a group, once for a screenful. A node keeps them for a
//! second, and who sent the messages that were asked about ([`Receipts`]). It reads them again at
//! once after a write of its own, and for a message that is newer. `spans.rs` has the rules,
//! `store.rs` reads the rows, `kept.rs` keeps them, `looks.rs` looks for changes on behalf of all
//! polls that wait, which `watch.rs` keeps, `http.rs` has the routes, `access.rs` who may see what,
//! `answers.rs` the bodies, `bitmaps.rs` how bitmaps are encoded.

mod access;
pub mod answers;
pub mod bitmaps;
pub mod http;
mod kept;
mod looks;
mod spans;
pub mod store;
mod watch;

pub use self::kept::{Asking, AtLeast, Known, Receipts};
pub use self::spans::{Bitmaps, Count, Ordinals, Recipient, Span, Spans};
pub use self::watch::Watch;

use clap::Args;

/// How receipts are bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Groups")]
pub struct ReceiptConfig {
    /// The maximum number of ordinals in a bitmap of receipts. Above it, the ordinals of at most
    /// 10,000 recipients are listed instead.
    #[arg(long, env = "HEADMARK_MAX_RECEIPT_MEMBERS", default_value_t = 10_000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    pub max_receipt_members: i64,
}
