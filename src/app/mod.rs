//! The program: settings, a node put together, every route, serving, the command line.

pub mod application;
pub mod cli;
mod clock_check;
pub mod config;
mod console;
pub mod contexts;
pub mod docs;
pub mod doctor;
mod documents;
pub mod engines;
pub mod node;
mod notify;
pub mod probes;
mod problems;
mod process;
mod readers;
pub mod router;
mod row_sets;
pub mod serve;
mod signals;
mod single_flight;
pub mod state;
pub mod stores;
mod sweeps;
pub mod telemetry;

pub use row_sets::{ENTRY_READER, ROW_SETS, statements};
