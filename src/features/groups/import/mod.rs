//! Takes over chat logs: `command.rs` has the rules, `store.rs` what is remembered for them.

mod command;
pub mod store;

pub(crate) use self::command::second;
pub use self::command::{Import, Imported, Step, What};
