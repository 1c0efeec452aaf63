//! The `headmark` command.

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    headmark::app::cli::Cli::parse().run()
}
