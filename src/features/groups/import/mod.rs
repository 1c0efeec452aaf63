//! Takes over chat logs: `step.rs` has their lines, `command.rs` the rules, `store.rs` what is
//! remembered for them.

mod command;
mod step;
pub mod store;

pub use self::command::{ImportedLog, LogCommand};
pub use self::step::{LogStep, What};
pub(crate) use self::step::{Trace, second};
