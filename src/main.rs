//! The `headmark` command.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    headmark::app::cli::Cli::run(std::env::args_os())
}
