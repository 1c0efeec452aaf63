//! The program: its command line, its settings, a node that serves.

mod cli;
mod doctor;
mod server;
mod settings;
mod smoke;
