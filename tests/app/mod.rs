//! The program: its command line, its settings, a node that serves.

mod cli;
mod server;
mod settings;
mod smoke;
