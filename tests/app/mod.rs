//! The program: its command line, its settings, a node that serves.

mod cli;
mod doctor;
mod liveness;
mod pooler;
mod server;
mod service_manager;
mod settings;
mod signals;
mod smoke;
